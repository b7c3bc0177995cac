//! Checks that the rows of the log fit together: each row of a key names the one that it replaced, and no revision is
//! missing.

use drydock_storage::backend::Result;
use drydock_storage::values;
use rusqlite::Connection;

use super::Progress;
use crate::error::{damaged, translate};
use crate::row::LogRow;
use crate::{compaction, schema};

/// Rows between two progress reports.
const WORD: u64 = 10_000;

/// The revisions that bound the log.
pub(super) struct LogBounds {
    /// The oldest readable revision.
    pub compacted: u64,
    /// The newest revision.
    pub newest: u64,
}

impl LogBounds {
    /// Reads the bounds from the file. Fails if they contradict each other.
    pub fn read(snapshot: &Connection) -> Result<Self> {
        let newest = compaction::newest(snapshot)?.0;
        let compacted = compaction::number(snapshot, "compacted")?;
        let scrubbed = compaction::number(snapshot, "scrubbed")?;
        if scrubbed > compacted {
            return damaged(format!(
                "revisions up to {scrubbed} were removed, but only {compacted} are forgotten"
            ));
        }
        Ok(Self { compacted, newest })
    }
}

/// Reads every row, key by key. Returns the number of keys that exist and the number of rows. Fails at the first row
/// that does not fit.
pub(super) fn check(snapshot: &Connection, bounds: &LogBounds, progress: &Progress) -> Result<(u64, u64)> {
    let total = count(snapshot, 0)?;
    let mut statement = snapshot.prepare(schema::HISTORY).map_err(translate)?;
    let mut rows = statement.query([]).map_err(translate)?;
    let (mut before, mut keys, mut seen) = (None::<LogEntry>, 0, 0);
    while let Some(row) = rows.next().map_err(translate)? {
        let (entry, value, checksum) = entry(row)?;
        let previous = before.take().filter(|before| before.key == entry.key);
        if let Err(why) = entry
            .fits(previous.as_ref(), bounds)
            .and_then(|()| entry.holds(value))
            .and_then(|()| entry.is_as_written(value, checksum))
        {
            return damaged(format!("{} at revision {}: {why}", entry.key, entry.revision));
        }
        keys += u64::from(!entry.deleted);
        keys -= u64::from(previous.is_some_and(|previous| !previous.deleted));
        before = Some(entry);
        seen += 1;
        if seen % WORD == 0 {
            progress.report("checking rows", seen, total);
        }
    }
    none_missing(snapshot, bounds)?;
    Ok((keys, seen))
}

/// Checks that every revision above the boundary has a row: nothing removes those.
fn none_missing(snapshot: &Connection, bounds: &LogBounds) -> Result<()> {
    let (held, given) = (count(snapshot, bounds.compacted)?, bounds.newest - bounds.compacted);
    match held == given {
        true => Ok(()),
        false => damaged(format!(
            "expected {given} revisions after {}, found {held}: rows are missing",
            bounds.compacted
        )),
    }
}

fn count(snapshot: &Connection, above: u64) -> Result<u64> {
    let sql = "SELECT count(*) FROM log WHERE revision > ?1";
    snapshot.query_row(sql, [above], |row| row.get(0)).map_err(translate)
}

/// A row without its value.
struct LogEntry {
    key: String,
    revision: u64,
    create_revision: u64,
    prev_revision: u64,
    deleted: bool,
}

fn entry<'r>(row: &'r rusqlite::Row<'_>) -> Result<(LogEntry, Option<&'r [u8]>, u32)> {
    let read = || -> rusqlite::Result<_> {
        let entry = LogEntry {
            key: row.get(0)?,
            revision: row.get(1)?,
            create_revision: row.get(2)?,
            prev_revision: row.get(3)?,
            deleted: row.get(4)?,
        };
        Ok((entry, row.get_ref(5)?.as_blob_or_null()?, row.get(6)?))
    };
    read().map_err(translate)
}

impl LogEntry {
    /// Checks that the row names the one before it, which may have been removed by compaction.
    fn fits(&self, previous: Option<&LogEntry>, bounds: &LogBounds) -> Result<(), String> {
        let created = self.prev_revision == 0 && self.create_revision == self.revision && !self.deleted;
        let fits = match previous {
            Some(previous) if previous.deleted => created,
            Some(previous) => {
                self.prev_revision == previous.revision && self.create_revision == previous.create_revision
            }
            None if self.prev_revision == 0 => created,
            None => {
                self.create_revision <= self.prev_revision
                    && self.prev_revision < self.revision
                    && self.revision <= bounds.compacted
            }
        };
        let (prev, create) = (self.prev_revision, self.create_revision);
        let why = || format!("create revision {create} and previous revision {prev} contradict each other");
        if fits { Ok(()) } else { Err(why()) }
    }

    fn is_as_written(&self, value: Option<&[u8]>, checksum: u32) -> Result<(), String> {
        let Self { revision, create_revision, prev_revision, .. } = *self;
        let row = LogRow { revision, key: &self.key, create_revision, prev_revision, value };
        match row.has(checksum) {
            true => Ok(()),
            false => Err("the checksum does not match".to_owned()),
        }
    }

    fn holds(&self, value: Option<&[u8]>) -> Result<(), String> {
        match value {
            Some(_) if self.deleted => Err("it is a delete, and has a value".to_owned()),
            None if !self.deleted => Err("it has no value".to_owned()),
            Some(value) => values::check(&self.key, value),
            None => Ok(()),
        }
    }
}
