//! Checks whether a file is a complete store: reads every page and every row in one snapshot, also of a file that is
//! in use. Reports its progress, as every long work on a store does.

mod log;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use drydock_storage::backend::{Result, Revision};
use rusqlite::Connection;

use crate::error::{damaged, named, translate};
use crate::schema::StoreFormat;
use crate::{connect, schema};

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest that can be read.
    pub oldest: Revision,
    /// Keys that exist.
    pub keys: u64,
    /// Rows, including history.
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

/// Checks that SQLite's pages are sound, that the format and the tables are those of this store, that the rows of each
/// key fit together, that no revision is missing, and that every value can be decoded. Writes nothing.
pub fn check(path: &Path, progress: &Progress) -> Result<Contents> {
    let connection = connect::to_read(path)?;
    whole(&connection, progress).map_err(|error| named(path, error))
}

fn whole(connection: &Connection, progress: &Progress) -> Result<Contents> {
    StoreFormat::read(connection)?.is_ours()?;
    let snapshot = connection.unchecked_transaction().map_err(translate)?;
    progress.report("checking pages", 0, 0);
    pages(&snapshot)?;
    tables(&snapshot)?;
    let bounds = log::LogBounds::read(&snapshot)?;
    let (keys, rows) = log::check(&snapshot, &bounds, progress)?;
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

/// Checks that the tables are those that this version creates.
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

/// Returns the statements that created the tables and indexes, without SQLite's own statistics tables.
fn made(connection: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(sql).map_err(translate)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(translate)?;
    rows.collect::<Result<_, _>>().map_err(translate)
}

/// The progress of one stage of a long operation on a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressStage {
    /// The name of the stage.
    pub name: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is to do; 0 if unknown.
    pub total: u64,
}

/// Receives a progress report from time to time.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(ProgressStage) + Send + Sync>);

impl Progress {
    /// Passes each report to `receive`.
    pub fn new(receive: impl Fn(ProgressStage) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Ignores all reports.
    pub fn silent() -> Self {
        Self::new(|_| ())
    }

    /// Reports how much of a stage is done.
    pub fn report(&self, name: &'static str, done: u64, total: u64) {
        (self.0)(ProgressStage { name, done, total });
    }
}
