//! The transition table of an EvictionRequest's active interceptor.
//!
//! ```text
//!   (none) ──first──▶ target[0] ──turn over──▶ target[1] ──turn over──▶ ... ──▶ target[last]
//!                        │  └────── interceptionDeadline ──────▶ the next default interceptor
//!                        └──────────────── a terminal condition ────────────────▶ (none)
//! ```
//!
//! A turn is over when the interceptor has a completionTime or its deadline has passed. Once the interceptionDeadline has
//! passed, so are those of all the pod's own interceptors. Deletion cancels a request
//! (KEP-4563, EvictionRequest Cancellation Examples): while finalizers keep the object, no other interceptor becomes
//! active; the removal of the object is awaited. Admission and the controller both call this module, so that they can
//! differ only by their clocks.

use std::time::Duration;

use jiff::Timestamp;

use super::interceptors::{MAX_POD_INTERCEPTORS, is_default, is_reserved};
use super::types::{EarlierTurns, EvictionRequest, EvictionRequestStatus};

/// How long an interceptor may be silent by default (KEP-4563: 20 minutes).
pub const DEFAULT_HEARTBEAT_DEADLINE: Duration = Duration::from_secs(20 * 60);
/// Minimum time between two heartbeats.
pub const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum difference between clocks.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// When the turn of the active interceptor ends if it does not report again: its heartbeat, else its activation, else
/// the creation of the object, plus `heartbeat_deadline`; for one that is no default one at the interceptionDeadline at
/// the latest. `None` if no interceptor is active, and for the last one, after which there is no other.
pub fn active_deadline(request: &EvictionRequest, heartbeat_deadline: Duration) -> Option<Timestamp> {
    next_interceptor(&request.status)?;
    let active = request.active_interceptor_status();
    request.active_interceptor()?;
    let base = active
        .and_then(|a| a.heartbeat_time)
        .or(request.status.activation_time)
        .or(request.metadata.creation_timestamp)?;
    let silent = saturating_add(base, heartbeat_deadline);
    Some(interception_ends(&request.status).map_or(silent, |end| end.min(silent)))
}

/// When the turn of the active interceptor ends whatever it reports: the interceptionDeadline. `None` if there is none, or
/// a default interceptor is active.
pub fn interception_ends(status: &EvictionRequestStatus) -> Option<Timestamp> {
    let active = status.active_interceptors.first()?;
    status.interception_deadline.filter(|_| !is_default(active))
}

/// Whether an interceptor may become active: the request has not ended and is not being deleted.
pub fn gives_turns(request: &EvictionRequest) -> bool {
    !request.is_finished() && !request.is_being_deleted()
}

/// Whether the turn of the active interceptor is over at `now` and there is a next interceptor.
pub fn may_advance(request: &EvictionRequest, heartbeat_deadline: Duration, now: Timestamp) -> bool {
    if !gives_turns(request)
        || request.active_interceptor().is_none()
        || next_interceptor(&request.status).is_none()
    {
        return false;
    }
    let completed = request.active_interceptor_status().is_some_and(|a| a.completion_time.is_some());
    completed || active_deadline(request, heartbeat_deadline).is_some_and(|deadline| deadline <= now)
}

/// The next interceptor: the one after the active one, or the first target if none is or was active.
pub fn next_interceptor(status: &EvictionRequestStatus) -> Option<&str> {
    let next = match status.active_interceptors.first() {
        Some(active) => index_of(status, active)? + 1,
        None if status.processed_interceptors.is_empty() => 0,
        None => return None,
    };
    status.target_interceptors.get(next).map(|i| i.name.as_str())
}

/// The interceptor whose turn follows that of the active one at `now`: the next one, or, once the interceptionDeadline has
/// passed, the next default one. The turns that are left out would be over before their interceptors saw them.
pub fn successor(status: &EvictionRequestStatus, now: Timestamp) -> Option<&str> {
    let at = status.active_interceptors.first().and_then(|active| index_of(status, active));
    match (at, interception_ends(status)) {
        (Some(at), Some(end)) if end <= now => {
            let later = status.target_interceptors.iter().skip(at + 1);
            later.map(|target| target.name.as_str()).find(|name| is_default(name))
        }
        _ => next_interceptor(status),
    }
}

/// Whether the interceptors that were passed over had no time left, however they reported.
pub fn ran_out_of_time(status: &EvictionRequestStatus) -> bool {
    status.interception_deadline.zip(status.activation_time).is_some_and(|(end, at)| end <= at)
}

/// Returns the turns that a request and those before it have given to the pod's own interceptors, if it ends at `now`: those
/// whose names a tenant chooses. A name under k8s.io is the cluster's, and has a turn in each request: what it does for a pod,
/// it may take back when the request goes.
pub fn turns_had(request: &EvictionRequest, now: Timestamp) -> EarlierTurns {
    let status = &request.status;
    let mut turns = status.earlier_turns.clone().unwrap_or_default();
    let begun = || status.processed_interceptors.iter().chain(&status.active_interceptors);
    let goes_on = |name: &str| request.active_interceptor() == Some(name) && is_interrupted(request, now);
    for name in begun().filter(|name| !is_reserved(name) && !goes_on(name)) {
        turns.note(name);
    }
    if begun().any(|name| !is_default(name)) {
        // The last default interceptor began when the pod's own had ended.
        let is_over = begun().next_back().is_some_and(|last| is_default(last));
        let end = status.activation_time.filter(|_| is_over).unwrap_or(now);
        let began = request.metadata.creation_timestamp.unwrap_or(end);
        // At least one, so that the next request knows of this one.
        turns.seconds = turns.seconds.saturating_add(end.duration_since(began).as_secs().max(1));
    }
    turns
}

/// Whether the active interceptor gets its turn again, if the request ends at `now`. One that works does: it could have kept
/// its turn by reporting, and what it has begun would be lost. One that is silent does not, or each deletion would give it its
/// turn anew; only in the pod's first request it does, if that ends before there was time to report.
fn is_interrupted(request: &EvictionRequest, now: Timestamp) -> bool {
    if request.active_interceptor_status().is_some_and(|active| active.completion_time.is_some()) {
        return false;
    }
    let status = &request.status;
    let began = status.activation_time.filter(|_| status.earlier_turns.is_none());
    request.is_reporting() || began.is_some_and(|at| now < saturating_add(at, MIN_HEARTBEAT_INTERVAL))
}

impl EarlierTurns {
    /// Whether there were none, nor any that was interrupted.
    pub fn is_empty(&self) -> bool {
        self.interceptors.is_empty() && self.seconds == 0
    }

    /// Whether it tells of all turns that `other` tells of.
    pub fn includes(&self, other: &Self) -> bool {
        self.seconds >= other.seconds
            && other.interceptors.iter().all(|name| self.interceptors.contains(name))
    }

    /// Adds the turns that `other` tells of. The later of two requests tells of the turns in the earlier one too.
    pub fn merge(&mut self, other: &Self) {
        other.interceptors.iter().for_each(|name| self.note(name));
        self.seconds = self.seconds.max(other.seconds);
    }

    fn note(&mut self, name: &str) {
        let is_known = self.interceptors.iter().any(|known| known == name);
        if !is_known && self.interceptors.len() < MAX_POD_INTERCEPTORS {
            self.interceptors.push(name.to_owned());
        }
    }
}

/// Index of an interceptor in the order of turns.
pub fn index_of(status: &EvictionRequestStatus, name: &str) -> Option<usize> {
    status.target_interceptors.iter().position(|i| i.name == name)
}

/// `t + d`, at most the maximum timestamp.
pub(crate) fn saturating_add(t: Timestamp, d: Duration) -> Timestamp {
    t.checked_add(d).unwrap_or(Timestamp::MAX)
}

/// `t - d`, at least the minimum timestamp.
pub(crate) fn saturating_sub(t: Timestamp, d: Duration) -> Timestamp {
    t.checked_sub(d).unwrap_or(Timestamp::MIN)
}

/// The interceptors that lost their turn without a completionTime, in order, because they were silent past their
/// deadline. An interceptor whose turn ended because the request ended does not count.
pub fn passed_over(request: &EvictionRequest) -> impl Iterator<Item = &str> {
    let processed = &request.status.processed_interceptors;
    let over = processed.len().saturating_sub(usize::from(request.is_finished()));
    let is_open = |name: &&String| request.interceptor(name).is_some_and(|i| i.completion_time.is_none());
    processed.iter().take(over).filter(is_open).map(String::as_str)
}
