//! The file of a store before anybody opens it: its one name, its lock, what stands beside it, and whose it is.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::check::damaged;
use super::error::{io, named};
use super::lock::Lock;
use super::stamp::{HEADER, Stamp};
use crate::backend::{BackendError, Result};

/// How the file starts (sqlite.org/fileformat.html).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Whoever can read the file can read every object.
pub(super) const OWNERS_ALONE: u32 = 0o600;

/// Takes the lock of a place for a store in which there is none, and clears what a broken attempt left.
pub(super) fn vacant(path: &Path) -> Result<Lock> {
    let path = &real(path)?;
    let lock = Lock::take(path)?;
    if fs::exists(path).map_err(|error| io(path, &error))? {
        let why = format!("{} exists, and nothing is overwritten: name an empty folder", path.display());
        return Err(BackendError::Unavailable(why));
    }
    no_stray_log(path)?;
    recover_creation(path)?;
    Ok(lock)
}

/// The file behind symbolic links, beside which SQLite has its log, and we have our lock: whoever comes by another name
/// must find the same ones.
pub(super) fn real(path: &Path) -> Result<PathBuf> {
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

/// A write-ahead log without its file: SQLite would apply it to whatever file gets that name.
pub(super) fn no_stray_log(path: &Path) -> Result<()> {
    let log = beside(path, "-wal");
    match fs::exists(&log).map_err(|error| io(&log, &error))? {
        true => {
            let why =
                format!("it is missing, and {} belongs to it: put it back, or remove both", log.display());
            damaged(why).map_err(|error| named(path, error))
        }
        false => Ok(()),
    }
}

/// What stands there, if it is a file: SQLite would wait for whoever writes to a pipe.
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

/// SQLite has its log, and we have our lock, beside one name of a file: of two hard links each would have its own, and
/// writes through the one would damage what is written through the other (sqlite.org/howtocorrupt.html, "Multiple links
/// to the same file").
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

/// Tells from the header alone whether the file is ours, so that a foreign one is never opened for writing.
pub(super) fn recognise(path: &Path) -> Result<()> {
    one_name(path)?;
    let mut header = [0; HEADER];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    let ours = match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            damaged("it is not a SQLite file: it is too short")
        }
        Err(error) => return Err(io(path, &error)),
        Ok(()) if !header.starts_with(MAGIC) => damaged("it is not a SQLite file"),
        Ok(()) => Stamp::of(&header).is_ours(),
    };
    ours.map_err(|error| named(path, error))
}

/// An empty file for its owner alone; SQLite keeps the permissions of a file that is there, and gives them to those
/// that it makes beside it.
pub(super) fn private(path: &Path) -> std::io::Result<()> {
    File::options().create_new(true).write(true).mode(OWNERS_ALONE).open(path).map(drop)
}

/// Removes what a process left that stopped while it made the file.
pub(super) fn recover_creation(path: &Path) -> Result<()> {
    for suffix in [".new", ".new-journal", ".new-wal", ".new-shm"] {
        match fs::remove_file(beside(path, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(path, &error)),
            _ => {}
        }
    }
    Ok(())
}

/// A rename is durable when the directory is.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// A file of another suffix beside it.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
