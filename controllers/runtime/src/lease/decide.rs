//! Decides what to write into a Lease, from the Lease that was read and the time at which it last changed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::earlier::{EarlierTerms, term};
use super::{LeaseConfig, RefusedToken};

/// The last change of the Lease that was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LastLease {
    pub(super) resource_version: String,
    /// When it was seen, as time since boot.
    pub(super) at: Duration,
}

impl LastLease {
    /// Takes in the version that was read; the time moves only if that is a new one.
    pub(super) fn update(&mut self, resource_version: &str, now: Duration) {
        if self.resource_version != resource_version {
            *self = Self { resource_version: resource_version.to_owned(), at: now };
        }
    }
}

/// The spec to write, or none while somebody else holds the Lease.
pub(super) fn next_spec(
    old: &LeaseSpec,
    config: &LeaseConfig,
    seen_at: Duration,
    now: Duration,
    wall: Timestamp,
) -> Option<LeaseSpec> {
    let holder = old.holder_identity.as_deref().unwrap_or_default();
    let held_for = old.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
    let expired = now.saturating_sub(seen_at) >= held_for.unwrap_or(config.duration);
    let ours = holder == config.identity;
    if !ours && !holder.is_empty() && !expired {
        return None;
    }
    let transitions = old.lease_transitions.unwrap_or_default();
    let acquired = old.acquire_time.as_ref().map(|time| time.0);
    let kept = old.acquire_time.clone().filter(|_| ours);
    Some(LeaseSpec {
        holder_identity: Some(config.identity.clone()),
        lease_duration_seconds: i32::try_from(config.duration.as_secs()).ok(),
        acquire_time: kept.or_else(|| Some(MicroTime(later(acquired, wall)))),
        renew_time: Some(MicroTime(wall)),
        lease_transitions: Some(if ours { transitions } else { transitions.saturating_add(1) }),
        ..old.clone()
    })
}

/// When a holder that is not us renewed last; none if the Lease does not say.
pub(super) fn previous_renewal(old: &LeaseSpec, identity: &str) -> Option<Timestamp> {
    let is_ours = old.holder_identity.as_deref() == Some(identity);
    old.renew_time.as_ref().filter(|_| !is_ours).map(|time| time.0)
}

/// Returns now, or a microsecond after the start of the previous term if that is later: the clock of its
/// holder may have been ahead.
fn later(old: Option<Timestamp>, wall: Timestamp) -> Timestamp {
    let before = old.and_then(|time| time.checked_add(SignedDuration::from_micros(1)).ok());
    before.map_or(wall, |before| before.max(wall))
}

/// The spec of a renewal by its holder, whose term our API server refused: another term of the same holder begins. `None` if
/// the spec is of another term, and if no number can come after this one.
///
/// The number may be lower than the refused one, if that is too far ahead. It is above those of the earlier terms whose
/// writes may still arrive, and so is that of a holder which takes the Lease over meanwhile: the Lease names them
/// ([`EarlierTerms::next`]).
pub(super) fn admissible(
    spec: &LeaseSpec,
    refused: RefusedToken,
    earlier: &EarlierTerms,
) -> Option<LeaseSpec> {
    let next = earlier.next(refused).filter(|_| term(spec) == refused.term)?;
    Some(LeaseSpec { acquire_time: Some(MicroTime(next)), ..spec.clone() })
}

/// The spec of a Lease that does not exist yet. `last` is when the term began that was seen in it last: somebody
/// has deleted the Lease meanwhile.
pub(super) fn first_spec(config: &LeaseConfig, last: Option<Timestamp>, wall: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(config.identity.clone()),
        lease_duration_seconds: i32::try_from(config.duration.as_secs()).ok(),
        acquire_time: Some(MicroTime(later(last, wall))),
        renew_time: Some(MicroTime(wall)),
        lease_transitions: Some(0),
        ..Default::default()
    }
}

/// The spec of a Lease that is given back: another candidate can take it at once.
pub(super) fn released(old: &LeaseSpec, wall: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(wall)),
        ..old.clone()
    }
}
