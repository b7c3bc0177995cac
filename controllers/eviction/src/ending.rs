//! How a request ends: its terminal condition, in the words of KEP-4563, and when a finished request is removed.

use drydock_api::eviction_request::{
    CANCELED, EVICTED, EvictionRequest, EvictionRequestStatus, REASON_DELETED, REASON_NO_REQUESTERS,
    REASON_POD_DELETED, REASON_POD_TERMINATED, REASON_VALIDATION_FAILED,
};
use drydock_api::metav1::{Condition, find_condition, set_condition};
use drydock_api::time::truncate_to_seconds;
use jiff::Timestamp;

use crate::decision::{Config, RequestDecision};

/// How a request ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerminalCondition {
    type_: &'static str,
    reason: &'static str,
    message: String,
}

impl TerminalCondition {
    pub(crate) fn no_requesters() -> Self {
        Self::new(CANCELED, REASON_NO_REQUESTERS, "No requester asks for the eviction any more.".to_owned())
    }
    pub(crate) fn request_deleted() -> Self {
        let message = "The eviction request is being deleted, and is kept by its finalizers.";
        Self::new(CANCELED, REASON_DELETED, message.to_owned())
    }
    pub(crate) fn not_found(pod: &str) -> Self {
        Self::new(CANCELED, REASON_VALIDATION_FAILED, format!("Target Pod {pod} was not found."))
    }
    pub(crate) fn replaced(pod: &str, asked: &str, present: &str) -> Self {
        let message = format!(
            "Target Pod {pod} with UID {asked} was not found: the pod of this name has UID {present}."
        );
        Self::new(CANCELED, REASON_VALIDATION_FAILED, message)
    }
    pub(crate) fn in_group(pod: &str) -> Self {
        let message = format!(
            "Target Pod {pod} is part of a Workload/PodGroup. Eviction of such pods is currently not supported."
        );
        Self::new(CANCELED, REASON_VALIDATION_FAILED, message)
    }
    pub(crate) fn terminated(pod: &str) -> Self {
        let message = format!("Target Pod {pod} has reached a terminal phase.");
        Self::new(EVICTED, REASON_POD_TERMINATED, message)
    }
    pub(crate) fn deleted(pod: &str) -> Self {
        Self::new(EVICTED, REASON_POD_DELETED, format!("Target Pod {pod} has been deleted."))
    }

    fn new(type_: &'static str, reason: &'static str, message: String) -> Self {
        Self { type_, reason, message }
    }
}

/// Sets the terminal condition to True.
pub(crate) fn set(
    status: &mut EvictionRequestStatus,
    ending: &TerminalCondition,
    generation: i64,
    now: Timestamp,
) {
    let condition = Condition {
        type_: ending.type_.to_owned(),
        status: "True".to_owned(),
        observed_generation: generation,
        last_transition_time: Some(truncate_to_seconds(now)),
        reason: ending.reason.to_owned(),
        message: ending.message.clone(),
    };
    set_condition(&mut status.conditions, condition);
}

/// Moves the active interceptor to the processed ones.
pub(crate) fn retire_active(status: &mut EvictionRequestStatus) {
    for active in std::mem::take(&mut status.active_interceptors) {
        if !status.processed_interceptors.contains(&active) {
            status.processed_interceptors.push(active);
        }
    }
}

/// Decides about a finished request: to remove it if that is due, else when to look again.
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

/// When a finished request is to be removed. A request that ended for lack of requesters is kept for a short
/// time, so that a requester that changes its mind finds it. So is one that failed validation, and no longer,
/// because no other request for the pod can be made while it exists. Others are removed when the last
/// requester has read the outcome and withdrawn, or after the retention.
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

/// When a request was canceled or evicted; `None` if it is not finished. One without a transition time counts
/// as the oldest.
pub(crate) fn ended_at(request: &EvictionRequest) -> Option<Timestamp> {
    let ending = |type_| find_condition(&request.status.conditions, type_).filter(|c| c.is_true());
    let end = ending(CANCELED).or_else(|| ending(EVICTED))?;
    Some(end.last_transition_time.unwrap_or(Timestamp::MIN))
}
