//! The lock file beside the store: only the process that holds its lock writes to the store. The file also records a
//! failed sync for the next process.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use drydock_storage::backend::{BackendError, Result};

use crate::error::{io, is_of_a_sync, translate};
use crate::file::{LOCK, OWNERS_ALONE, no_stray_log, recover_creation, resolve_links, with_suffix};

/// The content of the lock file after a failed sync. It need not survive a crash of the system: unsynced data does
/// not survive it either.
const UNSYNCED: &[u8] =
    b"A sync has failed: all of the log is copied into the file before anything else is written.\n";

/// The lock. The operating system releases it when the process ends, for any reason.
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock. Fails if another process holds it.
    pub fn take(path: &Path) -> Result<Self> {
        let beside = with_suffix(path, LOCK);
        let file = File::options().create(true).truncate(false).write(true).mode(OWNERS_ALONE).open(&beside);
        let file = file.map_err(|error| io(&beside, &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(BackendError::Unavailable(format!(
                "{} is in use by another process: stop it first",
                path.display()
            ))),
            Err(TryLockError::Error(error)) => Err(io(&beside, &error)),
        }
    }

    /// Translates an error. If it is a failed sync, records it in the lock file, because the system may have dropped
    /// the pages that it still shows.
    pub fn note(&self, error: rusqlite::Error) -> BackendError {
        if is_of_a_sync(&error) {
            self.set_unsynced();
        }
        translate(error)
    }

    /// Records that a sync has failed.
    pub fn set_unsynced(&self) {
        if let Err(error) = self.0.write_all_at(UNSYNCED, 0) {
            tracing::warn!(%error, "cannot record the failed fsync in the lock file");
        }
    }

    /// Whether a failed sync is recorded.
    pub fn is_unsynced(&self) -> std::io::Result<bool> {
        self.0.metadata().map(|file| file.len() > 0)
    }

    /// Records that everything is synced.
    pub fn set_synced(&self) -> std::io::Result<()> {
        self.0.set_len(0)
    }
}

/// Unlocks explicitly: a child process between fork and exec has a copy of the file handle, which would keep the lock
/// after the file is closed here.
impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the lock of the store is kept until the process ends");
        }
    }
}

/// Takes the lock for a new store, and removes the files of an aborted attempt. Fails if there is a store already.
pub(super) fn lock_new(path: &Path) -> Result<Lock> {
    let path = &resolve_links(path)?;
    let lock = Lock::take(path)?;
    if fs::exists(path).map_err(|error| io(path, &error))? {
        let why = format!("{} exists, and nothing is overwritten: name an empty folder", path.display());
        return Err(BackendError::Unavailable(why));
    }
    no_stray_log(path)?;
    recover_creation(path)?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Regression: a store that was closed and opened again seemed to be in use, because another thread
    /// was just starting a child process.
    #[test]
    fn a_lock_that_is_dropped_is_free_whoever_holds_a_copy_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let lock = Lock::take(&path).unwrap();
        let copy = lock.0.try_clone().unwrap();
        assert!(Lock::take(&path).is_err(), "one at a time");
        drop(lock);
        assert!(Lock::take(&path).is_ok());
        drop(copy);
    }
}
