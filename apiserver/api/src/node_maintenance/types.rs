//! NodeMaintenance as Rust structs, which validation and the controllers read. For the status see `status`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::status::NodeMaintenanceStatus;
use crate::meta::{LabelSelector, ObjectMeta, is_default};

/// Resource name.
pub const RESOURCE: &str = "nodemaintenances";
/// The finalizer that keeps a maintenance until its nodes are released.
pub const FINALIZER: &str = "nodemaintenance.k8s.io/maintenance-completion";

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
    /// The desired state.
    #[serde(skip_serializing_if = "is_default")]
    pub spec: NodeMaintenanceSpec,
    /// The observed state.
    #[serde(skip_serializing_if = "is_default")]
    pub status: NodeMaintenanceStatus,
}

impl NodeMaintenance {
    /// Whether it has [`FINALIZER`], which means that its nodes are not yet released.
    pub fn has_finalizer(&self) -> bool {
        self.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Whether its stage is Complete and its nodes are not yet released.
    pub fn is_ending(&self) -> bool {
        self.spec.stage == NodeMaintenanceStage::Complete && self.has_finalizer()
    }
}

/// The desired state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMaintenanceSpec {
    /// The nodes of the maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<NodeSelector>,
    /// How far the maintenance goes.
    pub stage: NodeMaintenanceStage,
    /// The order in which pods are evicted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drain_plan: Vec<DrainPlanEntry>,
    /// The purpose of the maintenance, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The last pod type that is drained; pods of later types are ignored. Static if the field is absent, as in
    /// objects that were stored before the field existed.
    pub last_pod_type: PodType,
}

impl Default for NodeMaintenanceSpec {
    fn default() -> Self {
        Self {
            node_selector: None,
            stage: NodeMaintenanceStage::default(),
            drain_plan: Vec::new(),
            reason: String::new(),
            last_pod_type: PodType::Static,
        }
    }
}

impl NodeMaintenanceSpec {
    /// Whether the maintenance drains pods of this type.
    pub fn drains(&self, pod_type: PodType) -> bool {
        pod_type <= self.last_pod_type
    }
}

/// The stages, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum NodeMaintenanceStage {
    /// The maintenance is announced only.
    #[default]
    Idle,
    /// Nodes are unschedulable.
    Cordon,
    /// Nodes are unschedulable, and EvictionRequests are created for their pods.
    Drain,
    /// The maintenance is over: nodes are schedulable again.
    Complete,
    /// A value that this version does not know. Validation rejects it.
    #[serde(other)]
    Unknown,
}

impl NodeMaintenanceStage {
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

    /// Whether the nodes of a maintenance in this stage are kept unschedulable.
    pub fn holds_nodes(self) -> bool {
        matches!(self, Self::Cordon | Self::Drain)
    }
}

/// Types of pods in the order in which they leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PodType {
    /// All pods that are not of another type.
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
    /// The known types, in their order.
    pub const ALL: [Self; 3] = [Self::Default, Self::DaemonSet, Self::Static];

    /// Returns the type with this value in JSON; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }

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

impl DrainPlanEntry {
    /// Whether the entry selects a pod: of its type, with at most its priority, and with labels that its selector
    /// matches.
    pub fn covers(&self, pod_type: PodType, priority: i32, labels: &BTreeMap<String, String>) -> bool {
        let matches = |selector: &LabelSelector| selector.is_empty() || selector.matches(labels);
        self.pod_type == pod_type
            && priority <= self.pod_priority
            && self.pod_selector.as_ref().is_none_or(matches)
    }
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
    /// Requirements on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Requirements on fields; only `metadata.name` is supported.
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
    /// The values; how many are allowed depends on the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}
