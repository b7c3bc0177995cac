//! The status of a NodeMaintenance as Rust structs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::blocker::Blocker;
use super::types::{DrainPlanEntry, PodType, Stage};
use crate::meta::{Condition, LabelSelector, is_default, is_zero};
use crate::time;

/// Condition: no pods of types up to `spec.lastPodType` are left on any selected node.
pub const DRAINED: &str = "Drained";
/// Condition: no pods of type Default are left on any selected node.
pub const WORKLOADS_DRAINED: &str = "WorkloadsDrained";
/// Condition: every selected node is unschedulable.
pub const CORDONED: &str = "Cordoned";
/// Condition: pods without a controller, or with an emptyDir volume, are to leave.
pub const PODS_WILL_BE_LOST: &str = "PodsWillBeLost";
/// Condition: pods that replace evicted ones find no node.
pub const EVICTED_PODS_UNSCHEDULABLE: &str = "EvictedPodsUnschedulable";

/// How the maintenance goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceStatus {
    /// Generation that the controller has seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Stages that have been started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stage_statuses: Vec<StageStatus>,
    /// One for each selected node that the object has room for; and for each that left the cluster undrained, or left the
    /// selection and is not handed over to another maintenance yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_statuses: Vec<NodeMaintenanceNodeStatus>,
    /// `Cordoned`, `WorkloadsDrained`, `Drained`, `PodsWillBeLost` and `EvictedPodsUnschedulable`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Index of the current entry of `spec.drainPlan`. None before the Drain stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_plan_position: Option<i32>,
    /// How many nodes are drained, or were when they left the cluster.
    #[serde(skip_serializing_if = "is_default")]
    pub drained_nodes: i32,
    /// What became of the requests.
    #[serde(skip_serializing_if = "is_default")]
    pub outcomes: NodeMaintenanceOutcomes,
    /// Nodes that left the cluster in the Drain stage.
    #[serde(skip_serializing_if = "is_default")]
    pub gone_nodes: NodeMaintenanceGoneNodes,
}

impl NodeMaintenanceStatus {
    /// When a stage was started. None if it was not, or the controller has not noted the time yet.
    pub fn started(&self, stage: Stage) -> Option<Timestamp> {
        self.stage_statuses.iter().find(|status| status.name == stage)?.start_timestamp
    }

    /// What it says of a node.
    pub fn of_node(&self, node: &str) -> Option<&NodeMaintenanceNodeStatus> {
        self.node_statuses.iter().find(|status| status.node_ref.name == node)
    }
}

/// The nodes that left the cluster while a maintenance drained them, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceGoneNodes {
    /// Those that were drained.
    pub drained: i32,
    /// Those that had pods, or were not known to be drained. It goes back to 0, which a merge patch must say.
    pub undrained: i32,
}

/// What became of the EvictionRequests of a maintenance, counted. Zeros are written: a merge patch that leaves a field out
/// keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceOutcomes {
    /// Those that ended as Evicted.
    pub evicted: i32,
    /// Those that were canceled, withdrawn or deleted before their pod had left.
    pub canceled: i32,
    /// Turns of interceptors that passed to the next one because nothing was heard of them.
    pub passed_over: i32,
    /// Pods that were put on a node again from which another one of their workload had been evicted, or of their namespace
    /// if no workload explains them that was there before the drain.
    pub returned: i32,
}

/// When a stage was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StageStatus {
    /// Which stage.
    pub name: Stage,
    /// When it started.
    #[serde(with = "time::optional_seconds", skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Timestamp>,
}

/// How the maintenance goes on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceNodeStatus {
    /// Which node.
    pub node_ref: NodeReference,
    /// Which pods are targeted here; never goes back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drain_targets: Vec<DrainPlanEntry>,
    /// State of the drain, and why the targets are what they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub drain_message: String,
    /// Pods without an unfinished EvictionRequest.
    pub pods_pending_evacuation: i32,
    /// Pods with one.
    pub pods_evacuating: i32,
    /// Those that have blocked for the longest time, at most [`MAX_BLOCKERS`](super::MAX_BLOCKERS).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// How many blockers there are.
    #[serde(skip_serializing_if = "is_default")]
    pub blocked_pods: i32,
    /// Pods that are left, by the entry of the plan with which they leave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PodsLeft>,
    /// Whether no pod of type Default is left here, which a live read has confirmed.
    #[serde(skip_serializing_if = "is_default")]
    pub workloads_drained: bool,
}

/// How many pods of an entry of the plan are left on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsLeft {
    /// Type of the entry.
    pub pod_type: PodType,
    /// Highest priority of the entry.
    pub priority: i32,
    /// Labels of the entry; none selects all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// How many.
    pub count: i32,
}

/// A node by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// Name of the node.
    pub name: String,
}
