//! The write-ahead log is copied into the file while writes go on; and what it means when the disk fails meanwhile.
//!
//! A checkpoint that a reader holds up copies a part of the log and syncs nothing: the next one syncs that part with the
//! rest, and does not copy it again. When this sync fails, the system may have dropped the part too (Linux takes what it
//! could not write for written), and after a later sync that succeeds SQLite would begin the log anew, though the file
//! lacks pages of it. So a failed sync ends this opening of the store: the log stays, and whoever opens it next copies all
//! of it before anything else. That takes nobody else who has the file open, as SQLite would go on where the last
//! checkpoint was; the lock tells of it (lock.rs).
//!
//! A sync that fails in a commit ends nothing: SQLite takes the commit back, and the next one writes in its place. Who
//! opens the store next would find it there, though, and write behind it: so the lock tells of that as well.

use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::connect;
use super::error::{busy, io, is_of_a_sync, named, translate};
use super::lock::Lock;
use super::store_fault::StoreFault;
use crate::backend::{BackendError, Result};

/// Copies what is in the log behind each commit of the connection that leaves so many pages in it, or more.
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
        // What was committed is durable, whatever comes of the copy.
        Ok(())
    }))
}

/// An error other than that of a sync leaves what was copied where it is: the next checkpoint goes on from there.
fn failed(error: &rusqlite::Error, lock: &Lock, fault: &StoreFault) {
    if is_of_a_sync(error) {
        lock.set_unsynced();
        fault.record(format!("the disk failed to sync ({error}): see to it, and start the server again"));
    } else {
        tracing::warn!(%error, "the log is not copied into the file; trying again");
    }
}

/// The log stays as it is when the connection is closed.
pub(super) fn leave_log(connection: &Connection) {
    // It is set in memory alone.
    let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    debug_assert!(set.is_ok());
}

/// Copies all that is in the log, and empties it.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    let held: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if held { Err(busy()) } else { Ok(()) }
}

/// Copies all that is in the log after a failed sync, whatever was copied before. Only somebody who is alone with the
/// file makes SQLite read the log from its beginning.
pub(super) fn make_up(path: &Path, lock: &Lock) -> Result<()> {
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
