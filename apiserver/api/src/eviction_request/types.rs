//! EvictionRequest as Rust structs: validation and the controllers read them, and the controllers apply them.
//!
//! Unset fields are not serialized, so that a server-side apply sends only the applier's fields.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, ObjectMeta, find_condition, is_condition_true, is_default, is_zero};
use crate::time;

/// Resource name.
pub const RESOURCE: &str = "evictionrequests";
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

/// A request to evict one pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionRequest {
    /// `coordination.k8s.io/v1alpha1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `EvictionRequest`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The name is the pod's UID.
    pub metadata: ObjectMeta,
    /// What to evict, and who requests it.
    #[serde(skip_serializing_if = "is_default")]
    pub spec: EvictionRequestSpec,
    /// The state of the eviction.
    #[serde(skip_serializing_if = "is_default")]
    pub status: EvictionRequestStatus,
}

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

    /// The status of the active interceptor.
    pub fn active_interceptor_status(&self) -> Option<&InterceptorStatus> {
        self.interceptor(self.active_interceptor()?)
    }
}

/// What to evict, and who requests it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionRequestSpec {
    /// The target of the eviction. Immutable.
    #[serde(skip_serializing_if = "is_default")]
    pub target: EvictionTarget,
    /// Who requests the eviction. An empty list cancels the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requesters: Vec<Requester>,
}

/// A union of which exactly one member is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionTarget {
    /// A pod in the request's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<LocalPodReference>,
}

/// A pod in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LocalPodReference {
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
}

/// A requester of the eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requester {
    /// A fully qualified domain name.
    pub name: String,
}

/// An interceptor that can handle the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interceptor {
    /// A fully qualified domain name.
    pub name: String,
}

/// The state of the eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionRequestStatus {
    /// The generation that the controller has observed.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// `Evicted`, `Canceled`, and those that interceptors set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// All interceptors, in the order of their turns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_interceptors: Vec<Interceptor>,
    /// The active interceptor; at most one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_interceptors: Vec<String>,
    /// The interceptors whose turn is over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processed_interceptors: Vec<String>,
    /// What each interceptor reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interceptors: Vec<InterceptorStatus>,
    /// When `activeInterceptors` last changed to another interceptor.
    #[serde(with = "time::optional_micros", skip_serializing_if = "Option::is_none")]
    pub activation_time: Option<Timestamp>,
    /// The state of the pod when the first interceptor became active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_info: Option<PodInfo>,
}

/// The pod's node, and the properties that decide when a drain evicts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodInfo {
    /// The name of its node; empty if the pod is not bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// `.spec.priority`
    pub priority: i32,
    /// `Default`, `DaemonSet` or `Static`.
    pub pod_type: String,
}

/// What an interceptor reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InterceptorStatus {
    /// Name of the interceptor.
    pub name: String,
    /// When the interceptor last reported that it is working.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub heartbeat_time: Option<Timestamp>,
    /// When it expects to finish.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub expected_finish_time: Option<Timestamp>,
    /// When it started.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it finished: its work is done, or it declined.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// For people; always serialized.
    pub message: String,
    /// What keeps it from evicting the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// The last cause of which the pod's owner was notified by an event. It stays after the cause is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_blocked: Option<Box<Blocked>>,
}

/// What keeps an interceptor from evicting the pod. For the values see [`super::blocked`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocked {
    /// The kind of cause.
    pub reason: String,
    /// The name of the budget, webhook or finalizer, for example.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Why a budget blocks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Since when the cause exists.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub since_time: Option<Timestamp>,
}
