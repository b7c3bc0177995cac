//! Detects that a file of an open store was moved, removed or replaced. The next process opens the store by its file
//! names: writes to a file that has lost its name are lost with this process, and a process that gets the lock under
//! its name may write as well.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use drydock_storage::backend::Result;

use crate::error::io;
use crate::file::with_suffix;
use crate::lock;

/// The file's own name is checked every time, and the names of the log and the lock every 16th time: as long as the
/// file has its name, nothing written is lost yet.
const OTHERS: u8 = 16;

/// The file names, and the files that they referred to when the store was opened.
pub(super) struct OpenFiles {
    /// The store, its log and its lock.
    named: [(PathBuf, FileId); 3],
    looks: u8,
}

/// Device and inode.
type FileId = (u64, u64);

impl OpenFiles {
    /// Looks up the files of a store that is open, in WAL mode, and locked.
    pub fn of(path: &Path) -> Result<Self> {
        let named = |path: PathBuf| match find(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(io(&path, &error)),
        };
        let (log, lock) = (with_suffix(path, "-wal"), with_suffix(path, lock::SUFFIX));
        Ok(Self { named: [named(path.to_owned())?, named(log)?, named(lock)?], looks: 0 })
    }

    /// Returns the first name that no longer refers to its file, of all names or of those whose check is due. A file
    /// whose metadata cannot be read for another reason counts as unchanged.
    pub fn replaced(&mut self, all: bool) -> Option<&Path> {
        self.looks = (self.looks + 1) % OTHERS;
        let turn = if all || self.looks == 0 { &self.named[..] } else { &self.named[..1] };
        let is_replaced = |(path, file): &&(PathBuf, FileId)| match find(path) {
            Ok(found) => found != *file,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        turn.iter().find(is_replaced).map(|(path, _)| path.as_path())
    }
}

fn find(path: &Path) -> std::io::Result<FileId> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
