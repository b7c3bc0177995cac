//! Creates a store from the pairs of another store, with the revisions that they have there.

use std::fs;
use std::path::{Path, PathBuf};

use drydock_storage::backend::{KeyValue, Result, Revision};
use rusqlite::{Connection, params};
use tempfile::TempPath;

use crate::check::{self, Contents, Progress};
use crate::copy::rename_into_place;
use crate::error::{io, translate};
use crate::file::with_suffix;
use crate::lock::{Lock, lock_new};
use crate::open::make;
use crate::row::LogRow;
use crate::{compaction, connect, schema};

/// A store that is being filled. It gets its name when it is finished; if it is dropped before, its file is removed.
pub struct FileImport {
    to: PathBuf,
    new: PathBuf,
    connection: Option<Connection>,
    _lock: Lock,
}

impl FileImport {
    /// Begins a store at `to`. Fails if there is a file already.
    pub fn begin(to: &Path) -> Result<Self> {
        let lock = lock_new(to)?;
        let new = with_suffix(to, ".new");
        let connection = make(&new)?;
        Ok(Self { to: to.to_owned(), new, connection: Some(connection), _lock: lock })
    }

    /// Adds pairs at their revisions. A pair that replaced another names a row that counts as compacted.
    pub fn add(&mut self, pairs: &[KeyValue]) -> Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let transaction = connection.transaction().map_err(translate)?;
        for pair in pairs {
            let (created, modified) = (pair.create_revision.0, pair.mod_revision.0);
            let replaced = if created == modified { 0 } else { created };
            let row = LogRow {
                revision: modified,
                key: &pair.key,
                create_revision: created,
                prev_revision: replaced,
                value: Some(&pair.value),
            };
            row.insert(&transaction)?;
        }
        transaction.commit().map_err(translate)
    }

    /// Finishes the store at `revision`. Earlier revisions cannot be read. `attempt` identifies this import.
    pub fn finish(mut self, revision: Revision, attempt: u64, progress: &Progress) -> Result<Contents> {
        if let Some(connection) = self.connection.take() {
            for name in ["compacted", "scrubbed"] {
                connection.execute(schema::SET, params![name, revision.0]).map_err(translate)?;
            }
            connection.execute(schema::MADE_BY, [attempt]).map_err(translate)?;
            connection.close().map_err(|(_, error)| translate(error))?;
        }
        let contents = check::check(&self.new, progress)?;
        connect::enable_wal(&self.new)?;
        let new = TempPath::try_from_path(&self.new).map_err(|error| io(&self.new, &error))?;
        rename_into_place(new, &self.to)?;
        Ok(contents)
    }
}

/// Returns the newest revision of the store at `path` if the import `attempt` created it; `None` otherwise.
pub fn imported(path: &Path, attempt: u64) -> Option<Revision> {
    let connection = connect::to_read(path).ok()?;
    let number = compaction::number(&connection, "import").ok().filter(|number| *number == attempt);
    number.and_then(|_| compaction::newest(&connection).ok())
}

impl Drop for FileImport {
    /// Removes an unfinished file. A finished one has been renamed.
    fn drop(&mut self) {
        self.connection = None;
        if let Err(error) = fs::remove_file(&self.new)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(error = %io(&self.new, &error), "cannot remove the unfinished import file");
        }
    }
}
