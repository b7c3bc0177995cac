//! NodeMaintenance: the fields and texts of KEP-4212, with a few changes. The schema is derived from the structs, which
//! validation and the controllers read. For the status see `status`.
//!
//! The KEP gives no protobuf numbers. They are assigned here, in the order of its structs; a new field takes the next
//! free number, and never one that was used.

// The texts are published as they are: they are no Markdown.
#![allow(rustdoc::bare_urls)]

use drydock_machinery::schema::ApiType;
use drydock_machinery::schema::common::{
    API_VERSION_TEXT, KIND_TEXT, SELECTOR_ITEMS_MAX, SELECTOR_VALUES_MAX,
};
use serde::{Deserialize, Serialize};

use super::limits::MAX_DRAIN_PLAN;
use super::status::NodeMaintenanceStatus;
use drydock_machinery::metav1::{KnownLabels, LabelSelector, ObjectMeta, is_default};

/// Resource name.
pub const RESOURCE: &str = "nodemaintenances";
/// The finalizer that keeps a maintenance until its nodes are released.
pub const FINALIZER: &str = "nodemaintenance.k8s.io/maintenance-completion";

/// NodeMaintenance serves as an intent to remove or migrate pods from a set of nodes.
///
/// Stages of the maintenance:
///
/// 1. Planning: let the users know that maintenance will be performed on a particular set of nodes in the future.
///    Configured with .spec.stage=Idle.
/// 2. Cordon: stop accepting (scheduling) new pods. Configured with .spec.stage=Cordon.
/// 3. Drain: gives an intent to drain all selected nodes by creating EvictionRequest objects for the node's pods.
///    Configured with .spec.stage=Drain.
/// 4. Drain Complete: all targeted pods have been drained from all the selected nodes. The nodes can be upgraded,
///    restarted, or shut down. The configuration is still kept at .spec.stage=Drain and Drained condition is set to
///    "True".
/// 5. Maintenance Complete: make the nodes schedulable again once the node maintenance is done. Configured with
///    .spec.stage=Complete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenance {
    /// `coordination.k8s.io/v1alpha1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 0, text = API_VERSION_TEXT)]
    pub api_version: String,
    /// `NodeMaintenance`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 0, text = KIND_TEXT)]
    pub kind: String,
    /// Object's metadata. The finalizer nodemaintenance.k8s.io/maintenance-completion is placed on the object when a
    /// stage other than Idle is set, to ensure that the nodes are released on deletion. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    #[schema(tag = 1, always)]
    pub metadata: ObjectMeta,
    /// Spec defines which nodes are maintained, how far, and in which order their pods leave. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 2, required)]
    pub spec: NodeMaintenanceSpec,
    /// Status represents the most recently observed status of the node maintenance. Populated by the node maintenance
    /// controller. More info:
    /// https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
    #[serde(skip_serializing_if = "is_default")]
    #[schema(tag = 3, always)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct NodeMaintenanceSpec {
    /// NodeSelector selects nodes for this node maintenance. Nodes that leave the selection are released, nodes that
    /// join are drained in the order of the plan, and never below what the node already shows. All terms together may
    /// have at most 1000 requirements and 4096 values. This field is required.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 1, required)]
    pub node_selector: Option<NodeSelector>,
    /// Stage of the maintenance. The order of the stages is Idle -> Cordon -> Drain -> Complete; it can only move
    /// forward, and stages can be skipped.
    ///
    /// - Idle does not interact with the cluster.
    /// - Cordon cordons all selected nodes by making them unschedulable.
    /// - Drain cordons all selected nodes and gives an intent to drain them by creating EvictionRequest objects for
    ///   the node's pods.
    /// - Complete withdraws from all EvictionRequest objects requested by this NodeMaintenance and uncordons all
    ///   selected nodes by making them schedulable again, unless there is another maintenance in progress.
    ///
    /// The NodeMaintenance object is moved to the Complete stage on deletion unless the Idle stage has been set. The
    /// default value is Idle.
    #[schema(tag = 2, default = "\"Idle\"")]
    pub stage: NodeMaintenanceStage,
    /// DrainPlan is executed from the first entry to the last entry during the Drain stage. DrainPlanEntry podType
    /// fields should be in the following order: Default -> DaemonSet -> Static. DrainPlanEntry priority fields should
    /// be in ascending order for each podType. If the priority and podType are the same, concrete selectors are
    /// executed first.
    ///
    /// The following entries are injected into the drainPlan where they are absent, for each podType up to
    /// lastPodType: podPriority 1000000000 (highest priority for user defined priority classes), 2000000000
    /// (system-cluster-critical priority class), 2000001000 (system-node-critical priority class) and 2147483647
    /// (maximum value).
    ///
    /// Duplicate entries are not allowed, and entries out of order are rejected. All podSelectors together may have
    /// at most 1000 labels and expressions and 4096 values. The maximum length of the list is 512. The list is
    /// atomic. This field is immutable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, list_type = "atomic", max_items = MAX_DRAIN_PLAN)]
    pub drain_plan: Vec<DrainPlanEntry>,
    /// Reason for the maintenance.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 4)]
    pub reason: String,
    /// LastPodType is the last pod type that this maintenance drains, in the order Default -> DaemonSet -> Static.
    /// Pods of later types do not exist for it: they stay, they are not counted, they are not in the drainPlan, and
    /// they keep the Drained condition from nothing. Another maintenance on the same nodes drains them if they are up
    /// to its own lastPodType.
    ///
    /// - Default leaves DaemonSet and static pods alone, as `kubectl drain --ignore-daemonsets` does. Choose it
    ///   where DaemonSets tolerate all taints, and so come back as often as their pods are deleted, or where static
    ///   pods run and no node agent does.
    /// - DaemonSet leaves static pods alone.
    /// - Static drains every pod.
    ///
    /// The default value is Static. This field is immutable.
    // Absent in objects that were stored before the field existed.
    #[schema(tag = 5, default = "\"Static\"")]
    pub last_pod_type: PodType,
    /// Username records the user whose write last changed the stage or the node selector, or the user whom that one
    /// impersonated. It is set by the API server, which ignores what a client sends. The maximum length is 1024 bytes: a
    /// user with a longer name cannot change these fields.
    ///
    /// The Evictions of the pods that the maintenance drains name this user in an annotation, see
    /// .spec.requesterUsers of EvictionRequest.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(tag = 6)]
    pub username: String,
}

impl Default for NodeMaintenanceSpec {
    fn default() -> Self {
        Self {
            node_selector: None,
            stage: NodeMaintenanceStage::default(),
            drain_plan: Vec::new(),
            reason: String::new(),
            last_pod_type: PodType::Static,
            username: String::new(),
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType,
)]
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
    /// Whether the nodes of a maintenance in this stage are kept unschedulable.
    pub fn holds_nodes(self) -> bool {
        matches!(self, Self::Cordon | Self::Drain)
    }
}

/// Types of pods in the order in which they leave.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ApiType,
)]
pub enum PodType {
    /// All pods that are not of another type.
    #[default]
    #[serde(alias = "")]
    Default,
    /// Pods whose controller is a DaemonSet that exists and is not being deleted.
    DaemonSet,
    /// Mirror pods of the kubelet's manifests, which their node controls.
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
}

/// DrainPlanEntry selects pods by their type, their priority and their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.coordination.v1alpha1")]
pub struct DrainPlanEntry {
    /// PodSelector selects pods according to their labels. This can help to select which pods of the same priority
    /// should be evacuated first. An empty selector is the same as none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(tag = 1)]
    pub pod_selector: Option<LabelSelector>,
    /// PodPriority specifies a pod priority. Pods with a priority less or equal to this value are selected.
    #[schema(tag = 2, required)]
    pub pod_priority: i32,
    /// PodType selects pods according to the pod type:
    ///
    /// - Default selects all pods except DaemonSet and Static pods.
    /// - DaemonSet selects DaemonSet pods.
    /// - Static selects static pods.
    ///
    /// The default value is Default.
    #[schema(tag = 3, default = "\"Default\"")]
    pub pod_type: PodType,
}

impl DrainPlanEntry {
    /// Whether the entry is known to select a pod: of its type, with at most its priority, and with labels that its selector
    /// matches. An entry that does if a label is there, or is not, of which nothing is known selects no pod: the pod stays until
    /// an entry without a selector selects it.
    pub fn covers<'a>(&self, pod_type: PodType, priority: i32, labels: impl Into<KnownLabels<'a>>) -> bool {
        let labels = labels.into();
        let matches = |selector: &LabelSelector| selector.matches_known(labels) == Some(true);
        self.pod_type == pod_type
            && priority <= self.pod_priority
            && self.pod_selector.as_ref().is_none_or(matches)
    }
}

/// core/v1 NodeSelector: terms are ORed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.core.v1", struct_type = "atomic")]
pub struct NodeSelector {
    /// At least one.
    #[schema(tag = 1, required, max_items = SELECTOR_ITEMS_MAX)]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// core/v1 NodeSelectorTerm: requirements are ANDed; a term without any selects nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.core.v1", struct_type = "atomic")]
pub struct NodeSelectorTerm {
    /// Requirements on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 1, max_items = SELECTOR_ITEMS_MAX)]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Requirements on fields; only `metadata.name` is supported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 2, max_items = SELECTOR_ITEMS_MAX)]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

impl NodeSelectorTerm {
    /// Whether it has no requirements, and selects nothing.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }
}

/// core/v1 NodeSelectorRequirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ApiType)]
#[serde(rename_all = "camelCase", default)]
#[schema(package = "io.k8s.api.core.v1")]
pub struct NodeSelectorRequirement {
    /// Label key, or field.
    #[schema(tag = 1, required)]
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    #[schema(tag = 2, required)]
    pub operator: String,
    /// The values; how many are allowed depends on the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(tag = 3, max_items = SELECTOR_VALUES_MAX)]
    pub values: Vec<String>,
}
