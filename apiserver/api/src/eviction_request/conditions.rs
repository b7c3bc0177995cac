//! The conditions of a request, and what its fields together say of its state.

use drydock_machinery::metav1::{Condition, ObjectMeta, find_condition, is_condition_true};

use super::types::{EvictionRequest, InterceptorStatus};

/// Condition: the request is not processed any more, because it was withdrawn or is not valid.
pub const CANCELED: &str = "Canceled";
/// Condition: the pod is gone or has terminated.
pub const EVICTED: &str = "Evicted";
/// Reason of [`EVICTED`]: the pod reached Succeeded or Failed.
pub const REASON_POD_TERMINATED: &str = "PodTerminated";
/// Reason of [`EVICTED`]: the pod does not exist any more.
pub const REASON_POD_DELETED: &str = "PodDeleted";
/// Reason of [`CANCELED`]: the last requester was removed.
pub const REASON_NO_REQUESTERS: &str = "NoRequesters";
/// Reason of [`CANCELED`]: the request is being deleted and has finalizers (KEP-4563 names no reason for that).
pub const REASON_DELETED: &str = "RequestDeleted";
/// Reason of [`CANCELED`]: the controller found that it cannot process the request.
pub const REASON_VALIDATION_FAILED: &str = "ValidationFailed";

impl EvictionRequest {
    /// Returns a request with apiVersion, kind, namespace and name only, as the base of an apply.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self {
            api_version: crate::API_VERSION.to_owned(),
            kind: "EvictionRequest".to_owned(),
            metadata: ObjectMeta {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..Default::default()
            },
            ..Default::default()
        }
    }

    /// Whether the Evicted condition is True.
    pub fn is_evicted(&self) -> bool {
        is_condition_true(&self.status.conditions, EVICTED)
    }

    /// Whether the Canceled condition is True.
    pub fn is_canceled(&self) -> bool {
        is_condition_true(&self.status.conditions, CANCELED)
    }

    /// Whether the request is evicted or canceled: no interceptor gets a turn any more.
    pub fn is_finished(&self) -> bool {
        self.is_evicted() || self.is_canceled()
    }

    /// Whether the request is being deleted and finalizers keep it.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether the controller has taken up the request: it has set the target interceptors, or has ended the request.
    pub fn is_taken_up(&self) -> bool {
        !self.status.target_interceptors.is_empty() || self.is_finished()
    }

    /// The Canceled condition, if the request failed validation.
    pub fn validation_failure(&self) -> Option<&Condition> {
        let canceled = find_condition(&self.status.conditions, CANCELED)?;
        (canceled.is_true() && canceled.reason == REASON_VALIDATION_FAILED).then_some(canceled)
    }

    /// Whether the eviction is wanted: the request has a requester, has not ended, and is not being deleted. The last
    /// requester may have been removed while the controller has not set `Canceled` yet; no interceptor may act then.
    pub fn is_wanted(&self) -> bool {
        !self.is_finished() && !self.spec.requesters.is_empty() && !self.is_being_deleted()
    }

    /// Whether a requester of this name asks for the eviction.
    pub fn has_requester(&self, name: &str) -> bool {
        self.spec.requesters.iter().any(|r| r.name == name)
    }

    /// The active interceptor's name.
    pub fn active_interceptor(&self) -> Option<&str> {
        self.status.active_interceptors.first().map(String::as_str)
    }

    /// The status of an interceptor.
    pub fn interceptor(&self, name: &str) -> Option<&InterceptorStatus> {
        self.status.interceptors.iter().find(|i| i.name == name)
    }

    /// Whether the active interceptor has begun its work and not ended it.
    pub fn is_reporting(&self) -> bool {
        let active = self.active_interceptor_status();
        active.is_some_and(|active| active.start_time.is_some() && active.completion_time.is_none())
    }

    /// The status of the active interceptor.
    pub fn active_interceptor_status(&self) -> Option<&InterceptorStatus> {
        self.interceptor(self.active_interceptor()?)
    }
}
