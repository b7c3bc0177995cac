//! The files of a store. Checks and prepares them before SQLite opens one: symbolic and hard links, the lock, files
//! beside it, and the store format. Detects that a file of an open store was moved, removed or replaced.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use drydock_storage::backend::{BackendError, Result};

use crate::error::{damaged, io, named};
use crate::schema::{HEADER, StoreFormat};

/// The first bytes of a SQLite file (sqlite.org/fileformat.html).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The file's own name is checked every time, and the names of the log and the lock every 16th time: as long as the
/// file has its name, nothing written is lost yet.
const OTHERS: u8 = 16;
/// The suffix of the lock file.
pub(super) const LOCK: &str = ".lock";
/// Only the owner may read the file, because it contains every object.
pub(super) const OWNERS_ALONE: u32 = 0o600;

/// Resolves symbolic links. SQLite puts its log, and this crate its lock, beside the resolved file, so that processes
/// that use other names of it find the same ones. Fails if a link points to a missing file.
pub(super) fn resolve_links(path: &Path) -> Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io(path, &error)),
        Err(_) if fs::symlink_metadata(path).is_ok() => Err(BackendError::Unavailable(format!(
            "{} is a symbolic link to a file that is missing: put that back, or remove the link",
            path.display()
        ))),
        Err(_) => Ok(path.to_owned()),
    }
}

/// Fails if there is a write-ahead log without its store: SQLite would apply it to any file that gets the store's
/// name.
pub(super) fn no_stray_log(path: &Path) -> Result<()> {
    let log = with_suffix(path, "-wal");
    match fs::exists(&log).map_err(|error| io(&log, &error))? {
        true => {
            let why = format!(
                "the database file is missing but its write-ahead log {} exists: restore the file, or remove the log",
                log.display()
            );
            damaged(why).map_err(|error| named(path, error))
        }
        false => Ok(()),
    }
}

/// Returns the metadata of a regular file; fails for anything else. SQLite would block on a pipe.
pub(super) fn regular(path: &Path) -> Result<Metadata> {
    let found = fs::metadata(path).map_err(|error| io(path, &error))?;
    match found.file_type() {
        kind if kind.is_file() => Ok(found),
        kind if kind.is_dir() => {
            Err(BackendError::Unavailable(format!("{} is a folder: name the file in it", path.display())))
        }
        _ => Err(BackendError::Unavailable(format!("{} is no regular file", path.display()))),
    }
}

/// Fails if the file has several hard links. SQLite's log and our lock belong to one name: processes that use two
/// links would each have their own, and writes through one would damage those through the other
/// (sqlite.org/howtocorrupt.html, "Multiple links to the same file").
pub(super) fn one_name(path: &Path) -> Result<()> {
    let names = regular(path)?.nlink();
    match names {
        0 | 1 => Ok(()),
        _ => Err(BackendError::Unavailable(format!(
            "{} is one of {names} hard links to a file: copy it to a name of its own, or remove the others",
            path.display()
        ))),
    }
}

/// Checks the file's header without SQLite, so that a file of another application is never opened for writing.
pub(super) fn check_header(path: &Path) -> Result<()> {
    one_name(path)?;
    let mut header = [0; HEADER];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let ours = match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            damaged("it is not a SQLite file: it is too short")
        }
        Err(error) => return Err(io(path, &error)),
        Ok(()) if !header.starts_with(MAGIC) => damaged("it is not a SQLite file"),
        Ok(()) => StoreFormat::of(&header).is_ours(),
    };
    ours.map_err(|error| named(path, error))
}

/// Creates an empty file that only its owner can read. SQLite keeps the permissions of an existing file and gives
/// them to the files beside it.
pub(super) fn create_private(path: &Path) -> std::io::Result<()> {
    File::options().create_new(true).write(true).mode(OWNERS_ALONE).open(path).map(drop)
}

/// Removes the files that a process left when it stopped while creating the store.
pub(super) fn recover_creation(path: &Path) -> Result<()> {
    for suffix in [".new", ".new-journal", ".new-wal", ".new-shm"] {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(path, &error)),
            _ => {}
        }
    }
    Ok(())
}

/// Syncs the directory of `path`, which makes a rename in it durable.
pub(super) fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the path with a suffix added to the file name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The file names, and the files that they referred to when the store was opened. The next process opens the store by
/// its file names: writes to a file that has lost its name are lost with this process, and a process that gets the lock
/// under its name may write as well.
pub(super) struct OpenFiles {
    /// The store, its log and its lock.
    named: [(PathBuf, FileId); 3],
    /// Number of checks, modulo [`OTHERS`].
    checks: u8,
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
        let (log, lock) = (with_suffix(path, "-wal"), with_suffix(path, LOCK));
        Ok(Self { named: [named(path.to_owned())?, named(log)?, named(lock)?], checks: 0 })
    }

    /// Returns the first name that no longer refers to its file, of all names or of those whose check is due. A file
    /// whose metadata cannot be read for another reason counts as unchanged.
    pub fn replaced(&mut self, all: bool) -> Option<&Path> {
        self.checks = (self.checks + 1) % OTHERS;
        let due = if all || self.checks == 0 { &self.named[..] } else { &self.named[..1] };
        let is_replaced = |(path, file): &&(PathBuf, FileId)| match find(path) {
            Ok(found) => found != *file,
            Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        due.iter().find(is_replaced).map(|(path, _)| path.as_path())
    }
}

fn find(path: &Path) -> std::io::Result<FileId> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
