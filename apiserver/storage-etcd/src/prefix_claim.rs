//! Reads and writes the record of a prefix ([`crate::record`]): claims the prefix for a server, and marks the steps of a move
//! of its objects.

use std::time::Duration;

use drydock_storage::backend::{
    BackendError, CompareAndSwap, Guard, KeyValue, Result, Revision, WriteOutcome, prefix_range,
};
use drydock_storage::values::{self, raised};
use serde_json::{Value, json};

use crate::keys::RevisionOffset;
use crate::record::{KEY, moving, read, record, revision_offset, unreadable, value};
use crate::requests::PrefixRequests;

/// The pause before the record is read again when two servers have claimed the prefix at once.
const PAUSE: Duration = Duration::from_millis(20);

/// How often the write that opens a prefix is tried.
const TRIES: usize = 5;

/// Returns the revision offset for a server that starts, and the revision of its record. Claims the prefix if it has
/// no record. Fails if the record allows no server.
pub(super) async fn claim(requests: &PrefixRequests) -> Result<(RevisionOffset, Revision)> {
    loop {
        let (present, _) = requests.get(KEY, None).await?;
        match present {
            Some(pair) => return Ok((read(&pair.value)?, pair.mod_revision)),
            None => match write(requests, None, &record(RevisionOffset::default())).await? {
                WriteOutcome::Committed(at) => return Ok((RevisionOffset::default(), at)),
                WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => tokio::time::sleep(PAUSE).await,
            },
        }
    }
}

/// Returns the revision offset of a prefix that is only read, for example to move its objects, and its record.
pub(super) async fn existing(requests: &PrefixRequests) -> Result<(RevisionOffset, Option<KeyValue>)> {
    let (present, _) = requests.get(KEY, None).await?;
    let revision_offset = match &present {
        None => RevisionOffset::default(),
        Some(pair) => match moving(&value(&pair.value)) {
            Some((_, was)) => was,
            None => read(&pair.value)?,
        },
    };
    Ok((revision_offset, present))
}

/// A prefix that is now marked as being filled.
pub(super) struct FillStarted {
    /// The guard of the writes that fill it: a later attempt changes the record, and so ends this one.
    pub guard: Guard,
    /// Whether an earlier attempt was aborted; then everything under the prefix is from that attempt.
    pub resumed: bool,
}

/// Marks a prefix as being filled. Fails if the prefix is or was in use, unless it is only left from an aborted
/// attempt.
pub(super) async fn begin(requests: &PrefixRequests, prefix: &str) -> Result<FillStarted> {
    let (present, _) = requests.get(KEY, None).await?;
    let used = match &present {
        Some(pair) => value(&pair.value).get("filling").is_none(),
        None => requests.range(prefix_range(values::ALL), 1, None).await?.count > 0,
    };
    if used {
        let why = format!("{prefix} is in use by an API server, or was: name an --etcd-prefix that is new");
        return Err(BackendError::Unavailable(why));
    }
    let (resumed, expected) = (present.is_some(), present.map(|pair| pair.mod_revision));
    match write(requests, expected, &json!({"filling": true})).await? {
        WriteOutcome::Committed(revision) => {
            Ok(FillStarted { guard: Guard { key: KEY.to_owned(), revision }, resumed })
        }
        WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => Err(taken()),
    }
}

/// Opens the prefix to servers. If the outcome of the write is unknown, reads the record to find out. The outcome
/// stays unknown only if etcd does not answer at all.
pub(super) async fn finish(
    requests: &PrefixRequests,
    guard: &Guard,
    revision_offset: RevisionOffset,
) -> Result<()> {
    let mut last = String::new();
    let mut open = record(revision_offset);
    open["filled"] = guard.revision.0.into();
    for _ in 0..TRIES {
        let why = match write(requests, Some(guard.revision), &open).await {
            Ok(WriteOutcome::Committed(_)) => return Ok(()),
            Ok(WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed) => None,
            Err(BackendError::Unavailable(why)) => Some(why),
            Err(error) => return Err(error),
        };
        let (present, _) = requests.get(KEY, None).await.map_err(unknown)?;
        match (present, why) {
            (Some(pair), _) if read(&pair.value).is_ok_and(|there| there == revision_offset) => return Ok(()),
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

/// The error if it is unknown whether the prefix is open.
fn unknown(error: BackendError) -> BackendError {
    BackendError::Unavailable(format!(
        "all objects are moved, but etcd did not say whether the prefix is open to servers ({error}): run the same \
         command again"
    ))
}

/// The error if another process has begun to fill the prefix.
pub(super) fn taken() -> BackendError {
    BackendError::Unavailable("another process has begun to fill the same prefix".to_owned())
}

/// Marks the prefix: its objects are being moved to `place`, or have been. `before` is the present record. Returns
/// the new one. Fails if the record is no longer `before`.
pub(super) async fn mark(
    requests: &PrefixRequests,
    before: Option<&KeyValue>,
    (state, place): (&str, &str),
) -> Result<KeyValue> {
    let was = before.map_or(Ok(RevisionOffset::default()), |pair| match moving(&value(&pair.value)) {
        Some((_, was)) => Ok(was),
        None => read(&pair.value),
    })?;
    put(requests, before, &json!({state: place, "was": record(was)})).await
}

/// Removes the mark of a move that did not take place: servers write again.
pub(super) async fn unmark(requests: &PrefixRequests, marked: &KeyValue) -> Result<()> {
    let (_, was) = moving(&value(&marked.value)).ok_or_else(unreadable)?;
    put(requests, Some(marked), &record(was)).await.map(drop)
}

async fn put(requests: &PrefixRequests, before: Option<&KeyValue>, value: &Value) -> Result<KeyValue> {
    match write(requests, before.map(|pair| pair.mod_revision), value).await? {
        WriteOutcome::Committed(at) => Ok(KeyValue {
            key: KEY.to_owned(),
            value: value.to_string().into(),
            create_revision: before.map_or(at, |pair| pair.create_revision),
            mod_revision: at,
        }),
        WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => Err(taken()),
    }
}

/// Returns the first revision of the prefix if the move `attempt` has filled it; `None` if it has not.
pub(super) async fn filled(requests: &PrefixRequests, attempt: u64) -> Result<Option<Revision>> {
    let (present, _) = requests.get(KEY, None).await?;
    let record = present.map(|pair| value(&pair.value)).unwrap_or_default();
    let is_it = record.get("filled").and_then(Value::as_u64) == Some(attempt);
    Ok(revision_offset(&record).filter(|_| is_it).map(|revision_offset| revision_offset.floor))
}

/// Removes the mark of a move, and raises the revisions by `bump`, because clients have seen revisions of the store
/// that the objects were moved to. Returns the first new revision. Fails if the prefix has no such mark.
pub(super) async fn reclaim(requests: &PrefixRequests, prefix: &str, bump: u64) -> Result<Revision> {
    let (present, newest) = requests.get(KEY, None).await?;
    let is_marked = |value: &Value| value.get("moved").is_some() || value.get("moving").is_some();
    let moved = present.filter(|pair| is_marked(&value(&pair.value)));
    let not_moved = || BackendError::Unavailable(format!("{prefix} has not been moved"));
    let pair = moved.ok_or_else(not_moved)?;
    let was = revision_offset(&value(&pair.value)["was"]).ok_or_else(unreadable)?;
    let floor = raised(Revision(newest.0 + 1 + was.offset), bump)?;
    let raised = RevisionOffset { offset: was.offset + bump, floor };
    match write(requests, Some(pair.mod_revision), &record(raised)).await? {
        WriteOutcome::Committed(_) => Ok(floor),
        WriteOutcome::Conflict(..) | WriteOutcome::GuardFailed => Err(taken()),
    }
}

async fn write(requests: &PrefixRequests, expected: Option<Revision>, value: &Value) -> Result<WriteOutcome> {
    let value = Some(value.to_string().into());
    requests
        .write(CompareAndSwap {
            key: KEY.to_owned(),
            expected,
            value,
            guard: None,
            priority: Default::default(),
        })
        .await
}
