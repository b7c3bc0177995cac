//! The status of a NodeMaintenance as Rust structs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::types::{DrainPlanEntry, NodeMaintenanceStage, PodType};
use crate::meta::{Condition, LabelSelector, is_default, is_zero};
use crate::time;

/// Condition: no pods of types up to `spec.lastPodType` are left on any selected node.
pub const DRAINED: &str = "Drained";
/// Condition: no pods of type Default are left on any selected node.
pub const WORKLOADS_DRAINED: &str = "WorkloadsDrained";
/// Condition: every selected node is unschedulable.
pub const CORDONED: &str = "Cordoned";
/// Condition: pods without a controller, or with an emptyDir volume, will be evicted.
pub const PODS_WILL_BE_LOST: &str = "PodsWillBeLost";
/// Condition: pods that replace evicted ones cannot be scheduled.
pub const EVICTED_PODS_UNSCHEDULABLE: &str = "EvictedPodsUnschedulable";

/// The state of the maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceStatus {
    /// The generation that the controller has observed.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Stages that have been started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stage_statuses: Vec<StageStatus>,
    /// One for each selected node, as far as they fit in the object; also one for each node that left the cluster
    /// undrained, and for each that left the selection and is not yet handed over to another maintenance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_statuses: Vec<NodeMaintenanceNodeStatus>,
    /// `Cordoned`, `WorkloadsDrained`, `Drained`, `PodsWillBeLost` and `EvictedPodsUnschedulable`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Index of the current entry of `spec.drainPlan`. `None` before the Drain stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_plan_position: Option<i32>,
    /// Number of nodes that are drained, or were when they left the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub drained_nodes: i32,
    /// Counts of how the EvictionRequests ended.
    #[serde(skip_serializing_if = "is_default")]
    pub outcomes: NodeMaintenanceOutcomes,
    /// Nodes that left the cluster during the Drain stage.
    #[serde(skip_serializing_if = "is_default")]
    pub gone_nodes: NodeMaintenanceGoneNodes,
}

impl NodeMaintenanceStatus {
    /// When a stage was started. `None` if it was not started, or if the controller has not set the time yet.
    pub fn started(&self, stage: NodeMaintenanceStage) -> Option<Timestamp> {
        self.stage_statuses.iter().find(|status| status.name == stage)?.start_timestamp
    }

    /// The status of a node.
    pub fn of_node(&self, node: &str) -> Option<&NodeMaintenanceNodeStatus> {
        self.node_statuses.iter().find(|status| status.node_ref.name == node)
    }
}

/// Counts of the nodes that left the cluster while a maintenance drained them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceGoneNodes {
    /// Nodes that were drained.
    pub drained: i32,
    /// Nodes that had pods, or were not known to be drained. It can return to 0, which a merge patch must send
    /// explicitly.
    pub undrained: i32,
}

/// Counts of how the EvictionRequests of a maintenance ended. Zeros are serialized: a merge patch that omits a field
/// does not change it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceOutcomes {
    /// Requests that ended as Evicted.
    pub evicted: i32,
    /// Requests that were canceled, withdrawn or deleted before their pod had left.
    pub canceled: i32,
    /// Turns of interceptors that passed to the next one because the interceptor was silent.
    pub passed_over: i32,
    /// Pods that were put on a node after another pod of their workload had been evicted from it, or, if no workload
    /// that existed before the drain explains the pod, after another pod of their namespace had been.
    pub returned: i32,
}

/// A stage that was started, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageStatus {
    /// The stage.
    pub name: NodeMaintenanceStage,
    /// When the stage was started.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Timestamp>,
}

/// The state of the maintenance on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceNodeStatus {
    /// The node.
    pub node_ref: NodeReference,
    /// The drain plan entries whose pods are to leave this node. Never goes back to earlier entries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drain_targets: Vec<DrainPlanEntry>,
    /// The state of the drain, and why the targets are these.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub drain_message: String,
    /// Pods without an unfinished EvictionRequest.
    pub pods_pending_evacuation: i32,
    /// Pods with an unfinished EvictionRequest.
    pub pods_evacuating: i32,
    /// The blockers that have blocked for the longest time, at most [`MAX_BLOCKERS`](super::MAX_BLOCKERS).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// Total number of blockers.
    #[serde(skip_serializing_if = "is_default")]
    pub blocked_pods: i32,
    /// The pods that are left, counted by the entry of the plan that covers them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PodsLeft>,
    /// Whether no pod of type Default is left on the node, confirmed by a live read.
    #[serde(skip_serializing_if = "is_default")]
    pub workloads_drained: bool,
}

/// The number of pods of a plan entry that are left on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsLeft {
    /// Pod type of the entry.
    pub pod_type: PodType,
    /// Maximum priority of the entry.
    pub priority: i32,
    /// Pod selector of the entry; `None` selects all pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// The number of pods.
    pub count: i32,
}

/// A node by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// Name of the node.
    pub name: String,
}

/// A pod that does not leave, or a node that cannot be made unschedulable, with the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocker {
    /// The pod; empty if the node itself blocks.
    pub pod: PodReference,
    /// One of [`REASONS`](crate::reasons::REASONS), or a value of a later version.
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
