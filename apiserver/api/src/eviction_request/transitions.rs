//! The transition table of an EvictionRequest's active interceptor.
//!
//! ```text
//!   (none) ──first──▶ target[0] ──turn over──▶ target[1] ──turn over──▶ ... ──▶ target[last]
//!                        └──────────────── a terminal condition ────────────────▶ (none)
//! ```
//!
//! A turn is over when the interceptor has a completionTime or its deadline has passed. Deletion cancels a request
//! (KEP-4563, EvictionRequest Cancellation Examples): while finalizers keep the object, no other interceptor becomes
//! active; the removal of the object is awaited. Admission and the controller both call this module, so that they can
//! differ only by their clocks.

use std::time::Duration;

use jiff::Timestamp;

use super::types::{EvictionRequest, EvictionRequestStatus};

/// How long an interceptor may be silent by default (KEP-4563: 20 minutes).
pub const DEFAULT_HEARTBEAT_DEADLINE: Duration = Duration::from_secs(20 * 60);
/// Minimum time between two heartbeats.
pub const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum difference between clocks.
pub const CLOCK_SKEW: Duration = Duration::from_secs(10);

/// When the turn of the active interceptor ends if it does not report again: its heartbeat, else its activation, else
/// the creation of the object, plus `heartbeat_deadline`. `None` if no interceptor is active, and for the last one,
/// after which there is no other.
pub fn active_deadline(request: &EvictionRequest, heartbeat_deadline: Duration) -> Option<Timestamp> {
    next_interceptor(&request.status)?;
    let active = request.active_interceptor_status();
    request.active_interceptor()?;
    let base = active
        .and_then(|a| a.heartbeat_time)
        .or(request.status.activation_time)
        .or(request.metadata.creation_timestamp)?;
    Some(saturating_add(base, heartbeat_deadline))
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
