//! Checkpoints of the write-ahead log beside running writes, and what follows when the disk fails to sync.
//!
//! A checkpoint that a reader blocks copies a part of the log and does not sync it: the next checkpoint syncs that
//! part together with the rest, and does not copy it again. If that sync fails, the system may have dropped the part
//! as well (Linux marks pages that it could not write as clean). After a later sync that succeeds, SQLite would
//! restart the log although the file lacks pages of it. So a failed sync closes the store for writes: the log is
//! kept, and the next process that opens the store copies all of it before anything else. This works only while no
//! other process has the file open: otherwise SQLite would continue after the last checkpoint. The lock file records
//! that the copy is due (lock.rs).
//!
//! A sync that fails in a commit does not close the store: SQLite rolls the commit back, and the next commit
//! overwrites it in the log. But the next process that opens the store would find it in the log and write behind it,
//! so the lock file records this failure too.

use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use crate::connect;
use crate::error::{StoreFault, busy, io, is_of_a_sync, named, translate};
use crate::lock::Lock;

/// Runs a checkpoint after each commit of the connection that leaves at least `pages` pages in the log.
pub(super) fn start(
    connection: &mut Connection,
    pages: u32,
    lock: Arc<Lock>,
    fault: StoreFault,
) -> rusqlite::Result<()> {
    let most = c_int::try_from(pages).unwrap_or(c_int::MAX);
    connection.wal_hook(Some(move |log: &mut Wal, pages| {
        if pages >= most
            && !fault.is_recorded()
            && let Err(error) = log.checkpoint()
        {
            failed(&error, &lock, &fault);
        }
        // What was committed is durable, whether or not the checkpoint succeeds.
        Ok(())
    }))
}

/// Handles an error of a checkpoint. A failed sync ends the store; after any other error the next checkpoint
/// continues.
fn failed(error: &rusqlite::Error, lock: &Lock, fault: &StoreFault) {
    if is_of_a_sync(error) {
        lock.set_unsynced();
        fault.record(format!("fsync failed ({error}): check the disk, then restart the server"));
    } else {
        tracing::warn!(%error, "WAL checkpoint failed; retrying");
    }
}

/// Makes closing the connection leave the log in place.
pub(super) fn leave_log(connection: &Connection) {
    // This sets a flag in memory and cannot fail.
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    debug_assert!(set.is_ok());
}

/// Copies the whole log into the file, and truncates the log. Fails with `SQLITE_BUSY` if another connection blocks
/// it.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    let held: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if held { Err(busy()) } else { Ok(()) }
}

/// After a failed sync, copies the whole log again, including the parts that were copied before. SQLite reads the log
/// from its beginning only for a process that has the file exclusively. Does nothing if the lock file records no
/// failed sync.
pub(super) fn recopy_log(path: &Path, lock: &Lock) -> Result<()> {
    if !lock.is_unsynced().map_err(|error| io(path, &error))? {
        return Ok(());
    }
    let copied = connect::alone(path).and_then(|connection| empty_log(&connection));
    copied.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy) => BackendError::Unavailable(
            "the disk has failed to sync it, and another process has it open, which keeps its log from being copied \
             anew: stop that first (a backup, sqlite3)"
                .to_owned(),
        ),
        _ => translate(error),
    })
    .map_err(|error| named(path, error))?;
    lock.set_synced().map_err(|error| io(path, &error))
}
