//! Reads of keys, ranges and events: each uses one snapshot.

use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use drydock_storage::backend::{BackendError, BackendEvent, KeyValue, RangeResult, Result, Revision};
use rusqlite::{Connection, Transaction, params};

use crate::connect;
use crate::error::{named, translate};
use crate::feed::EventBatch;
use crate::row::LogRow;
use crate::schema::{self, StoreFormat};

/// Maximum number of revisions that one query of the log covers.
const WINDOW: u64 = 1024;
/// Maximum number of bytes of values that one query of the log returns; the last event may exceed it.
const WINDOW_BYTES: usize = 1 << 20;

/// Returns the newest pairs of a range from the store at `path`, also while another process uses it. Writes nothing.
///
/// # Errors
/// If there is no store, or if it cannot be read.
pub fn pairs_of(path: &Path, keys: &Range<String>) -> Result<Vec<KeyValue>> {
    let mut connection = connect::to_read(path)?;
    let format = StoreFormat::read(&connection).and_then(|format| format.is_ours());
    format.and_then(|()| page(&mut connection, keys, 0, None)).map_err(|error| named(path, error))
}

/// Returns one key.
pub(super) fn get(
    connection: &mut Connection,
    key: &str,
    at: Option<Revision>,
) -> Result<(Option<KeyValue>, Revision)> {
    let snapshot = connection.transaction().map_err(translate)?;
    let revision = resolve(&snapshot, at)?;
    let pair = latest(&snapshot, key, revision)?.and_then(|row| row.live(key));
    Ok((pair, revision))
}

/// Returns a range of keys.
pub(super) fn range(
    connection: &mut Connection,
    keys: &Range<String>,
    limit: usize,
    at: Option<Revision>,
) -> Result<RangeResult> {
    let snapshot = connection.transaction().map_err(translate)?;
    let revision = resolve(&snapshot, at)?;
    let items = pairs(&snapshot, keys, limit, revision)?;
    let count = match limit != 0 && items.len() >= limit {
        true => count(&snapshot, keys, revision)?,
        false => items.len() as u64,
    };
    Ok(RangeResult { revision, items, count })
}

/// Returns the first pairs of a range.
pub(super) fn page(
    connection: &mut Connection,
    keys: &Range<String>,
    limit: usize,
    at: Option<Revision>,
) -> Result<Vec<KeyValue>> {
    let snapshot = connection.transaction().map_err(translate)?;
    let revision = resolve(&snapshot, at)?;
    pairs(&snapshot, keys, limit, revision)
}

fn pairs(
    snapshot: &Transaction<'_>,
    keys: &Range<String>,
    limit: usize,
    revision: Revision,
) -> Result<Vec<KeyValue>> {
    let mut statement = snapshot.prepare_cached(schema::RANGE).map_err(translate)?;
    let most = if limit == 0 { -1 } else { i64::try_from(limit).unwrap_or(i64::MAX) };
    let rows = statement.query_map(params![keys.start, keys.end, signed(revision)?, most], pair);
    rows.and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(translate)
}

fn count(snapshot: &Transaction<'_>, keys: &Range<String>, revision: Revision) -> Result<u64> {
    let mut statement = snapshot.prepare_cached(schema::COUNT).map_err(translate)?;
    let number = statement.query_row(params![keys.start, keys.end, signed(revision)?], |row| row.get(0));
    number.map_err(translate)
}

/// Returns events above `after`, within the limits of one query.
pub(super) fn events(connection: &mut Connection, keys: &Range<String>, after: u64) -> Result<EventBatch> {
    let snapshot = connection.transaction().map_err(translate)?;
    let (oldest, newest) = bounds(&snapshot)?;
    check_start(Revision(after), oldest)?;
    let upto = newest.0.min(after.saturating_add(WINDOW));
    let mut statement = snapshot.prepare_cached(schema::EVENTS).map_err(translate)?;
    let window = params![signed(Revision(after))?, signed(Revision(upto))?, keys.start, keys.end];
    let mut rows = statement.query(window).map_err(translate)?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(translate)? {
        let event = event(row).map_err(translate)?;
        bytes += event.value.as_ref().map_or(0, |value| value.len());
        bytes += event.previous.as_ref().map_or(0, |pair| pair.value.len());
        events.push(event);
        if bytes > WINDOW_BYTES {
            let upto = events.last().map_or(upto, |event| event.revision.0);
            return Ok(EventBatch { events, upto });
        }
    }
    Ok(EventBatch { events, upto })
}

/// Returns the oldest readable revision and the newest one.
pub(super) fn oldest(connection: &mut Connection) -> Result<ReadableRevisions> {
    let snapshot = connection.transaction().map_err(translate)?;
    bounds(&snapshot).map(|(oldest, newest)| ReadableRevisions { oldest, newest })
}

/// The revisions that can be read.
pub(super) struct ReadableRevisions {
    /// The compaction boundary.
    pub oldest: Revision,
    /// The newest revision.
    pub newest: Revision,
}

/// Fails if a watch may not start after this revision. Its first event may be at the boundary, as in etcd.
pub(super) fn check_start(after: Revision, oldest: Revision) -> Result<()> {
    match after.0.saturating_add(1) < oldest.0 {
        true => Err(BackendError::Compacted { requested: after, oldest }),
        false => Ok(()),
    }
}

/// Returns the compaction boundary and the newest revision of a snapshot.
pub(super) fn bounds(snapshot: &Connection) -> Result<(Revision, Revision)> {
    let mut statement = snapshot.prepare_cached(schema::BOUNDS).map_err(translate)?;
    let row = statement.query_row([], |row| Ok((Revision(row.get(0)?), Revision(row.get(1)?))));
    row.map_err(translate)
}

/// The last write of a key.
pub(super) struct Latest {
    /// Its revision.
    pub revision: u64,
    /// When the key was created.
    pub create_revision: u64,
    /// The value; `None` if it was a delete.
    pub value: Option<Bytes>,
}

impl Latest {
    /// The pair, unless it was deleted.
    pub fn live(self, key: &str) -> Option<KeyValue> {
        let (create, modified) = (Revision(self.create_revision), Revision(self.revision));
        let value = self.value?;
        Some(KeyValue { key: key.to_owned(), value, create_revision: create, mod_revision: modified })
    }
}

/// Returns a key's last write at or before a revision.
pub(super) fn latest(snapshot: &Connection, key: &str, revision: Revision) -> Result<Option<Latest>> {
    let mut statement = snapshot.prepare_cached(schema::LATEST).map_err(translate)?;
    let mut rows = statement.query(params![key, signed(revision)?]).map_err(translate)?;
    let Some(row) = rows.next().map_err(translate)? else { return Ok(None) };
    let latest = || -> rusqlite::Result<Latest> {
        let (revision, create_revision) = (row.get(0)?, row.get(1)?);
        let value = match row.get(2)? {
            true => None,
            false => Some(value(row, revision, key, create_revision, [3, 4, 5])?),
        };
        Ok(Latest { revision, create_revision, value })
    };
    latest().map(Some).map_err(translate)
}

fn resolve(snapshot: &Connection, at: Option<Revision>) -> Result<Revision> {
    let (oldest, newest) = bounds(snapshot)?;
    match at {
        None => Ok(newest),
        Some(at) if at > newest => Err(BackendError::FutureRevision { requested: at, current: newest }),
        Some(at) if at < oldest => Err(BackendError::Compacted { requested: at, oldest }),
        Some(at) => Ok(at),
    }
}

/// SQLite's integers are signed; a revision beyond them cannot exist.
fn signed(revision: Revision) -> Result<i64> {
    let too_high =
        |_| BackendError::FutureRevision { requested: revision, current: Revision(i64::MAX as u64) };
    i64::try_from(revision.0).map_err(too_high)
}

fn pair(row: &rusqlite::Row<'_>) -> rusqlite::Result<KeyValue> {
    let (key, create_revision, revision): (String, u64, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let value = value(row, revision, &key, create_revision, [3, 4, 5])?;
    let (create_revision, mod_revision) = (Revision(create_revision), Revision(revision));
    Ok(KeyValue { key, create_revision, mod_revision, value })
}

fn event(row: &rusqlite::Row<'_>) -> rusqlite::Result<BackendEvent> {
    let (revision, key, create_revision): (u64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let value_of = |revision, created, columns| value(row, revision, &key, created, columns);
    let value = match row.get(3)? {
        true => None,
        false => Some(value_of(revision, create_revision, [4, 5, 6])?),
    };
    let previous = match row.get::<_, Option<u64>>(7)? {
        None => None,
        Some(revision) => {
            let created = row.get(8)?;
            Some(KeyValue {
                key: key.clone(),
                mod_revision: Revision(revision),
                create_revision: Revision(created),
                value: value_of(revision, created, [9, 10, 11])?,
            })
        }
    };
    let (revision, create_revision) = (Revision(revision), Revision(create_revision));
    Ok(BackendEvent { revision, key, value, create_revision, previous })
}

/// Returns the value of a row, given the columns of its value, of the revision that it replaced, and of its checksum.
fn value(
    row: &rusqlite::Row<'_>,
    revision: u64,
    key: &str,
    create_revision: u64,
    [value, prev_revision, checksum]: [usize; 3],
) -> rusqlite::Result<Bytes> {
    let value = Some(row.get_ref(value)?.as_blob()?);
    let written = LogRow { revision, key, create_revision, prev_revision: row.get(prev_revision)?, value };
    Ok(written.value_if(row.get(checksum)?))
}
