//! The write-ahead log is copied into the file while writes go on; and what it means when the disk fails meanwhile.
//!
//! A checkpoint that a reader holds up copies a part of the log and syncs nothing: the next one syncs that part with the
//! rest, and does not copy it again. When this sync fails, the system may have dropped the part too (Linux takes what it
//! could not write for written), and after a later sync that succeeds SQLite would begin the log anew, though the file
//! lacks pages of it. So a failed sync ends this opening of the store: the log stays, and who opens it next copies all of
//! it.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ffi};

/// The checkpoints that come with the commits of one connection.
pub(super) struct Checkpoints {
    failed: Arc<OnceLock<String>>,
}

impl Checkpoints {
    /// From now on there is one behind each commit that leaves so many pages in the log, or more.
    pub fn start(connection: &mut Connection, pages: u32) -> rusqlite::Result<Self> {
        let failed = Arc::new(OnceLock::new());
        let (most, found) = (c_int::try_from(pages).unwrap_or(c_int::MAX), failed.clone());
        connection.wal_hook(Some(move |log: &mut Wal, pages| {
            if pages >= most
                && let Err(error) = log.checkpoint()
            {
                note(&found, &error);
            }
            // What was committed is durable, whatever comes of the copy.
            Ok(())
        }))?;
        Ok(Self { failed })
    }

    /// Whether the disk failed to sync what was copied: then the connection leaves the log as it is when it is closed.
    pub fn failed(&self, connection: &Connection) -> bool {
        let Some(why) = self.failed.get() else { return false };
        tracing::error!(why, "the disk failed to sync: no write is taken until the store is opened again");
        // It is set in memory alone.
        let set = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        debug_assert!(set.is_ok());
        true
    }
}

/// Another error leaves what was copied where it is: the next checkpoint goes on from there.
fn note(failed: &OnceLock<String>, error: &rusqlite::Error) {
    let is_sync = |error: &ffi::Error| error.extended_code == ffi::SQLITE_IOERR_FSYNC;
    match error.sqlite_error().is_some_and(is_sync) {
        true => drop(failed.set(error.to_string())),
        false => tracing::warn!(%error, "the log is not copied into the file; trying again"),
    }
}
