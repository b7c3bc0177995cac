//! EvictionRequest as Rust structs: what validation and the controllers read, and what the controllers apply.
//!
//! What is not set is not written, so that a server-side apply sends the applier's fields only.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, ObjectMeta, find_condition, is_condition_true, is_default, is_zero};
use crate::time;

/// Resource name.
pub const RESOURCE: &str = "evictionrequests";
/// Condition: no longer processed, because withdrawn or not valid.
pub const CANCELED: &str = "Canceled";
/// Condition: the pod is gone or terminal.
pub const EVICTED: &str = "Evicted";
/// Reason of [`EVICTED`]: the pod reached Succeeded or Failed.
pub const REASON_POD_TERMINATED: &str = "PodTerminated";
/// Reason of [`EVICTED`]: the pod does not exist any more.
pub const REASON_POD_DELETED: &str = "PodDeleted";
/// Reason of [`CANCELED`]: the last requester withdrew.
pub const REASON_NO_REQUESTERS: &str = "NoRequesters";
/// Reason of [`CANCELED`]: the request is being deleted, and finalizers keep it (KEP-4563 names no reason for that).
pub const REASON_DELETED: &str = "RequestDeleted";
/// Reason of [`CANCELED`]: the controller found that the request cannot be served.
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
    /// What is wanted, and by whom.
    #[serde(skip_serializing_if = "is_default")]
    pub spec: EvictionRequestSpec,
    /// How it goes.
    #[serde(skip_serializing_if = "is_default")]
    pub status: EvictionRequestStatus,
}

impl EvictionRequest {
    /// A request with type meta, namespace and name, and nothing else: the base of an apply.
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

    /// Whether nothing more will happen: evicted or canceled.
    pub fn is_finished(&self) -> bool {
        self.is_evicted() || self.is_canceled()
    }

    /// Whether it is being deleted: finalizers keep it.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether the controller has taken it up: it has set the interceptors, or has ended the request.
    pub fn is_taken_up(&self) -> bool {
        !self.status.target_interceptors.is_empty() || self.is_finished()
    }

    /// The Canceled condition of a request that failed validation.
    pub fn validation_failure(&self) -> Option<&Condition> {
        let canceled = find_condition(&self.status.conditions, CANCELED)?;
        (canceled.is_true() && canceled.reason == REASON_VALIDATION_FAILED).then_some(canceled)
    }

    /// Whether the eviction is wanted at this moment: somebody asks for it, it has not ended, and the request is not
    /// being deleted. Between the last withdrawal and the controller's `Canceled` lies a moment in which nobody may act.
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

/// What is wanted, and by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionRequestSpec {
    /// What is to be evicted. Immutable.
    #[serde(skip_serializing_if = "is_default")]
    pub target: EvictionTarget,
    /// Who asks for it; empty cancels the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requesters: Vec<Requester>,
}

/// A union: exactly one member is set.
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

/// One who asks for the eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requester {
    /// A fully qualified domain name.
    pub name: String,
}

/// One who responds to the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interceptor {
    /// A fully qualified domain name.
    pub name: String,
}

/// How the request goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvictionRequestStatus {
    /// Generation that the controller has seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// `Evicted` and `Canceled`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Interceptors in the order in which they get their turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub target_interceptors: Vec<Interceptor>,
    /// Whose turn it is; at most one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub active_interceptors: Vec<String>,
    /// Whose turn is over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processed_interceptors: Vec<String>,
    /// What each interceptor reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interceptors: Vec<InterceptorStatus>,
    /// When `activeInterceptors` last changed to another interceptor.
    #[serde(with = "time::optional_micros", skip_serializing_if = "Option::is_none")]
    pub activation_time: Option<Timestamp>,
    /// What the pod was when the first interceptor got its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_info: Option<PodInfo>,
}

/// Where the pod is, and in which part of a drain it belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodInfo {
    /// Its node; empty if it is not bound.
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
    /// When it last said that it is at work.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub heartbeat_time: Option<Timestamp>,
    /// When it expects to be done.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub expected_finish_time: Option<Timestamp>,
    /// When it began.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When it stopped, having done its part or declined it.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// For people; always written.
    pub message: String,
    /// What keeps it from evicting the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// What blocked when the pod's owner was last told of it by an event. It stays when nothing blocks any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_blocked: Option<Box<Blocked>>,
}

/// What keeps an interceptor from evicting the pod. The words are those of [`super::blocked`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocked {
    /// Kind of cause.
    pub reason: String,
    /// Name of the budget, webhook or finalizer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// In what way a budget blocks.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Since when this blocks.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub since_time: Option<Timestamp>,
}
