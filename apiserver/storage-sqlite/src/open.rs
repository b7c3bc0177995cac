//! Opens or creates a store. A file that belongs to another application or is damaged is not changed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use drydock_storage::backend::{BackendError, Result, Revision};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::checkpoints::recopy_log;
use crate::error::{io, named, translate};
use crate::file::{
    OpenFiles, check_header, create_private, no_stray_log, recover_creation, resolve_links, sync_directory,
    with_suffix,
};
use crate::lock::Lock;
use crate::{SqliteOptions, compaction, connect, moved, schema};

/// An opened store.
pub(super) struct Opened {
    /// Held by the writer as long as it runs.
    pub lock: Arc<Lock>,
    /// The names of the store's files, and the files that they refer to.
    pub files: OpenFiles,
    /// The connection that writes.
    pub writer: Connection,
    /// The connections that read.
    pub readers: Vec<Connection>,
    /// The newest revision.
    pub revision: Revision,
}

/// Opens a store, or makes one if there is no file.
pub(super) fn open(path: &Path, options: &SqliteOptions) -> Result<Opened> {
    let path = &resolve_links(path)?;
    let lock = Lock::take(path)?;
    recover_creation(path)?;
    match fs::exists(path) {
        Ok(true) => check_header(path)?,
        Ok(false) => no_stray_log(path).and_then(|()| create(path))?,
        Err(error) => return Err(io(path, &error)),
    }
    recopy_log(path, &lock)?;
    let writer = connect::writer(path, options).map_err(translate).map_err(|error| named(path, error))?;
    let revision = validate(&writer, path, options.leaving)?;
    let files = OpenFiles::of(path)?;
    let readers = (0..options.readers.max(1)).map(|_| connect::reader(path));
    let readers = readers.collect::<rusqlite::Result<_>>().map_err(translate)?;
    Ok(Opened { lock: Arc::new(lock), files, writer, readers, revision })
}

/// Creates the file under another name and renames it, so that a file of this name is always complete.
fn create(path: &Path) -> Result<()> {
    let new = with_suffix(path, ".new");
    drop(make(&new)?);
    connect::enable_wal(&new)?;
    let moved = fs::rename(&new, path).and_then(|()| sync_directory(path));
    moved.map_err(|error| io(path, &error))
}

/// Creates an empty store under its temporary name.
pub(super) fn make(new: &Path) -> Result<Connection> {
    create_private(new).map_err(|error| io(new, &error))?;
    let connection = Connection::open(new).map_err(translate)?;
    let store_format = format!(
        "PRAGMA synchronous = FULL; PRAGMA application_id = {}; PRAGMA user_version = {};",
        schema::APPLICATION_ID,
        schema::VERSION
    );
    connection.execute_batch(&store_format).map_err(translate)?;
    connection.execute_batch(&format!("BEGIN; {} COMMIT;", schema::CREATE)).map_err(translate)?;
    Ok(connection)
}

/// Reads what every operation needs, and returns the newest revision. It does not read all pages, which would take
/// long for a large file; an operation that meets other damage reports it.
fn validate(connection: &Connection, path: &Path, leaving: bool) -> Result<Revision> {
    let damaged = |error| match named(path, error) {
        BackendError::Unavailable(text) => BackendError::Corrupt(text),
        other => other,
    };
    let revision = compaction::newest(connection).map_err(damaged)?;
    connection.prepare(schema::RANGE).map_err(translate).map_err(damaged)?;
    connection.prepare(schema::EVENTS).map_err(translate).map_err(damaged)?;
    moved::refuse(connection, leaving).map_err(|error| named(path, error))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(translate)?;
    Ok(revision)
}
