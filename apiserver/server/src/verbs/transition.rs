//! From the present state of an object to its next one, whoever else writes meanwhile.
//!
//! Admission may ask other servers, so it cannot run within the store's own compare-and-swap loop. The loop here
//! reads, decides, and commits only onto the very revision that the decision was made on. The first read may be a
//! little old, as Kubernetes' is: a refusal that it leads to is made again on the latest state before it counts.

use std::sync::Arc;
use std::time::Instant;

use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::Revision;
use drydock_storage::storage::{Change, ReadAt, StorageError, Stored};

use super::call::Call;

/// What is to become of an object.
#[derive(Clone, Debug)]
pub enum Next {
    /// This state.
    Write(Object),
    /// Nothing; watchers see this last state.
    Delete(Object),
}

/// What became of an object.
pub enum Outcome {
    /// It is stored (or would be).
    Stored(Arc<Stored>),
    /// It is gone (or would be); its last state.
    Deleted(Arc<Stored>),
    /// It is not there.
    Missing,
}

/// Decides on the next state from the present one.
pub trait Step {
    /// The next state, or the refusal.
    fn next(&self, present: &Stored) -> impl Future<Output = Result<Next, ApiError>> + Send;
}

/// Takes the object under `key` through `step`.
pub async fn run(
    call: &Call,
    key: &str,
    operation: &'static str,
    dry_run: bool,
    step: &(impl Step + Sync),
) -> Result<Outcome, ApiError> {
    let mut at = ReadAt::NotOlderThan(Revision(0));
    let mut refused: Option<(Revision, ApiError)> = None;
    loop {
        let latest = at == ReadAt::Latest;
        let present = match call.storage().get(key, at).await {
            Ok(present) => present,
            Err(StorageError::NotFound) if latest => return Ok(Outcome::Missing),
            Err(error) if latest => return Err(call.storage_error(error, operation)),
            Err(_) => {
                at = ReadAt::Latest;
                continue;
            }
        };
        // It was the latest state after all: nobody is asked twice about it.
        if let Some((revision, refusal)) = refused.take()
            && revision == present.revision
        {
            return Err(refusal);
        }
        let next = match step.next(&present).await {
            Ok(next) => next,
            Err(refusal) if latest => return Err(refusal),
            Err(refusal) => {
                refused = Some((present.revision, refusal));
                at = ReadAt::Latest;
                continue;
            }
        };
        if dry_run {
            return Ok(would_be(call, &present, next));
        }
        if let Some(outcome) = commit(call, key, operation, &present, next).await? {
            return Ok(outcome);
        }
        if Instant::now() >= call.deadline {
            let message = format!("the {operation} lost every race for the object within its time");
            return Err(ApiError::timeout(message, 1));
        }
        at = ReadAt::Latest;
    }
}

fn would_be(call: &Call, present: &Stored, next: Next) -> Outcome {
    match next {
        Next::Write(object) => Outcome::Stored(call.unstored(object, present.revision)),
        Next::Delete(object) => Outcome::Deleted(call.unstored(object, present.revision)),
    }
}

/// `None` if somebody else wrote first.
async fn commit(
    call: &Call,
    key: &str,
    operation: &str,
    present: &Stored,
    next: Next,
) -> Result<Option<Outcome>, ApiError> {
    let done = match next {
        Next::Write(object) => {
            write(call, key, present.revision, object).await.map(|stored| stored.map(Outcome::Stored))
        }
        Next::Delete(object) => {
            // The client is told the version that it was last stored at; watchers learn that of the removal.
            let last = call.unstored(object.clone(), present.revision);
            let gone = swap(call, key, present.revision, Change::Delete(object)).await;
            gone.map(|gone| gone.map(|_| Outcome::Deleted(last)))
        }
    };
    done.map_err(|e| call.storage_error(e, operation))
}

/// An object that is too large is stored without the record of who owns its fields.
async fn write(
    call: &Call,
    key: &str,
    expected: Revision,
    object: Object,
) -> Result<Option<Arc<Stored>>, StorageError> {
    match swap(call, key, expected, Change::Write(object)).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            swap(call, key, expected, Change::Write(*object)).await
        }
        result => result,
    }
}

/// `None` if the present state is another than the expected one.
async fn swap(
    call: &Call,
    key: &str,
    expected: Revision,
    change: Change,
) -> Result<Option<Arc<Stored>>, StorageError> {
    let (mut change, mut raced) = (Some(change), false);
    let mut updater = |present: Option<&Stored>| {
        let due = present.is_some_and(|p| p.revision == expected).then(|| change.take()).flatten();
        raced = due.is_none();
        Ok(due.unwrap_or(Change::Keep))
    };
    let result = call.storage().update(key, call.guard(), &mut updater).await;
    if raced {
        return match result {
            Err(error @ StorageError::Backend(_)) => Err(error),
            _ => Ok(None),
        };
    }
    result.map(|(stored, _)| Some(stored))
}
