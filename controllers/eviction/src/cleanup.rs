//! Finished requests: kept for their requesters to read, then removed.

use drydock_api::eviction_request::{CANCELED, EVICTED, EvictionRequest, REASON_NO_REQUESTERS};
use drydock_api::meta::find_condition;
use jiff::Timestamp;

use crate::machine::{Config, RequestDecision, retire_active};

/// Removal when it is due, else when to look again.
pub(crate) fn after_the_end(request: &EvictionRequest, now: Timestamp, config: &Config) -> RequestDecision {
    if is_due(request, now, config) {
        return RequestDecision { delete: true, ..RequestDecision::default() };
    }
    let wake = due(request, config).filter(|_| !request.is_being_deleted());
    let mut decision = RequestDecision { wake, ..RequestDecision::default() };
    if !request.status.active_interceptors.is_empty() {
        let mut status = request.status.clone();
        retire_active(&mut status);
        decision.status = Some(status);
    }
    decision
}

/// Whether a finished request is to be removed by now. One that is being deleted waits for somebody's finalizer.
pub(crate) fn is_due(request: &EvictionRequest, now: Timestamp, config: &Config) -> bool {
    !request.is_being_deleted() && due(request, config).is_some_and(|due| due <= now)
}

/// When a finished request is to be removed. A canceled one goes after a short grace: a requester that changes its mind
/// again finds it until then, and one that failed validation shuts all others out of the pod no longer. Others go when
/// the last requester has read the outcome and withdrawn, or after the retention.
fn due(request: &EvictionRequest, config: &Config) -> Option<Timestamp> {
    let canceled = find_condition(&request.status.conditions, CANCELED).filter(|c| c.is_true());
    let failed = request.validation_failure().is_some() && !request.spec.requesters.is_empty();
    if failed || canceled.is_some_and(|c| c.reason == REASON_NO_REQUESTERS) {
        return ended_at(request)?.checked_add(config.canceled_grace).ok();
    }
    if request.spec.requesters.is_empty() {
        return Some(Timestamp::MIN);
    }
    ended_at(request)?.checked_add(config.retention?).ok()
}

/// When a request was canceled or evicted; `None` if it is not finished. One that does not say when counts as the oldest.
pub(crate) fn ended_at(request: &EvictionRequest) -> Option<Timestamp> {
    let ending = |type_| find_condition(&request.status.conditions, type_).filter(|c| c.is_true());
    let end = ending(CANCELED).or_else(|| ending(EVICTED))?;
    Some(end.last_transition_time.unwrap_or(Timestamp::MIN))
}
