//! Compaction: removes old revisions, a few rows at a time, between writes.
//!
//! Every row names the row that it replaced, so compaction finds removable rows by walking the rows written since the
//! last compaction, not the whole store. The row at the boundary stays even if it is a delete: a watch may start
//! there and must see it (etcd once removed it, and a watch from the compaction revision missed the delete).

use drydock_storage::backend::{BackendError, Result, Revision};
use rusqlite::{Connection, params};

use crate::error::translate;
use crate::failpoints;
use crate::lock::Lock;
use crate::{read, schema};

/// The least number of rows walked in one step: few enough that a waiting write is not delayed for long.
pub(super) const STEP: usize = 64;

/// The compaction work that is left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// Rows below this revision are finished.
    scrubbed: u64,
    /// The compaction boundary.
    compacted: u64,
    /// The boundary at which the work failed; it is retried when the boundary moves.
    stalled_at: u64,
}

impl Compaction {
    /// Loads the work that an earlier process left unfinished.
    pub fn load(connection: &Connection) -> Result<Self> {
        let (scrubbed, compacted) = (number(connection, "scrubbed")?, number(connection, "compacted")?);
        Ok(Self { scrubbed, compacted, stalled_at: 0 })
    }

    /// Whether rows remain to be walked.
    pub fn pending(&self) -> bool {
        self.scrubbed < self.compacted && self.stalled_at < self.compacted
    }

    /// Moves the boundary within the caller's transaction. Does nothing if `at` is at or below the present one. The
    /// inner result is an error if `at` is in the future.
    pub fn begin(&mut self, transaction: &Connection, at: Revision, current: Revision) -> Result<Result<()>> {
        if at > current {
            return Ok(Err(BackendError::FutureRevision { requested: at, current }));
        }
        if at.0 > self.compacted {
            set(transaction, "compacted", at.0)?;
            self.compacted = at.0;
        }
        Ok(Ok(()))
    }

    /// Moves the boundary in a transaction of its own.
    pub fn move_to(&mut self, connection: &mut Connection, lock: &Lock, at: Revision) -> Result<()> {
        let transaction = connection.transaction().map_err(translate)?;
        let mut moved = *self;
        moved.begin(&transaction, at, at)??;
        transaction.commit().map_err(|error| lock.note(error))?;
        *self = moved;
        Ok(())
    }

    /// Suspends the work until the boundary moves or the file is opened again.
    pub fn put_off(&mut self) {
        self.stalled_at = self.compacted;
    }

    /// Walks `rows` rows and removes the rows that they made obsolete.
    pub fn step(&mut self, connection: &mut Connection, lock: &Lock, rows: usize) -> Result<()> {
        let transaction = connection.transaction().map_err(translate)?;
        let (rows, upto) = superfluous(&transaction, self.scrubbed, self.compacted, rows)?;
        for revision in rows {
            let mut statement =
                transaction.prepare_cached("DELETE FROM log WHERE revision = ?1").map_err(translate)?;
            statement.execute([revision]).map_err(translate)?;
        }
        set(&transaction, "scrubbed", upto)?;
        failpoints::pass("compaction-walked");
        transaction.commit().map_err(|error| lock.note(error))?;
        failpoints::pass("compaction-committed");
        self.scrubbed = upto;
        Ok(())
    }
}

/// Returns the revisions to remove for the next rows from `from` on: those that they replaced, and the deletes among
/// them; and the revision that the walk reached. The next step, or the next compaction, walks that row again, and may
/// then remove a delete that was at the boundary. Limits rows, not revisions: a restored store has a wide gap below
/// its boundary.
fn superfluous(connection: &Connection, from: u64, boundary: u64, most: usize) -> Result<(Vec<u64>, u64)> {
    let sql = "SELECT revision, prev_revision, deleted FROM log
        WHERE revision >= ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3";
    let mut statement = connection.prepare_cached(sql).map_err(translate)?;
    let mut rows = statement.query(params![from, boundary, most + 1]).map_err(translate)?;
    let (mut found, mut walked, mut last) = (Vec::new(), 0, from);
    while let Some(row) = rows.next().map_err(translate)? {
        let fields = (row.get(0), row.get(1), row.get(2));
        let (revision, previous, deleted): (u64, u64, bool) =
            (fields.0.map_err(translate)?, fields.1.map_err(translate)?, fields.2.map_err(translate)?);
        found.extend((previous > 0).then_some(previous));
        found.extend((deleted && revision < boundary).then_some(revision));
        (walked, last) = (walked + 1, revision);
    }
    Ok((found, if walked > most { last } else { boundary }))
}

pub(super) fn number(connection: &Connection, name: &str) -> Result<u64> {
    let sql = "SELECT number FROM meta WHERE name = ?1";
    connection.query_row(sql, [name], |row| row.get(0)).map_err(translate)
}

fn set(connection: &Connection, name: &str, number: u64) -> Result<()> {
    let mut statement = connection.prepare_cached(schema::SET).map_err(translate)?;
    statement.execute(params![name, number]).map_err(translate)?;
    Ok(())
}

/// Returns the newest revision of an opened file.
pub(super) fn newest(connection: &Connection) -> Result<Revision> {
    read::bounds(connection).map(|(_, newest)| newest)
}
