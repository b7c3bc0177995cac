//! Connections to a store: the one that writes, those that read, and those of commands.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, ffi};

use super::SqliteOptions;
use super::check::damaged;
use super::error::{named, translate};
use super::file::regular;
use crate::backend::Result;

/// How long to wait for an administrator's sqlite3 that holds the file.
const BUSY: Duration = Duration::from_secs(5);
/// KiB of pages that the writer keeps. It looks through all of them at a commit that has split a page (pcache1.c,
/// pcache1TruncateUnsafe), so more of them cost more than they save: what it reads again, the system still has.
const WRITER_CACHE: u32 = 8192;
/// KiB of pages that each reader keeps: those that lead to the objects. What is read of the objects stays nowhere but
/// with whoever reads it.
const READER_CACHE: u32 = 4096;

/// The one that writes.
pub(super) fn writer(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = of_server(path)?;
    if connection.is_readonly(MAIN_DB)? {
        // SQLite reads what it may not write, and would say so at each write.
        let why = "it may not be written to: make the server's user its owner".to_owned();
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), Some(why)));
    }
    // Until it is known to be whole, nothing may be written to it, not even its own write-ahead log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let page: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, u32>(0))?.into();
    let pages = options.max_file.map_or(0xffff_fffe, |bytes| bytes / page.max(1));
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{WRITER_CACHE};
         PRAGMA journal_size_limit = 67108864;
         PRAGMA max_page_count = {pages};"
    ))?;
    Ok(connection)
}

/// One that reads.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = of_server(path)?;
    // The one that writes copies the log into the file when it is closed, unless the disk has failed it (checkpoints.rs).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE};"))?;
    Ok(connection)
}

/// One that nobody else is connected beside, or there is none. It knows nothing of what others did, and reads the log from
/// its beginning.
pub(super) fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;")?;
    Ok(connection)
}

fn of_server(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // Else a statement is planned anew whenever a bound of a range is bound to another value: at each write
    // (sqlite.org/c3ref/c_dbconfig_defensive.html, SQLITE_DBCONFIG_ENABLE_QPSG). There is one plan for each of ours.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// A connection that never writes to the file; it needs no lock, whoever has the file in use.
pub(super) fn to_read(path: &Path) -> Result<Connection> {
    let file = regular(path)?;
    if file.len() == 0 {
        return damaged("it is not a SQLite file: it is empty").map_err(|error| named(path, error));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags);
    let connection = connection.map_err(translate).map_err(|error| named(path, error))?;
    connection.busy_timeout(BUSY).map_err(translate)?;
    Ok(connection)
}

/// A connection for a change beside what servers write: whoever makes it has the lock of the store.
pub(super) fn to_change(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(translate)?;
    connection.busy_timeout(BUSY).map_err(translate)?;
    // SQLite says nothing of a sync that fails in a checkpoint of its own.
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0").map_err(translate)?;
    Ok(connection)
}
