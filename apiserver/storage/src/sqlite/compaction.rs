//! Forgetting old revisions, a few rows at a time between writes.
//!
//! Every row names the row it replaced, so what a compaction may remove is found by walking the rows written
//! since the last one, not the whole store. The row at the boundary stays even if it is a delete: a watch may
//! start there and must see it (etcd's record: a delete missing when watching at the compaction revision).

use rusqlite::{Connection, params};

use super::error::translate;
use super::lock::Lock;
use super::{read, schema};
use crate::backend::{BackendError, Result, Revision};
use crate::failpoints;

/// Rows walked in one step at least: short enough for a write that waits.
pub(super) const STEP: usize = 64;

/// Work left to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compaction {
    /// Every row below is done.
    scrubbed: u64,
    /// The boundary.
    compacted: u64,
    /// Work up to this boundary failed.
    stalled_at: u64,
}

impl Compaction {
    /// What a stopped process left over.
    pub fn load(connection: &Connection) -> Result<Self> {
        let (scrubbed, compacted) = (number(connection, "scrubbed")?, number(connection, "compacted")?);
        Ok(Self { scrubbed, compacted, stalled_at: 0 })
    }

    /// Whether rows remain to be walked.
    pub fn pending(&self) -> bool {
        self.scrubbed < self.compacted && self.stalled_at < self.compacted
    }

    /// Moves the boundary, within the caller's transaction. Below or at the present one nothing is to do.
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

    /// The same in a transaction of its own.
    pub fn move_to(&mut self, connection: &mut Connection, lock: &Lock, at: Revision) -> Result<()> {
        let transaction = connection.transaction().map_err(translate)?;
        let mut moved = *self;
        moved.begin(&transaction, at, at)??;
        transaction.commit().map_err(|error| lock.note(error))?;
        *self = moved;
        Ok(())
    }

    /// Stops working until the boundary moves again, or the file is opened again.
    pub fn put_off(&mut self) {
        self.stalled_at = self.compacted;
    }

    /// Removes what so many rows made superfluous.
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

/// What the next rows from `from` on replaced, and the deletes among them; and up to where that is. Its end is walked
/// again by the next step, or by the next compaction, which may then remove the delete that stood at the boundary.
/// Rows are counted, not revisions: a store that was restored has a wide gap below its boundary.
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

/// The newest revision of an opened file.
pub(super) fn newest(connection: &Connection) -> Result<Revision> {
    read::bounds(connection).map(|(_, newest)| newest)
}
