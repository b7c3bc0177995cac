//! Decides what to write into a Lease, from the Lease that was read and the time at which it last changed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::{LeaseConfig, TermRefusal};

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
    Some(LeaseSpec {
        holder_identity: Some(config.identity.clone()),
        lease_duration_seconds: i32::try_from(config.duration.as_secs()).ok(),
        acquire_time: if ours { old.acquire_time.clone() } else { Some(MicroTime(later(acquired, wall))) },
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

/// The number of the term that a spec describes: when it was acquired, in microseconds. Unlike
/// `leaseTransitions`, it does not start again when somebody deletes the Lease, or when the host is restored
/// from a backup.
pub(super) fn term(spec: &LeaseSpec) -> u64 {
    let acquired = spec.acquire_time.as_ref().map_or(0, |time| time.0.as_microsecond());
    u64::try_from(acquired).unwrap_or_default()
}

/// Returns now, or a microsecond after the start of the previous term if that is later: the clock of its
/// holder may have been ahead.
fn later(old: Option<Timestamp>, wall: Timestamp) -> Timestamp {
    let before = old.and_then(|time| time.checked_add(SignedDuration::from_micros(1)).ok());
    before.map_or(wall, |before| before.max(wall))
}

/// The spec of a renewal by its holder, whose term our API server refused: another term of the same holder begins, of the
/// nearest number that the server takes. Any other spec, and one after which no number can come, is returned as it is.
///
/// The number may be lower than the refused one, if that is too far ahead. It is then the highest that the server takes,
/// so that it is above those of all terms before whose writes may still arrive.
pub(super) fn admissible(spec: LeaseSpec, refusal: TermRefusal) -> LeaseSpec {
    match refusal.next().filter(|_| term(&spec) == refusal.term) {
        Some(next) => LeaseSpec { acquire_time: Some(MicroTime(next)), ..spec },
        None => spec,
    }
}

/// The spec of a Lease that does not exist yet. `last` is the number of our last term, if we had one: somebody has deleted
/// the Lease meanwhile.
pub(super) fn first_spec(config: &LeaseConfig, last: Option<u64>, wall: Timestamp) -> LeaseSpec {
    let last = last.and_then(|last| Timestamp::from_microsecond(i64::try_from(last).ok()?).ok());
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
