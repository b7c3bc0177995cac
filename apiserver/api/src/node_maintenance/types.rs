//! NodeMaintenance as Rust structs: what validation and the controllers read, and what the controllers write.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, LabelSelector, ObjectMeta, is_default, is_zero};
use crate::time;

/// Resource name.
pub const RESOURCE: &str = "nodemaintenances";
/// Keeps an object until its nodes are released.
pub const FINALIZER: &str = "nodemaintenance.k8s.io/maintenance-completion";
/// Condition: no pods are left on any selected node.
pub const DRAINED: &str = "Drained";
/// How many blockers a node status names.
pub const MAX_BLOCKERS: usize = 10;

/// An intent to maintain nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenance {
    /// `coordination.k8s.io/v1alpha1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `NodeMaintenance`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(skip_serializing_if = "is_default")]
    pub spec: NodeMaintenanceSpec,
    /// How it goes.
    #[serde(skip_serializing_if = "is_default")]
    pub status: NodeMaintenanceStatus,
}

/// What is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceSpec {
    /// Which nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// How far to go.
    pub stage: Stage,
    /// In which order pods leave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drain_plan: Vec<DrainPlanEntry>,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Stages in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Stage {
    /// Announced only.
    #[default]
    Idle,
    /// Nodes are unschedulable.
    Cordon,
    /// Nodes are unschedulable and their pods are asked to leave.
    Drain,
    /// Over: nodes are schedulable again.
    Complete,
    /// A value that this version does not know; validation refuses it.
    #[serde(other)]
    Unknown,
}

impl Stage {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Cordon => "Cordon",
            Self::Drain => "Drain",
            Self::Complete => "Complete",
            Self::Unknown => "Unknown",
        }
    }
}

/// Types of pods in the order in which they leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PodType {
    /// Every pod that is neither of the others.
    #[default]
    #[serde(alias = "")]
    Default,
    /// Pods whose controller is a DaemonSet.
    DaemonSet,
    /// Mirror pods of the kubelet's manifests.
    Static,
    /// A value that this version does not know; validation refuses it.
    #[serde(other)]
    Unknown,
}

impl PodType {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::DaemonSet => "DaemonSet",
            Self::Static => "Static",
            Self::Unknown => "Unknown",
        }
    }
}

/// A tier of pods: of this type, with at most this priority, selected by these labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DrainPlanEntry {
    /// Labels; none or empty selects all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// Highest priority selected.
    pub pod_priority: i32,
    /// Type selected.
    pub pod_type: PodType,
}

/// core/v1 NodeSelector: terms are ORed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// At least one.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// core/v1 NodeSelectorTerm: requirements are ANDed; a term without any selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    /// On labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// On fields; `metadata.name` only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// core/v1 NodeSelectorRequirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorRequirement {
    /// Label key, or field.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// As the operator wants them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

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
    /// One per selected node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_statuses: Vec<NodeMaintenanceNodeStatus>,
    /// `Drained`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
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
    /// The longest blocked pods, at most [`MAX_BLOCKERS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// How many pods are blocked.
    #[serde(skip_serializing_if = "is_default")]
    pub blocked_pods: i32,
}

/// A node by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// Name of the node.
    pub name: String,
}

/// A pod that does not leave, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Blocker {
    /// Which pod.
    pub pod: PodReference,
    /// `PodDisruptionBudget`, `AdmissionWebhook`, `Interceptor`, `Terminating`, `Finalizer`, `WorkloadPod`,
    /// `DaemonSetReturns`, `NoNodeAgent`, `RequestWithdrawn`, `WrongTarget`, `NoSchedulableNode`, `Other`, or what a later
    /// version adds.
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
