//! The marks of a store whose objects are being moved or have been moved to another store. No server starts on a
//! marked store: its writes would be left behind, or its revisions would be given out by the other store for other
//! objects.

use std::path::Path;

use drydock_storage::backend::{BackendError, Result, Revision};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::checkpoints::recopy_log;
use crate::copy::raise_within;
use crate::error::{damaged, named, translate};
use crate::file::{check_header, resolve_links};
use crate::lock::Lock;
use crate::{connect, schema};

/// Marks a store whose objects are about to be moved. The caller must have the store open.
pub fn begin_move(path: &Path, place: &str, attempt: u64) -> Result<()> {
    change(path, |transaction| {
        clear(transaction)?;
        transaction.execute_batch(schema::MOVING).map_err(translate)?;
        let row = transaction
            .execute("INSERT INTO moving (place, attempt) VALUES (?1, ?2)", params![place, attempt]);
        row.map(drop).map_err(translate)
    })
}

/// Marks a store whose objects have all been moved.
pub fn end_move(path: &Path, place: &str) -> Result<()> {
    change(path, |transaction| {
        clear(transaction)?;
        transaction.execute_batch(schema::MOVED).map_err(translate)?;
        transaction.execute("INSERT INTO moved (place) VALUES (?1)", [place]).map(drop).map_err(translate)
    })
}

/// Removes the mark of a move that did not take place.
pub fn undo_move(path: &Path) -> Result<()> {
    change(path, clear)
}

/// Returns the number of the attempt that was aborted on this store; `None` if it is not marked.
pub fn attempt(path: &Path) -> Result<Option<u64>> {
    let connection = connect::to_change(&resolve_links(path)?)?;
    match has_mark(&connection, "moving", schema::MOVING)? {
        false => Ok(None),
        true => {
            let read = connection.query_row("SELECT attempt FROM moving", [], |row| row.get(0));
            read.map(Some).map_err(translate)
        }
    }
}

/// Fails if the store is marked. With `leaving`, a store that is being moved is accepted.
pub(super) fn refuse(connection: &Connection, leaving: bool) -> Result<()> {
    match (target(connection, "moved", schema::MOVED)?, target(connection, "moving", schema::MOVING)?) {
        (Some(place), _) => Err(BackendError::has_moved(&place)),
        (None, Some(place)) if !leaving => Err(BackendError::is_being_moved(&place)),
        (None, _) => Ok(()),
    }
}

/// Removes the marks. Revisions continue `bump` above the last one, and the history below is discarded: clients have
/// seen revisions of the store that the objects were moved to. Returns the new revision. Fails if the store is not
/// marked.
pub fn reclaim(path: &Path, bump: u64) -> Result<Revision> {
    let path = &resolve_links(path)?;
    let lock = Lock::take(path)?;
    check_header(path)?;
    recopy_log(path, &lock)?;
    change(path, |transaction| {
        if refuse(transaction, false).is_ok() {
            return Err(BackendError::Unavailable(format!("{} has not been moved", path.display())));
        }
        clear(transaction)?;
        raise_within(transaction, bump)
    })
}

/// Returns where the objects are, or are being moved to, if the store has this mark.
fn target(connection: &Connection, table: &str, made: &str) -> Result<Option<String>> {
    match has_mark(connection, table, made)? {
        false => Ok(None),
        true => {
            let select = format!("SELECT place FROM {table}");
            connection.query_row(&select, [], |row| row.get(0)).map(Some).map_err(translate)
        }
    }
}

fn has_mark(connection: &Connection, table: &str, made: &str) -> Result<bool> {
    let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
    let found: Option<String> =
        connection.query_row(sql, [table], |row| row.get(0)).optional().map_err(translate)?;
    match found {
        None => Ok(false),
        Some(sql) if sql != made => damaged("its mark of a move cannot be read"),
        Some(_) => Ok(true),
    }
}

fn clear(transaction: &Connection) -> Result<()> {
    transaction.execute_batch("DROP TABLE IF EXISTS moving; DROP TABLE IF EXISTS moved;").map_err(translate)
}

/// Runs `work` in one transaction on a connection of its own.
fn change<T>(path: &Path, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let path = &resolve_links(path)?;
    let mut connection = connect::to_change(path)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(translate)?;
    let done = work(&transaction).map_err(|error| named(path, error))?;
    transaction.commit().map_err(translate)?;
    connection.close().map_err(|(_, error)| translate(error))?;
    Ok(done)
}
