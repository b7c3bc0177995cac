//! What keeps a pod on its node, or a node from being drained, in words for people and programs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time;

/// A pod that does not leave, or a node that cannot be made unschedulable, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocker {
    /// Which pod; empty where the node itself blocks.
    pub pod: PodReference,
    /// One of [`REASONS`], or what a later version adds.
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub since_time: Option<Timestamp>,
}

/// A pod anywhere.
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

/// How many blockers a node status names.
pub const MAX_BLOCKERS: usize = 10;

/// One PodDisruptionBudget allows no eviction, or there are several.
pub const POD_DISRUPTION_BUDGET: &str = "PodDisruptionBudget";
/// An admission webhook or policy refuses the eviction.
pub const ADMISSION_WEBHOOK: &str = "AdmissionWebhook";
/// An interceptor is silent or late, or says itself that it is blocked.
pub const INTERCEPTOR: &str = "Interceptor";
/// The pod is terminating and past its grace period, or has a very long one.
pub const TERMINATING: &str = "Terminating";
/// Finalizers keep the terminating pod, or its EvictionRequest that is being deleted.
pub const FINALIZER: &str = "Finalizer";
/// The pod is part of a group that cannot be evicted pod by pod.
pub const WORKLOAD_POD: &str = "WorkloadPod";
/// A workload, or nobody known, puts new pods on the node.
pub const WORKLOAD_RETURNS: &str = "WorkloadReturns";
/// A DaemonSet that tolerates the taint of drains puts new pods on the node.
pub const DAEMON_SET_RETURNS: &str = "DaemonSetReturns";
/// The node's kubelet does not answer, and the pod cannot finish terminating.
pub const NODE_UNREACHABLE: &str = "NodeUnreachable";
/// The node cannot be made unschedulable, or does not take the taint of drains.
pub const NODE_UPDATE_REFUSED: &str = "NodeUpdateRefused";
/// No agent on the node stops static pods.
pub const NO_NODE_AGENT: &str = "NoNodeAgent";
/// Others withdraw or delete the pod's EvictionRequest.
pub const REQUEST_WITHDRAWN: &str = "RequestWithdrawn";
/// An EvictionRequest for another pod has the name that the pod's own must have.
pub const WRONG_TARGET: &str = "WrongTarget";
/// The pod is one of Drydock's own, and no other node takes pods.
pub const NO_SCHEDULABLE_NODE: &str = "NoSchedulableNode";
/// Something else.
pub const OTHER: &str = "Other";

/// All reasons.
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
