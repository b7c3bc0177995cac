//! From the present state of an object to its next one, whoever else writes meanwhile.
//!
//! Admission may ask other servers, so it cannot run within the store's own compare-and-swap loop. The loop here
//! reads, decides, and commits only onto the very revision that the decision was made on. The first read may be a
//! little old, as Kubernetes' is: a refusal that it leads to is made again on the latest state before it counts. A dry run
//! commits nothing that would show it, and reads the latest state (k8s.io/apiserver pkg/registry/generic/registry/dryrun.go).

use std::sync::Arc;
use std::time::Instant;

use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::{Priority, Revision, WriteContext};
use drydock_storage::storage::{ReadAt, StorageError, Stored, UpdateDecision};

use super::call::Call;
use super::replaced_bytes;
use crate::request::spans;

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
    /// How far it may go into the reserve of a full store, if the user has no say.
    const PRIORITY: Priority = Priority::Ordinary;

    /// The next state, or the refusal.
    fn next(&self, present: &Stored) -> impl Future<Output = Result<Next, ApiError>> + Send;
}

/// Takes the object under `key` through `step`.
pub async fn run<S: Step + Sync>(
    call: &Call,
    key: &str,
    operation: &'static str,
    dry_run: bool,
    step: &S,
) -> Result<Outcome, ApiError> {
    let context = call.write_context(S::PRIORITY);
    let mut at = if dry_run { ReadAt::Latest } else { ReadAt::NotOlderThan(Revision(0)) };
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
        if S::PRIORITY == Priority::Ordinary && matches!(next, Next::Write(_)) {
            replaced_bytes::check(call)?;
        }
        let committed = commit(call, key, context, &present, next).await;
        if let Some(outcome) = committed.map_err(|error| call.storage_error(error, operation))? {
            return Ok(outcome);
        }
        if Instant::now() >= call.caller.deadline() {
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
    context: WriteContext<'_>,
    present: &Stored,
    next: Next,
) -> Result<Option<Outcome>, StorageError> {
    match next {
        Next::Write(object) => {
            let stored = write(call, key, context, present, object).await;
            stored.map(|stored| stored.map(Outcome::Stored))
        }
        Next::Delete(object) => {
            // The client is told the version that it was last stored at; watchers learn that of the removal.
            let last = call.unstored(object.clone(), present.revision);
            let gone = swap(call, key, context, present, UpdateDecision::Delete(object)).await;
            gone.map(|gone| gone.map(|_| Outcome::Deleted(last)))
        }
    }
}

/// An object that is too large is stored without the record of who owns its fields.
async fn write(
    call: &Call,
    key: &str,
    context: WriteContext<'_>,
    present: &Stored,
    object: Object,
) -> Result<Option<Arc<Stored>>, StorageError> {
    match swap(call, key, context, present, UpdateDecision::Write(object)).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            swap(call, key, context, present, UpdateDecision::Write(*object)).await
        }
        result => result,
    }
}

/// `None` if the state is no longer `present`.
async fn swap(
    call: &Call,
    key: &str,
    context: WriteContext<'_>,
    present: &Stored,
    change: UpdateDecision,
) -> Result<Option<Arc<Stored>>, StorageError> {
    let (mut change, mut raced) = (Some(change), false);
    let mut updater = |live: Option<&Stored>| {
        let due = live.is_some_and(|live| live.revision == present.revision).then(|| change.take()).flatten();
        raced = due.is_none();
        Ok(due.unwrap_or(UpdateDecision::Keep))
    };
    let result = call.storage().update(key, context, &mut updater).await;
    if raced {
        return match result {
            Err(error @ StorageError::Backend(_)) => Err(error),
            _ => Ok(None),
        };
    }
    let (stored, written) = result?;
    if written {
        replaced_bytes::note(call, present);
        spans::stored(&call.info, &call.user.name, key, stored.revision);
    }
    Ok(Some(stored))
}
