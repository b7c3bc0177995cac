//! Opens connections to a store: the writer's, the readers', and those of the data commands.

use std::path::Path;
use std::time::Duration;

use drydock_storage::backend::Result;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags, ffi};

use crate::SqliteOptions;
use crate::error::{damaged, named, translate};
use crate::file::regular;

/// How long to wait if another process, such as an administrator's sqlite3, holds a lock on the file.
const BUSY: Duration = Duration::from_secs(5);
/// The page cache of the writer, in KiB. A commit that has split a page scans the whole cache (pcache1.c,
/// pcache1TruncateUnsafe), so a larger cache costs more than it saves: pages that are read again are still in the
/// system's cache.
const WRITER_CACHE: u32 = 8192;
/// The page cache of each reader, in KiB: enough for the pages that lead to the objects. Pages of objects are not
/// cached; only the reader of an object keeps it.
const READER_CACHE: u32 = 4096;

/// Opens the connection that writes. Fails if the file is read-only.
pub(super) fn writer(path: &Path, options: &SqliteOptions) -> rusqlite::Result<Connection> {
    let connection = of_server(path)?;
    if connection.is_readonly(MAIN_DB)? {
        // SQLite opens a read-only file without an error, and then fails at each write.
        let why = "it may not be written to: make the server's user its owner".to_owned();
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), Some(why)));
    }
    // Until the store is known to be complete, closing the connection must not copy its write-ahead log into the
    // file.
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

/// Opens a connection that reads.
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let connection = of_server(path)?;
    // Only the writer's connection copies the log into the file when it is closed, unless the disk has failed to sync
    // it (checkpoints.rs).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute_batch(&format!("PRAGMA query_only = ON; PRAGMA cache_size = -{READER_CACHE};"))?;
    Ok(connection)
}

/// Opens a connection that has the file exclusively. Using it fails if another connection is open. It does not use
/// the shared memory of earlier connections, and reads the log from its beginning.
pub(super) fn alone(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;")?;
    Ok(connection)
}

fn of_server(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // Without this, SQLite plans a statement again whenever a bound of a range changes, which is at each write
    // (sqlite.org/c3ref/c_dbconfig_defensive.html, SQLITE_DBCONFIG_ENABLE_QPSG). Each of our statements has one plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(connection)
}

/// Opens a connection that never writes to the file. It needs no lock, even if another process uses the file.
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

/// Opens a connection that changes the store outside of a server. The caller must hold the lock of the store.
pub(super) fn to_change(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(translate)?;
    connection.busy_timeout(BUSY).map_err(translate)?;
    // SQLite does not report a sync that fails in an automatic checkpoint.
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0").map_err(translate)?;
    Ok(connection)
}

/// Switches a new store to its write-ahead log before it gets its name. A later switch would use a rollback journal,
/// whose deletion a power failure may undo; then a process that may only read could not open the file.
pub(super) fn enable_wal(new: &Path) -> Result<()> {
    let connection = to_change(new)?;
    connection.execute_batch("PRAGMA journal_mode = WAL").map_err(translate)?;
    connection.close().map_err(|(_, error)| translate(error))
}
