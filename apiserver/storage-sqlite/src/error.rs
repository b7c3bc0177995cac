//! Maps errors of SQLite and of the file system to [`BackendError`], and keeps the fault that ended an open store.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use drydock_storage::backend::{BackendError, Result};
use rusqlite::{ErrorCode, ffi};

/// The error for a file that is opened only for reading and has a rollback journal (sqlite.org/atomiccommit.html,
/// 4.1).
const BROKEN_OFF: &str = "a change of it was broken off, and what it was before stands in the -journal beside it, which \
                          must stay there: start a server on it once, which undoes the change, and try again";

/// Translates an error of a statement or a commit that was rolled back.
pub(super) fn translate(error: rusqlite::Error) -> BackendError {
    let text = error.to_string();
    match &error {
        rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::DiskFull => {
                BackendError::NoSpace(format!("{text}: make room on the disk of --data-dir"))
            }
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
                BackendError::Corrupt(text)
            }
            ErrorCode::ReadOnly if failure.extended_code == ffi::SQLITE_READONLY_ROLLBACK => {
                BackendError::Unavailable(BROKEN_OFF.to_owned())
            }
            ErrorCode::TooBig => BackendError::TooLarge,
            _ => BackendError::Unavailable(text),
        },
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::QueryReturnedNoRows => BackendError::Corrupt(text),
        _ => BackendError::Unavailable(text),
    }
}

/// Logs an `Unavailable` error and returns the outcome. Errors that refuse all writes are logged when the refusal
/// begins.
pub(super) fn log_unavailable<T>(outcome: Result<T>) -> Result<T> {
    outcome.inspect_err(|error| {
        if let BackendError::Unavailable(why) = error {
            tracing::warn!(why, "the embedded store failed");
        }
    })
}

/// Whether the error is a failed sync.
pub(super) fn is_of_a_sync(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_IOERR_FSYNC)
}

/// The error for a file that other connections keep busy.
pub(super) fn busy() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None)
}

/// The error for a damaged file.
pub(super) fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(BackendError::Corrupt(what.into()))
}

/// Adds the file name to an error.
pub(super) fn named(path: &Path, error: BackendError) -> BackendError {
    match error {
        BackendError::Corrupt(text) => BackendError::Corrupt(format!("{}: {text}", path.display())),
        BackendError::Unavailable(text) => BackendError::Unavailable(format!("{}: {text}", path.display())),
        other => other,
    }
}

/// Translates an error of the file system, with the file name.
pub(super) fn io(path: &Path, error: &std::io::Error) -> BackendError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            BackendError::NoSpace(format!("{}: {error}", path.display()))
        }
        _ => BackendError::Unavailable(format!("{}: {error}", path.display())),
    }
}

/// The fault that ended an open store, which accepts no writes until it is opened again; clones share it.
#[derive(Clone, Default)]
pub(super) struct StoreFault(Arc<OnceLock<String>>);

impl StoreFault {
    /// Records a fault. The first one recorded is kept.
    pub fn record(&self, why: String) {
        tracing::error!(why, "refusing writes until the store is reopened");
        let _ = self.0.set(why);
    }

    /// Whether a fault is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.get().is_some()
    }

    /// Returns the recorded fault.
    pub fn why(&self) -> Option<String> {
        self.0.get().cloned()
    }

    /// Returns the error that every later write gets; `None` if there is no fault.
    pub fn refusal(&self) -> Option<BackendError> {
        self.why().map(BackendError::Closed)
    }
}
