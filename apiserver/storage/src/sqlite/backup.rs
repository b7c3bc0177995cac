//! A consistent copy, made while the store is in use.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::Connection;

use super::error::translate;
use super::open::{beside, io, private, sync_directory};
use crate::backend::{BackendError, Result};

/// Copies everything into a new file. SQLite does not make the copy durable, so it gets its name when it is.
pub(super) fn copy(connection: &Connection, to: &Path) -> Result<()> {
    if fs::exists(to).map_err(|error| io(to, &error))? {
        return Err(BackendError::Unavailable(format!(
            "{} exists; a backup overwrites nothing",
            to.display()
        )));
    }
    let part = beside(to, ".part");
    // SQLite takes an empty file, and keeps its permissions.
    let _ = fs::remove_file(&part);
    private(&part).map_err(|error| io(&part, &error))?;
    let copied = vacuum_into(connection, &part).and_then(|()| {
        let named = File::open(&part).and_then(|file| file.sync_all()).and_then(|()| fs::rename(&part, to));
        named.and_then(|()| sync_directory(to)).map_err(|error| io(to, &error))
    });
    if copied.is_err() {
        // What is left of it helps nobody, and the error that matters is the first.
        let _ = fs::remove_file(&part);
    }
    copied
}

/// The copy has the same tables, history and stamp. SQLite wants a connection that may write, although it does
/// not write to this file.
fn vacuum_into(connection: &Connection, part: &Path) -> Result<()> {
    let name = part.to_str().ok_or_else(|| BackendError::Unavailable("the path is not UTF-8".to_owned()))?;
    connection.pragma_update(None, "query_only", false).map_err(translate)?;
    let copied = connection.execute("VACUUM INTO ?1", [name]).map(|_| ()).map_err(translate);
    connection.pragma_update(None, "query_only", true).map_err(translate)?;
    copied
}
