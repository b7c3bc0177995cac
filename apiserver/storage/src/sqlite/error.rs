//! SQLite's errors in the seam's terms.

use rusqlite::ErrorCode;

use crate::backend::BackendError;

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
