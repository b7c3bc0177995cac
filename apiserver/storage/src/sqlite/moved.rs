//! The mark of a store whose objects have been moved elsewhere: no server starts on it, as it would give out revisions
//! that are given out there for other objects.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::check::damaged;
use super::copy::raise_within;
use super::error::translate;
use super::open::{BUSY, lock, named, real, recognise};
use super::schema;
use crate::backend::{BackendError, Result, Revision};
use crate::migrate::has_moved;

/// Marks a store, which the caller has in use.
pub(crate) fn mark(path: &Path, place: &str) -> Result<()> {
    let mut connection = connect(&real(path)?)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(translate)?;
    transaction.execute_batch(schema::MOVED).map_err(translate)?;
    transaction.execute("INSERT INTO moved (place) VALUES (?1)", [place]).map_err(translate)?;
    transaction.commit().map_err(translate)
}

/// Refuses a store that is marked.
pub(super) fn refuse(connection: &Connection) -> Result<()> {
    match place(connection)? {
        Some(place) => Err(has_moved(&place)),
        None => Ok(()),
    }
}

/// Takes the mark away. Revisions go on `bump` above the last one, and what was below is forgotten: clients have seen
/// the revisions of the store to which the objects were moved. Returns the new revision.
pub fn reclaim(path: &Path, bump: u64) -> Result<Revision> {
    let path = &real(path)?;
    let _lock = lock(path)?;
    recognise(path)?;
    let mut connection = connect(path)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(translate)?;
    if place(&transaction).map_err(|error| named(path, error))?.is_none() {
        return Err(BackendError::Unavailable(format!("{} has not been moved", path.display())));
    }
    transaction.execute_batch("DROP TABLE moved").map_err(translate)?;
    let revision = raise_within(&transaction, bump)?;
    transaction.commit().map_err(translate)?;
    connection.close().map_err(|(_, error)| translate(error))?;
    Ok(revision)
}

/// Where the objects are, if they have been moved.
fn place(connection: &Connection) -> Result<Option<String>> {
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'moved'";
    let made: Option<String> =
        connection.query_row(sql, [], |row| row.get(0)).optional().map_err(translate)?;
    match made {
        None => Ok(None),
        Some(sql) if sql != schema::MOVED => damaged("its mark of a move cannot be read"),
        Some(_) => {
            connection.query_row("SELECT place FROM moved", [], |row| row.get(0)).map(Some).map_err(translate)
        }
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(translate)?;
    connection.busy_timeout(BUSY).map_err(translate)?;
    Ok(connection)
}
