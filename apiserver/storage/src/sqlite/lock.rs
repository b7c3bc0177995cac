//! The lock beside the file: one process at a time writes there. What one that had it tells the next stands in it.

use std::fs::{File, TryLockError};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use super::error::{io, is_of_a_sync, translate};
use super::file::{OWNERS_ALONE, beside};
use crate::backend::{BackendError, Result};

/// What it ends with.
pub(super) const SUFFIX: &str = ".lock";
/// Stands in it after a failed sync. It need not outlive the system: what was not synced does not either.
const UNSYNCED: &[u8] =
    b"A sync has failed: all of the log is copied into the file before anything else is written.\n";

/// The lock; the system drops it with the process, however that ends.
pub(super) struct Lock(File);

impl Lock {
    /// Takes it.
    pub fn take(path: &Path) -> Result<Self> {
        let beside = beside(path, SUFFIX);
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

    /// Translates an error, and notes it down if it is that of a sync: the system shows what it may have dropped.
    pub fn note(&self, error: rusqlite::Error) -> BackendError {
        if is_of_a_sync(&error) {
            self.set_unsynced();
        }
        translate(error)
    }

    /// Notes that a sync has failed.
    pub fn set_unsynced(&self) {
        if let Err(error) = self.0.write_all_at(UNSYNCED, 0) {
            tracing::warn!(%error, "it is not noted down that the disk failed to sync");
        }
    }

    /// Whether one has failed.
    pub fn is_unsynced(&self) -> std::io::Result<bool> {
        self.0.metadata().map(|file| file.len() > 0)
    }

    /// Notes that all is synced.
    pub fn set_synced(&self) -> std::io::Result<()> {
        self.0.set_len(0)
    }
}

/// Closing the file does not let go of the lock while a process that is being started holds a copy of it, between its fork
/// and its exec; unlocking does.
impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the lock of the store is kept until the process ends");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A store that was closed and opened again was in use by another process, as somebody had just begun to start one.
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
