//! Opening: whose file is it, is it whole, does someone use it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::error::translate;
use super::{SqliteOptions, compaction, moved, schema};
use crate::backend::{BackendError, Result, Revision};

/// How the file starts (sqlite.org/fileformat.html).
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Whoever can read the file can read every object.
const OWNERS_ALONE: u32 = 0o600;
/// How long to wait for an administrator's sqlite3 that holds the file.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// KiB of pages that the writer keeps. It looks through all of them at a commit that has split a page (pcache1.c,
/// pcache1TruncateUnsafe), so more of them cost more than they save: what it reads again, the system still has.
const WRITER_CACHE: u32 = 8192;

/// KiB of pages that each reader keeps: those that lead to the objects. What is read of the objects stays nowhere but
/// with whoever reads it.
const READER_CACHE: u32 = 4096;

/// An opened store.
pub(super) struct Opened {
    /// Held by the writer as long as it runs.
    pub lock: File,
    /// The connection that writes.
    pub writer: Connection,
    /// The connections that read.
    pub readers: Vec<Connection>,
    /// The newest revision.
    pub revision: Revision,
}

/// Opens a store, or makes one if there is no file.
pub(super) fn open(path: &Path, options: &SqliteOptions) -> Result<Opened> {
    let path = &real(path)?;
    let lock = lock(path)?;
    recover_creation(path)?;
    match fs::exists(path) {
        Ok(true) => recognise(path)?,
        Ok(false) => no_stray_log(path).and_then(|()| create(path))?,
        Err(error) => return Err(io(path, &error)),
    }
    let writer = connect_writer(path, options).map_err(translate).map_err(|error| named(path, error))?;
    let revision = validate(&writer, path, options.leaving)?;
    let readers = (0..options.readers.max(1)).map(|_| connect_reader(path));
    let readers = readers.collect::<rusqlite::Result<_>>().map_err(translate)?;
    Ok(Opened { lock, writer, readers, revision })
}

/// Takes the lock of a place for a store in which there is none, and clears what a broken attempt left.
pub(super) fn vacant(path: &Path) -> Result<File> {
    let path = &real(path)?;
    let lock = lock(path)?;
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
fn no_stray_log(path: &Path) -> Result<()> {
    let log = beside(path, "-wal");
    match fs::exists(&log).map_err(|error| io(&log, &error))? {
        true => refuse(
            path,
            &format!("is missing, and {} belongs to it: put it back, or remove both", log.display()),
        ),
        false => Ok(()),
    }
}

/// Takes the lock beside the file; the system drops it with the process, however that ends.
pub(super) fn lock(path: &Path) -> Result<File> {
    let beside = beside(path, ".lock");
    let file = File::options().create(true).truncate(false).write(true).mode(OWNERS_ALONE).open(&beside);
    let file = file.map_err(|error| io(&beside, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackendError::Unavailable(format!(
            "{} is in use by another process: stop it first",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(io(&beside, &error)),
    }
}

/// SQLite has its log, and we have our lock, beside one name of a file: of two hard links each would have its own, and
/// writes through the one would damage what is written through the other (sqlite.org/howtocorrupt.html, "Multiple links
/// to the same file").
pub(super) fn one_name(path: &Path) -> Result<()> {
    let names = fs::metadata(path).map_err(|error| io(path, &error))?.nlink();
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
    let mut header = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return refuse(path, "is not a SQLite file: it is too short");
        }
        Err(error) => return Err(io(path, &error)),
        Ok(()) => {}
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    match (number(60), number(68)) {
        _ if !header.starts_with(MAGIC) => refuse(path, "is not a SQLite file"),
        (_, id) if id != schema::APPLICATION_ID => refuse(path, "is a SQLite file of another application"),
        (version, _) if version > schema::VERSION => refuse(
            path,
            &format!("has layout {version}, made by a newer version (ours: {})", schema::VERSION),
        ),
        _ => Ok(()),
    }
}

/// Makes the file under another name and moves it into place: a file of this name is always a whole one.
fn create(path: &Path) -> Result<()> {
    let new = beside(path, ".new");
    make(&new)?.close().map_err(|(_, error)| translate(error))?;
    let moved = fs::rename(&new, path).and_then(|()| sync_directory(path));
    moved.map_err(|error| io(path, &error))
}

/// Makes an empty store under the name that it has until it is whole.
pub(super) fn make(new: &Path) -> Result<Connection> {
    private(new).map_err(|error| io(new, &error))?;
    let connection = Connection::open(new).map_err(translate)?;
    let stamp = format!(
        "PRAGMA synchronous = FULL; PRAGMA application_id = {}; PRAGMA user_version = {};",
        schema::APPLICATION_ID,
        schema::VERSION
    );
    connection.execute_batch(&stamp).map_err(translate)?;
    connection.execute_batch(&format!("BEGIN; {} COMMIT;", schema::CREATE)).map_err(translate)?;
    Ok(connection)
}

/// An empty file for its owner alone; SQLite keeps the permissions of a file that is there, and gives them to those
/// that it makes beside it.
pub(super) fn private(path: &Path) -> std::io::Result<()> {
    File::options().create_new(true).write(true).mode(OWNERS_ALONE).open(path).map(drop)
}

/// Removes what a process left that stopped while it made the file.
fn recover_creation(path: &Path) -> Result<()> {
    for suffix in [".new", ".new-journal"] {
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

fn connect_writer(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    // Until it is known to be whole, nothing may be written to it, not even its own write-ahead log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0))?.into();
    let pages = options.max_file.map_or(0xffff_fffe, |bytes| bytes / page.max(1));
    let checkpoint = options.checkpoint_pages;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{WRITER_CACHE};
         PRAGMA wal_autocheckpoint = {checkpoint}; PRAGMA journal_size_limit = 67108864;
         PRAGMA max_page_count = {pages};"
    ))?;
    Ok(connection)
}

fn connect_reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE};"))?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // Else a statement is planned anew whenever a bound of a range is bound to another value: at each write
    // (sqlite.org/c3ref/c_dbconfig_defensive.html, SQLITE_DBCONFIG_ENABLE_QPSG). There is one plan for each of ours.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Reads what every operation needs. It does not read all pages: that would take long on a large file; damage
/// elsewhere is reported by the operation that meets it.
fn validate(connection: &Connection, path: &Path, leaving: bool) -> Result<Revision> {
    let damaged = |error| match named(path, error) {
        BackendError::Unavailable(text) => BackendError::Corrupt(text),
        other => other,
    };
    let revision = compaction::newest(connection).map_err(damaged)?;
    connection.prepare(schema::RANGE).map_err(translate).map_err(damaged)?;
    connection.prepare(schema::EVENTS).map_err(translate).map_err(damaged)?;
    moved::refuse(connection, leaving).map_err(|error| named(path, error))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(translate)?;
    Ok(revision)
}

/// Says in which file.
pub(super) fn named(path: &Path, error: BackendError) -> BackendError {
    match error {
        BackendError::Corrupt(text) => BackendError::Corrupt(format!("{}: {text}", path.display())),
        BackendError::Unavailable(text) => BackendError::Unavailable(format!("{}: {text}", path.display())),
        other => other,
    }
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn refuse(path: &Path, why: &str) -> Result<()> {
    Err(BackendError::Corrupt(format!("{} {why}", path.display())))
}

pub(super) fn io(path: &Path, error: &std::io::Error) -> BackendError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            BackendError::NoSpace(format!("{}: {error}", path.display()))
        }
        _ => BackendError::Unavailable(format!("{}: {error}", path.display())),
    }
}
