//! A guaranteed update: from the present state of an object to its next one, though others write meanwhile
//! (k8s.io/apiserver pkg/storage, GuaranteedUpdate).
//!
//! Admission may ask other servers, so it cannot run within the store's own compare-and-swap loop. The loop here
//! reads, decides, and commits only onto the very revision that the decision was made on. The first read may be a
//! little old, as Kubernetes' is: a refusal counts only once the latest state has led to it. A dry run commits
//! nothing that would show that its state is old, so it reads the latest state (k8s.io/apiserver
//! pkg/registry/generic/registry/dryrun.go).

use std::sync::Arc;
use std::time::Instant;

use drydock_machinery::{ApiError, Object};
use drydock_storage::backend::{Priority, Revision, WriteContext};
use drydock_storage::storage::{ReadAt, StorageError, Stored, UpdateDecision};

use super::context::RequestContext;
use super::quota;
use crate::request::spans;

/// What is to become of an object.
#[derive(Clone, Debug)]
pub enum NextState {
    /// This state.
    Write(Object),
    /// It is to be removed; watchers see this last state.
    Delete(Object),
}

/// What became of an object.
pub enum Outcome {
    /// It is stored (or would be).
    Stored(Arc<Stored>),
    /// It is gone (or would be); this was its last state.
    Deleted(Arc<Stored>),
    /// It does not exist.
    Missing,
}

/// Decides on the next state from the present one.
pub trait Step {
    /// The priority of its write in a full store, unless [`RequestContext::write_context`] gives it another.
    const PRIORITY: Priority = Priority::Ordinary;

    /// The next state, or the refusal.
    fn next(&self, present: &Stored) -> impl Future<Output = Result<NextState, ApiError>> + Send;
}

/// Applies `step` to the object under `key`, again whenever another write comes first. Fails with 504 if that happens
/// until the deadline.
pub async fn run<S: Step + Sync>(
    request: &RequestContext,
    key: &str,
    operation: &'static str,
    dry_run: bool,
    step: &S,
) -> Result<Outcome, ApiError> {
    let context = request.write_context(S::PRIORITY);
    let mut at = if dry_run { ReadAt::Latest } else { ReadAt::NotOlderThan(Revision(0)) };
    let mut refused: Option<(Revision, ApiError)> = None;
    loop {
        let latest = at == ReadAt::Latest;
        let present = match request.storage().get(key, at).await {
            Ok(present) => present,
            Err(StorageError::NotFound) if latest => return Ok(Outcome::Missing),
            Err(error) if latest => return Err(request.storage_error(error, operation)),
            Err(_) => {
                at = ReadAt::Latest;
                continue;
            }
        };
        // It was the latest state after all: admission is not asked twice about it.
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
            return Ok(would_be(request, &present, next));
        }
        if S::PRIORITY == Priority::Ordinary && matches!(next, NextState::Write(_)) {
            quota::check_history_share(request)?;
        }
        let committed = commit(request, key, context, &present, next).await;
        if let Some(outcome) = committed.map_err(|error| request.storage_error(error, operation))? {
            return Ok(outcome);
        }
        if Instant::now() >= request.caller.deadline() {
            let message = format!("the {operation} lost every race for the object within its time");
            return Err(ApiError::timeout(message, 1));
        }
        at = ReadAt::Latest;
    }
}

fn would_be(request: &RequestContext, present: &Stored, next: NextState) -> Outcome {
    match next {
        NextState::Write(object) => Outcome::Stored(request.unstored(object, present.revision)),
        NextState::Delete(object) => Outcome::Deleted(request.unstored(object, present.revision)),
    }
}

/// `None` if another write came first.
async fn commit(
    request: &RequestContext,
    key: &str,
    context: WriteContext<'_>,
    present: &Stored,
    next: NextState,
) -> Result<Option<Outcome>, StorageError> {
    match next {
        NextState::Write(object) => {
            let stored = write(request, key, context, present, object).await;
            stored.map(|stored| stored.map(Outcome::Stored))
        }
        NextState::Delete(object) => {
            // The client gets the version at which it was last stored; watchers get that of the removal.
            let last = request.unstored(object.clone(), present.revision);
            let gone = swap(request, key, context, present, UpdateDecision::Delete(object)).await;
            gone.map(|gone| gone.map(|_| Outcome::Deleted(last)))
        }
    }
}

/// Writes the object, without its managed fields if it is too large.
async fn write(
    request: &RequestContext,
    key: &str,
    context: WriteContext<'_>,
    present: &Stored,
    object: Object,
) -> Result<Option<Arc<Stored>>, StorageError> {
    match swap(request, key, context, present, UpdateDecision::Write(object)).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            swap(request, key, context, present, UpdateDecision::Write(*object)).await
        }
        result => result,
    }
}

/// `None` if the state is no longer `present`.
async fn swap(
    request: &RequestContext,
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
    let result = request.storage().update(key, context, &mut updater).await;
    if raced {
        return match result {
            Err(error @ StorageError::Backend(_)) => Err(error),
            _ => Ok(None),
        };
    }
    let (stored, written) = result?;
    if written {
        quota::note_replaced(request, present);
        spans::stored(&request.info, &request.user.name, key, stored.revision);
    }
    Ok(Some(stored))
}
