//! A guaranteed update: from the present state of an object to its next one, though others write meanwhile
//! (k8s.io/apiserver pkg/storage, GuaranteedUpdate).
//!
//! The loop reads, decides, and replaces the very state that the decision was made on
//! ([`drydock_storage::storage::Storage::replace`]). The first read may be a little old, as Kubernetes' is: a refusal
//! counts only once the latest state has led to it. If another write comes first, the conflict carries the newest
//! state, and the next decision is made on that. A dry run commits nothing that would show that its state is old, so
//! it reads the latest state (k8s.io/apiserver pkg/registry/generic/registry/dryrun.go).

use std::sync::Arc;

use drydock_machinery::ApiError;
use drydock_serving::clock;
use drydock_storage::backend::{Priority, Revision, WriteContext};
use drydock_storage::storage::{NextState, ReadAt, Replaced, StorageError, Stored};

use super::context::RequestContext;
use super::quota;
use crate::request::spans;

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
    /// The priority of its write in a full store, unless [`quota::priority`] or [`RequestContext::write_context`] gives
    /// it another. A write to an object that is being deleted already is ordinary.
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
    let failed = |error| request.storage_error(error, operation);
    let Some((mut present, mut is_latest)) = first_state(request, key, dry_run).await.map_err(failed)? else {
        return Ok(Outcome::Missing);
    };
    loop {
        let mut next = match step.next(&present).await {
            Ok(next) => next,
            Err(refusal) if is_latest => return Err(refusal),
            Err(refusal) => {
                let Some(latest) = latest_state(request, key).await.map_err(failed)? else {
                    return Ok(Outcome::Missing);
                };
                // It was the latest state after all: admission is not asked twice about it.
                if latest.revision == present.revision {
                    return Err(refusal);
                }
                (present, is_latest) = (latest, true);
                continue;
            }
        };
        if dry_run {
            return would_be(request, &present, next);
        }
        let ordinary = priority::<S>(&present);
        if ordinary == Priority::Ordinary && rewrites(&next, &present) {
            quota::check_history_share(request)?;
        }
        // The client gets the version at which it was last stored; watchers get that of the removal.
        let last = match &next {
            NextState::Delete(object) => Some(request.unstored(object.clone(), present.revision)),
            NextState::Write(_) => None,
        };
        let context = request.write_context(quota::priority(request, ordinary, &mut next, &present));
        match replace(request, key, &present, next, context).await.map_err(failed)? {
            Replaced::Updated(stored) => return Ok(last.map_or(Outcome::Stored(stored), Outcome::Deleted)),
            Replaced::Conflict(None) => return Ok(Outcome::Missing),
            Replaced::Conflict(Some(newest)) => (present, is_latest) = (newest, true),
        }
        if clock::now() >= request.caller.deadline() {
            let message = format!("the {operation} lost every race for the object within its time");
            return Err(ApiError::timeout(message, 1));
        }
    }
}

/// The priority of a step's write. Whoever deletes again and again what a finalizer holds fills the history like everybody
/// who writes.
fn priority<S: Step>(present: &Stored) -> Priority {
    if present.object().deletion_timestamp().is_some() { Priority::Ordinary } else { S::PRIORITY }
}

/// Whether the present state goes into the history. A delete that changes nothing of what is being deleted is no rewrite.
fn rewrites(next: &NextState, present: &Stored) -> bool {
    let NextState::Write(new) = next else { return false };
    let present = present.object();
    present.deletion_timestamp().is_none() || *new != *present
}

/// The state to decide on first, and whether it is the latest; `None` if the object does not exist.
async fn first_state(
    request: &RequestContext,
    key: &str,
    dry_run: bool,
) -> Result<Option<(Arc<Stored>, bool)>, StorageError> {
    let any = ReadAt::NotOlderThan(Revision(0));
    if !dry_run && let Ok(present) = request.storage().get(key, any).await {
        return Ok(Some((present, false)));
    }
    Ok(latest_state(request, key).await?.map(|latest| (latest, true)))
}

async fn latest_state(request: &RequestContext, key: &str) -> Result<Option<Arc<Stored>>, StorageError> {
    match request.storage().get(key, ReadAt::Latest).await {
        Err(StorageError::NotFound) => Ok(None),
        read => read.map(Some),
    }
}

fn would_be(request: &RequestContext, present: &Stored, next: NextState) -> Result<Outcome, ApiError> {
    Ok(match next {
        NextState::Write(object) => {
            let object = request.storage().would_store(object)?;
            Outcome::Stored(request.unstored(object, present.revision))
        }
        NextState::Delete(object) => Outcome::Deleted(request.unstored(object, present.revision)),
    })
}

/// Replaces the object. One that is too large is written without its managed fields.
async fn replace(
    request: &RequestContext,
    key: &str,
    present: &Arc<Stored>,
    next: NextState,
    context: WriteContext<'_>,
) -> Result<Replaced, StorageError> {
    let storage = request.storage();
    let replaced = match storage.replace(key, present, next, context).await {
        Err(StorageError::Oversized(mut object)) => {
            object.remove_managed_fields();
            storage.replace(key, present, NextState::Write(*object), context).await?
        }
        result => result?,
    };
    if let Replaced::Updated(stored) = &replaced
        && stored.revision != present.revision
    {
        quota::note_replaced(request, present);
        spans::stored(&request.info, &request.user.name, key, stored.revision);
    }
    Ok(replaced)
}
