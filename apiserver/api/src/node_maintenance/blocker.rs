//! What keeps a pod on its node, or keeps a node from being drained, for people and programs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time;

/// A pod that does not leave, or a node that cannot be made unschedulable, with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocker {
    /// The pod; empty if the node itself blocks.
    pub pod: PodReference,
    /// One of [`REASONS`], or a value of a later version.
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when it blocks.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub since_time: Option<Timestamp>,
}

/// A pod in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodReference {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// UID of the pod.
    pub uid: String,
}

/// Maximum number of blockers in the status of a node.
pub const MAX_BLOCKERS: usize = 10;

/// A PodDisruptionBudget allows no eviction, or several cover the pod.
pub const POD_DISRUPTION_BUDGET: &str = "PodDisruptionBudget";
/// An admission webhook or policy refuses the eviction.
pub const ADMISSION_WEBHOOK: &str = "AdmissionWebhook";
/// An interceptor is silent or late, or reports that it is blocked.
pub const INTERCEPTOR: &str = "Interceptor";
/// The pod has been terminating for longer than its grace period, or its grace period is very long.
pub const TERMINATING: &str = "Terminating";
/// Finalizers keep the terminating pod, or keep its EvictionRequest that is being deleted.
pub const FINALIZER: &str = "Finalizer";
/// The pod belongs to a group that cannot be evicted pod by pod.
pub const WORKLOAD_POD: &str = "WorkloadPod";
/// A workload, or an unknown creator, puts new pods on the node.
pub const WORKLOAD_RETURNS: &str = "WorkloadReturns";
/// A DaemonSet that tolerates the drain taint puts new pods on the node.
pub const DAEMON_SET_RETURNS: &str = "DaemonSetReturns";
/// The kubelet of the node does not respond, and the pod cannot finish terminating.
pub const NODE_UNREACHABLE: &str = "NodeUnreachable";
/// The node cannot be made unschedulable, or cannot be given the drain taint.
pub const NODE_UPDATE_REFUSED: &str = "NodeUpdateRefused";
/// No agent on the node stops static pods.
pub const NO_NODE_AGENT: &str = "NoNodeAgent";
/// Other clients remove the requester from the pod's EvictionRequest, or delete the request.
pub const REQUEST_WITHDRAWN: &str = "RequestWithdrawn";
/// The EvictionRequest with the name that this pod needs is for another pod.
pub const WRONG_TARGET: &str = "WrongTarget";
/// The pod belongs to Drydock, and no other node accepts pods.
pub const NO_SCHEDULABLE_NODE: &str = "NoSchedulableNode";
/// Something else.
pub const OTHER: &str = "Other";

/// All reasons. `kubectl explain`, the guide ('Stuck: what now') and the status stream list them too; tests name the place
/// that misses one, and `conformance/stream-clients/generate` makes the clients again.
pub const REASONS: [&str; 15] = [
    POD_DISRUPTION_BUDGET,
    ADMISSION_WEBHOOK,
    INTERCEPTOR,
    TERMINATING,
    FINALIZER,
    WORKLOAD_POD,
    WORKLOAD_RETURNS,
    DAEMON_SET_RETURNS,
    NODE_UNREACHABLE,
    NODE_UPDATE_REFUSED,
    NO_NODE_AGENT,
    REQUEST_WITHDRAWN,
    WRONG_TARGET,
    NO_SCHEDULABLE_NODE,
    OTHER,
];
