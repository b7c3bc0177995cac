//! A kind's quota: refusals of creates, and of updates that add bytes, in the words of ResourceQuota
//! (k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, checkQuotas). Controllers and system:masters
//! are never refused, but what they write counts. Also keeps each flow to its share of the history in a store that is
//! short of space.

use std::sync::Arc;

use drydock_machinery::object::Size;
use drydock_machinery::{ApiError, Object};
use drydock_serving::clock;
use drydock_storage::backend::{Priority, Shortage};
use drydock_storage::cache::{QuotaUsage, Reservation, ReservationError};
use drydock_storage::storage::{NextState, Stored};

use super::context::RequestContext;

/// Reserves room for a new object under `key`; `None` if nothing is limited.
///
/// # Errors
/// 403 if the namespace's quota is used up.
pub fn reserve(request: &RequestContext, key: &str, new: &Object) -> Result<Option<Reservation>, ApiError> {
    let Some(usage) = limited(request) else { return Ok(None) };
    check_bytes(request, usage, key, || Size::without_status(new).total())?;
    let quota = usage.quota();
    let count = Exceeded {
        name: quota.name,
        unit: "count",
        requested: 1,
        hard: quota.hard as u64,
        remedy: quota.remedy,
    };
    usage.reserve(key).map(Some).map_err(|no_room| refusal(request, no_room, key, &count))
}

/// Checks that an object may be changed to `new`.
///
/// # Errors
/// 403 if the namespace's quota is used up and the write is not one that [passes](passes_without_room).
pub fn check_growth(request: &RequestContext, new: &mut Object, old: &Object) -> Result<(), ApiError> {
    let Some(usage) = limited(request) else { return Ok(()) };
    let counts_status = usage.quota().bytes.counts_status;
    if request.on_status() && !counts_status {
        return Ok(());
    }
    let key = request.key();
    match usage.check_bytes(&key) {
        Ok(()) => return Ok(()),
        // A report does not wait until it is known what the namespace uses.
        Err(ReservationError::Unknown(_)) if request.on_status() => return Ok(()),
        Err(ReservationError::Used(_)) if passes_without_room(request, new, old) => return Ok(()),
        Err(_) => {}
    }
    let size = if counts_status { Size::whole } else { Size::without_status };
    let [after, before] = [&*new, old].map(|object| size(object).total());
    check_bytes(request, usage, &key, || after.saturating_sub(before))
}

/// Returns the priority of a write that replaces `present`. `ordinary` is its priority unless the store is full and the
/// write is one that [passes](passes_without_room).
pub fn priority(
    request: &RequestContext,
    ordinary: Priority,
    next: &mut NextState,
    present: &Stored,
) -> Priority {
    let is_full = request.storage().shortage().is_some_and(|left| left.is_full);
    if !is_full || request.level.is_of_cluster() {
        return ordinary;
    }
    let NextState::Write(new) = next else { return ordinary };
    if passes_without_room(request, new, &present.object()) { Priority::Needed } else { ordinary }
}

/// Whether a write passes although there is no room for it: it does not make the object larger, or it is a
/// [needed](drydock_machinery::kind::Kind::is_needed_status) one to the status, or a
/// [needed](drydock_machinery::kind::Kind::is_needed_update) one to the object. If only its managed fields stand in the way, they
/// stay as they were.
fn passes_without_room(request: &RequestContext, new: &mut Object, old: &Object) -> bool {
    let [after, before] = [&*new, old].map(Size::whole);
    if after.total() <= before.total() {
        return true;
    }
    let kind = request.kind();
    let is_needed =
        if request.on_status() { kind.is_needed_status(new, old) } else { kind.is_needed_update(new, old) };
    let passes = is_needed || after.fields < before.fields;
    if passes {
        new.share_managed_fields(old);
    }
    passes
}

fn limited(request: &RequestContext) -> Option<&Arc<QuotaUsage>> {
    request.resource.usage.as_ref().filter(|_| request.level.is_bound_by_quota())
}

fn check_bytes(
    request: &RequestContext,
    usage: &QuotaUsage,
    key: &str,
    adds: impl FnOnce() -> usize,
) -> Result<(), ApiError> {
    usage.check_bytes(key).map_err(|no_room| {
        let quota = usage.quota().bytes;
        let requested = adds() as u64;
        let bytes =
            Exceeded { name: quota.name, unit: "bytes", requested, hard: quota.hard, remedy: quota.remedy };
        refusal(request, no_room, key, &bytes)
    })
}

/// A limit, as the message of a refusal shows it.
struct Exceeded {
    name: &'static str,
    unit: &'static str,
    requested: u64,
    hard: u64,
    remedy: &'static str,
}

fn refusal(request: &RequestContext, no_room: ReservationError, key: &str, exceeded: &Exceeded) -> ApiError {
    let used = match no_room {
        ReservationError::Unknown(error) => return request.storage_error(error, "create"),
        ReservationError::Used(used) => used,
    };
    let names = request.names();
    let Exceeded { name, unit, requested, hard, remedy } = exceeded;
    let what = format!("{unit}/{}.{}", names.plural, names.group);
    let why = format!(
        "exceeded quota: {name}, requested: {what}={requested}, used: {what}={used}, limited: {what}={hard}; {remedy}"
    );
    ApiError::forbidden(names.group, names.plural, key.rsplit('/').next().unwrap_or(key), why)
}

/// The message for a flow that has to wait.
const OVER_SHARE: &str = "the store is short of space, and you have replaced or removed more than your share of what its \
                          history holds: try again later";

/// Checks that the user may write. Components of the cluster are never refused.
///
/// # Errors
/// 429 with Retry-After where the store runs short of space and the user's flow has replaced more than its share.
pub fn check_history_share(request: &RequestContext) -> Result<(), ApiError> {
    let shortage = request.storage().shortage().filter(|_| !request.level.is_of_cluster());
    let Some(Shortage { history, .. }) = shortage else { return Ok(()) };
    request.replaced_bytes.check(request.user.flow(), history, clock::now()).map_err(|wait| {
        let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1);
        ApiError::too_many_requests(OVER_SHARE, seconds)
    })
}

/// Records that a write of the user has replaced or removed `old`.
pub fn note_replaced(request: &RequestContext, old: &Stored) {
    if !request.level.is_of_cluster() {
        request.replaced_bytes.note(request.user.flow(), old.json_len() as u64, clock::now());
    }
}
