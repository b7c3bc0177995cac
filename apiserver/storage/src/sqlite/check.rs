//! Is a file a whole store of ours? Reads every page and every row, in one snapshot, of a file that may be in use.

use std::fmt;
use std::path::Path;

use rusqlite::Connection;

use super::error::{named, translate};
use super::stamp::Stamp;
use super::{connect, history, schema};
use crate::backend::{BackendError, Result, Revision};
use crate::progress::Progress;

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest that can be read.
    pub oldest: Revision,
    /// Keys that exist.
    pub keys: u64,
    /// Rows, history among them.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { revision, oldest, keys, rows, bytes } = self;
        let (revision, oldest) = (revision.0, oldest.0);
        write!(f, "revision {revision}, oldest {oldest}, {keys} keys, {rows} rows, {bytes} bytes")
    }
}

/// Whether the pages are sound, the stamp and the tables are ours, each key's history fits together, no revision is
/// missing, and the values are what they should be. Writes nothing.
pub fn check(path: &Path, progress: &Progress) -> Result<Contents> {
    let connection = connect::to_read(path)?;
    whole(&connection, progress).map_err(|error| named(path, error))
}

fn whole(connection: &Connection, progress: &Progress) -> Result<Contents> {
    Stamp::read(connection)?.is_ours()?;
    let snapshot = connection.unchecked_transaction().map_err(translate)?;
    progress.tell("checking pages", 0, 0);
    pages(&snapshot)?;
    tables(&snapshot)?;
    let bounds = history::Bounds::read(&snapshot)?;
    let (keys, rows) = history::check(&snapshot, &bounds, progress)?;
    let pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    let bytes = snapshot.query_row(pages, [], |row| row.get(0)).map_err(translate)?;
    Ok(Contents { revision: Revision(bounds.newest), oldest: Revision(bounds.compacted), keys, rows, bytes })
}

/// SQLite's own check (sqlite.org/pragma.html#pragma_integrity_check): pages, types, the index.
fn pages(snapshot: &Connection) -> Result<()> {
    let said: String =
        snapshot.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(translate)?;
    if said == "ok" { Ok(()) } else { damaged(said.lines().collect::<Vec<_>>().join(" ")) }
}

/// The tables are those that we would make.
fn tables(snapshot: &Connection) -> Result<()> {
    let model = Connection::open_in_memory().map_err(translate)?;
    model.execute_batch(schema::CREATE).map_err(translate)?;
    let mut tables = made(snapshot)?;
    tables.retain(|sql| sql != schema::MOVED && sql != schema::MOVING);
    match tables == made(&model)? {
        true => Ok(()),
        false => damaged(format!("its tables are not those of layout {}", schema::VERSION)),
    }
}

/// The statements that made the tables; SQLite keeps statistics in tables of its own.
fn made(connection: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(sql).map_err(translate)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(translate)?;
    rows.collect::<Result<_, _>>().map_err(translate)
}

/// What is wrong with it.
pub(super) fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(BackendError::Corrupt(what.into()))
}
