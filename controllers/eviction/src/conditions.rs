//! The terminal conditions, in the words of KEP-4563.

use drydock_api::eviction_request::{
    CANCELED, EVICTED, EvictionRequestStatus, REASON_DELETED, REASON_NO_REQUESTERS, REASON_POD_DELETED,
    REASON_POD_TERMINATED, REASON_VALIDATION_FAILED,
};
use drydock_api::meta::{Condition, set_condition};
use drydock_api::time::truncate_to_seconds;
use jiff::Timestamp;

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
