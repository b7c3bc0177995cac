//! Where the revisions of a prefix begin.
//!
//! Objects that come from another store must go on with revisions above those which that store gave out, and etcd's
//! revision cannot be set; raising it by as many writes would take hours, and fill etcd. So a prefix has an offset,
//! which is added to etcd's revisions, and a floor, below which there is nothing that could be told rightly. Both
//! stand in a key under the prefix, written once: before anything is served from it. It is written again when the objects
//! leave, and running servers are closed by that ([`super::write_permission`]).
//!
//! ```text
//!   PREFIX/origin    {"offset":0,"floor":0}    claimed by the first server that came: etcd's own revisions
//!                    {"filling":true}          objects are being moved in; no server may start
//!                    {"offset":N,"floor":N,"filled":N}    they are all there, by that attempt
//!                    {"moving":"...","was":{"offset":N,"floor":N}}   they are being moved elsewhere; no server may
//!                                              write or start
//!                    {"moved":"...","was":{"offset":N,"floor":N}}    they were; likewise
//! ```

use std::time::Duration;

use serde_json::{Value, json};

use super::record::{moving, origin, read, record, unreadable, value};
use super::requests::Requests;
use crate::backend::{BackendError, Guard, KeyValue, Result, Revision, Write, WriteOutcome, prefix_range};
use crate::values::{self, raised};

/// The key, below the prefix; those of [`crate::backend::Backend`] begin with a slash.
pub(super) const KEY: &str = "origin";
/// The pause before a prefix is looked at again that two servers claimed at once.
const PAUSE: Duration = Duration::from_millis(20);

/// How often it is tried to open a prefix that stays closed.
const TRIES: usize = 5;

/// How etcd's revisions become a prefix's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RevisionOffset {
    /// Is added to etcd's revisions.
    pub offset: u64,
    /// The oldest revision that can be read, and that a watch can begin with.
    pub floor: Revision,
}

impl RevisionOffset {
    /// A revision of etcd's, which is signed and never negative.
    pub fn revision(&self, number: i64) -> Revision {
        Revision(number.max(0).unsigned_abs() + self.offset)
    }

    /// A revision as etcd takes it. One beyond its range is as much in the future as the highest; one from before
    /// the offset is none of etcd's.
    pub fn signed(&self, revision: Revision) -> i64 {
        match revision.0.checked_sub(self.offset) {
            Some(number) => i64::try_from(number).unwrap_or(i64::MAX),
            None => -1,
        }
    }

    /// A revision to compare a key's with. etcd's 0 is that of a key that does not exist, and no revision of ours.
    pub fn compared(&self, revision: Revision) -> i64 {
        match self.signed(revision) {
            0 => -1,
            number => number,
        }
    }

    /// Refuses a read before the floor.
    pub fn check(&self, at: Revision) -> Result<()> {
        match at < self.floor {
            true => Err(BackendError::Compacted { requested: at, oldest: self.floor }),
            false => Ok(()),
        }
    }

    /// Refuses a watch whose first event may be before the floor.
    pub fn check_start(&self, after: Revision) -> Result<()> {
        match after.0.saturating_add(1) < self.floor.0 {
            true => Err(BackendError::Compacted { requested: after, oldest: self.floor }),
            false => Ok(()),
        }
    }
}

/// The origin of a prefix that a server is to serve from, and the revision of its record; claims the prefix if nobody
/// has.
pub(super) async fn claim(requests: &Requests) -> Result<(RevisionOffset, Revision)> {
    loop {
        let (present, _) = requests.get(KEY, None).await?;
        match present {
            Some(pair) => return Ok((read(&pair.value)?, pair.mod_revision)),
            None => match write(requests, None, &record(RevisionOffset::default())).await? {
                WriteOutcome::Committed(at) => return Ok((RevisionOffset::default(), at)),
                WriteOutcome::Conflict(..) | WriteOutcome::Guarded => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// The origin of a prefix that is only to be read, as one is from which objects are moved; and what its record says.
pub(super) async fn existing(requests: &Requests) -> Result<(RevisionOffset, Option<KeyValue>)> {
    let (present, _) = requests.get(KEY, None).await?;
    let origin = match &present {
        None => RevisionOffset::default(),
        Some(pair) => match moving(&value(&pair.value)) {
            Some((_, was)) => was,
            None => read(&pair.value)?,
        },
    };
    Ok((origin, present))
}

/// A prefix that is marked as being filled.
pub(super) struct Begun {
    /// Writes that fill it depend on it: whoever begins anew ends the earlier attempt.
    pub guard: Guard,
    /// An attempt was broken off before, and what is under the prefix comes from it.
    pub anew: bool,
}

/// Marks a prefix as being filled that nobody has used, or whose filling was broken off.
pub(super) async fn begin(requests: &Requests, prefix: &str) -> Result<Begun> {
    let (present, _) = requests.get(KEY, None).await?;
    let used = match &present {
        Some(pair) => value(&pair.value).get("filling").is_none(),
        None => requests.range(prefix_range(values::ALL), 1, None).await?.count > 0,
    };
    if used {
        let why = format!("{prefix} is in use by an API server, or was: name an --etcd-prefix that is new");
        return Err(BackendError::Unavailable(why));
    }
    let (anew, expected) = (present.is_some(), present.map(|pair| pair.mod_revision));
    match write(requests, expected, &json!({"filling": true})).await? {
        WriteOutcome::Committed(revision) => {
            Ok(Begun { guard: Guard { key: KEY.to_owned(), revision }, anew })
        }
        WriteOutcome::Conflict(..) | WriteOutcome::Guarded => Err(taken()),
    }
}

/// Opens the prefix to servers. Where etcd does not tell what became of that, it is asked what stands there; only an
/// etcd that does not answer at all leaves it open.
pub(super) async fn finish(requests: &Requests, guard: &Guard, origin: RevisionOffset) -> Result<()> {
    let mut last = String::new();
    let mut open = record(origin);
    open["filled"] = guard.revision.0.into();
    for _ in 0..TRIES {
        let why = match write(requests, Some(guard.revision), &open).await {
            Ok(WriteOutcome::Committed(_)) => return Ok(()),
            Ok(WriteOutcome::Conflict(..) | WriteOutcome::Guarded) => None,
            Err(BackendError::Unavailable(why)) => Some(why),
            Err(error) => return Err(error),
        };
        let (present, _) = requests.get(KEY, None).await.map_err(unknown)?;
        match (present, why) {
            (Some(pair), _) if read(&pair.value).is_ok_and(|there| there == origin) => return Ok(()),
            (Some(pair), Some(why)) if pair.mod_revision == guard.revision => {
                tracing::debug!(why, "opening the prefix again");
                last = why;
                tokio::time::sleep(PAUSE).await;
            }
            _ => return Err(taken()),
        }
    }
    Err(BackendError::Unavailable(last))
}

/// Nobody can say whether the prefix is open.
fn unknown(error: BackendError) -> BackendError {
    BackendError::Unavailable(format!(
        "all objects are moved, but etcd did not say whether the prefix is open to servers ({error}): run the same \
         command again"
    ))
}

/// Somebody else has begun to fill the prefix.
pub(super) fn taken() -> BackendError {
    BackendError::Unavailable("another process has begun to fill the same prefix".to_owned())
}

/// Marks the prefix as one whose objects are being moved to `place`, or have been. `before` is what its record is now.
/// Returns what it is then.
pub(super) async fn mark(
    requests: &Requests,
    before: Option<&KeyValue>,
    (state, place): (&str, &str),
) -> Result<KeyValue> {
    let was = before.map_or(Ok(RevisionOffset::default()), |pair| match moving(&value(&pair.value)) {
        Some((_, was)) => Ok(was),
        None => read(&pair.value),
    })?;
    put(requests, before, &json!({state: place, "was": record(was)})).await
}

/// Takes the mark of a move away that was not made: servers write again.
pub(super) async fn unmark(requests: &Requests, marked: &KeyValue) -> Result<()> {
    let (_, was) = moving(&value(&marked.value)).ok_or_else(unreadable)?;
    put(requests, Some(marked), &record(was)).await.map(drop)
}

async fn put(requests: &Requests, before: Option<&KeyValue>, value: &Value) -> Result<KeyValue> {
    match write(requests, before.map(|pair| pair.mod_revision), value).await? {
        WriteOutcome::Committed(at) => Ok(KeyValue {
            key: KEY.to_owned(),
            value: value.to_string().into(),
            create_revision: before.map_or(at, |pair| pair.create_revision),
            mod_revision: at,
        }),
        WriteOutcome::Conflict(..) | WriteOutcome::Guarded => Err(taken()),
    }
}

/// Where the revisions of a prefix begin that an attempt at a move has filled; nothing if it has not.
pub(super) async fn filled(requests: &Requests, attempt: u64) -> Result<Option<Revision>> {
    let (present, _) = requests.get(KEY, None).await?;
    let record = present.map(|pair| value(&pair.value)).unwrap_or_default();
    let is_it = record.get("filled").and_then(Value::as_u64) == Some(attempt);
    Ok(origin(&record).filter(|_| is_it).map(|origin| origin.floor))
}

/// Takes the mark away, and raises the revisions by `bump`: clients have seen those of the store to which the objects
/// were moved. Returns the revision at which servers begin.
pub(super) async fn reclaim(requests: &Requests, prefix: &str, bump: u64) -> Result<Revision> {
    let (present, newest) = requests.get(KEY, None).await?;
    let is_marked = |value: &Value| value.get("moved").is_some() || value.get("moving").is_some();
    let moved = present.filter(|pair| is_marked(&value(&pair.value)));
    let not_moved = || BackendError::Unavailable(format!("{prefix} has not been moved"));
    let pair = moved.ok_or_else(not_moved)?;
    let was = origin(&value(&pair.value)["was"]).ok_or_else(unreadable)?;
    let floor = raised(Revision(newest.0 + 1 + was.offset), bump)?;
    let raised = RevisionOffset { offset: was.offset + bump, floor };
    match write(requests, Some(pair.mod_revision), &record(raised)).await? {
        WriteOutcome::Committed(_) => Ok(floor),
        WriteOutcome::Conflict(..) | WriteOutcome::Guarded => Err(taken()),
    }
}

async fn write(requests: &Requests, expected: Option<Revision>, value: &Value) -> Result<WriteOutcome> {
    let value = Some(value.to_string().into());
    requests
        .write(Write { key: KEY.to_owned(), expected, value, guard: None, priority: Default::default() })
        .await
}
