//! A kind's quota: refusals of creates, and of updates that add bytes, in the words of ResourceQuota (k8s.io/apiserver
//! pkg/admission/plugin/resourcequota/controller.go, checkQuotas). Controllers and system:masters are never refused, but
//! what they write counts.

use std::sync::Arc;

use drydock_machinery::object::Size;
use drydock_machinery::{ApiError, Object};
use drydock_storage::cache::{QuotaUsage, Reservation, ReservationError};

use super::call::Call;

/// Room for a new object under `key`; `None` where nothing is limited.
///
/// # Errors
/// 403 if the namespace's quota is used up.
pub fn reserve(call: &Call, key: &str, new: &Object) -> Result<Option<Reservation>, ApiError> {
    let Some(usage) = limited(call) else { return Ok(None) };
    check_bytes(call, usage, key, || Size::without_status(new).total())?;
    let quota = usage.quota();
    let count = Exceeded {
        name: quota.name,
        unit: "count",
        requested: 1,
        hard: quota.hard as u64,
        remedy: quota.remedy,
    };
    usage.reserve(key).map(Some).map_err(|no_room| refusal(call, no_room, key, &count))
}

/// Checks that an object may be changed to `new` by a write that is not to its status.
///
/// # Errors
/// 403 if that makes it larger and the namespace's quota is used up.
pub fn check_growth(call: &Call, new: &Object, old: &Object) -> Result<(), ApiError> {
    let Some(usage) = limited(call).filter(|_| !call.on_status()) else { return Ok(()) };
    let key = call.key();
    if usage.check_bytes(&key).is_ok() {
        return Ok(());
    }
    let [after, before] = [new, old].map(|object| Size::without_status(object).total());
    if after <= before { Ok(()) } else { check_bytes(call, usage, &key, || after - before) }
}

fn limited(call: &Call) -> Option<&Arc<QuotaUsage>> {
    call.resource.usage.as_ref().filter(|_| call.level.is_bound_by_quota())
}

fn check_bytes(
    call: &Call,
    usage: &QuotaUsage,
    key: &str,
    adds: impl FnOnce() -> usize,
) -> Result<(), ApiError> {
    usage.check_bytes(key).map_err(|no_room| {
        let quota = usage.quota().bytes;
        let requested = adds() as u64;
        let bytes =
            Exceeded { name: quota.name, unit: "bytes", requested, hard: quota.hard, remedy: quota.remedy };
        refusal(call, no_room, key, &bytes)
    })
}

/// A limit in the words of a refusal.
struct Exceeded {
    name: &'static str,
    unit: &'static str,
    requested: u64,
    hard: u64,
    remedy: &'static str,
}

fn refusal(call: &Call, no_room: ReservationError, key: &str, exceeded: &Exceeded) -> ApiError {
    let used = match no_room {
        ReservationError::Unknown(error) => return call.storage_error(error, "create"),
        ReservationError::Used(used) => used,
    };
    let names = call.names();
    let Exceeded { name, unit, requested, hard, remedy } = exceeded;
    let what = format!("{unit}/{}.{}", names.plural, names.group);
    let why = format!(
        "exceeded quota: {name}, requested: {what}={requested}, used: {what}={used}, limited: {what}={hard}; {remedy}"
    );
    ApiError::forbidden(names.group, names.plural, key.rsplit('/').next().unwrap_or(key), why)
}
