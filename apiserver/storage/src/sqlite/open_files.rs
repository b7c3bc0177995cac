//! The names of an open store's files: whoever opens it next comes by them. What is written to a file that has lost its
//! name is lost with this process, and whoever has the name of the lock may write as well.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::io;
use super::file::beside;
use super::lock;
use crate::backend::Result;

/// Looks at the file's own name for each at the others: without those nothing that was written is lost yet.
const OTHERS: u8 = 16;

/// The names, and the files that they stood for when the store was opened.
pub(super) struct OpenFiles {
    /// Of the file, its log and its lock.
    named: [(PathBuf, File); 3],
    looks: u8,
}

/// Device and inode.
type File = (u64, u64);

impl OpenFiles {
    /// Of a store that is open: with its log, and locked.
    pub fn of(path: &Path) -> Result<Self> {
        let named = |path: PathBuf| match find(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(io(&path, &error)),
        };
        let (log, lock) = (beside(path, "-wal"), beside(path, lock::SUFFIX));
        Ok(Self { named: [named(path.to_owned())?, named(log)?, named(lock)?], looks: 0 })
    }

    /// The first that stands for its file no more, of all or of those whose turn it is. One that cannot be looked at, may.
    pub fn replaced(&mut self, all: bool) -> Option<&Path> {
        self.looks = (self.looks + 1) % OTHERS;
        let turn = if all || self.looks == 0 { &self.named[..] } else { &self.named[..1] };
        let is_replaced = |(path, file): &&(PathBuf, File)| match find(path) {
            Ok(found) => found != *file,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        turn.iter().find(is_replaced).map(|(path, _)| path.as_path())
    }
}

fn find(path: &Path) -> std::io::Result<File> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
