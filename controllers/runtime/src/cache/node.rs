//! A node, trimmed.

use std::collections::BTreeMap;

use drydock_api::metav1::KnownLabels;
use drydock_api::node_maintenance::kubelet_labels::is_always_kept;
use drydock_api::text::cut_bytes;
use serde::{Deserialize, Serialize};

use super::bounded_map::{BoundedMap, WantedPairs};
use super::cacheable::Cacheable;
use super::pod_wire::null_as_default;

/// Annotation of a node under maintenance: who made it unschedulable, [`CORDONED_BY_US`] or [`CORDONED_BY_OTHERS`].
pub const CORDONED_BY: &str = "nodemaintenance.k8s.io/cordoned-by";
/// Drydock: the node is schedulable again after the maintenance.
pub const CORDONED_BY_US: &str = "nodemaintenance.k8s.io";
/// Others, before the maintenance: the node stays unschedulable.
pub const CORDONED_BY_OTHERS: &str = "other";

/// Condition of a node that a maintenance holds.
pub const IN_PROGRESS: &str = "MaintenanceInProgress";
/// Condition of a node in a drain: True until its pods are gone, then False.
pub const DRAINING: &str = "DrainInProgress";
/// Condition of a node in a drain: False until its pods are gone, then True.
pub const DRAINED: &str = "Drained";
/// Condition of a node that a maintenance in stage Idle selects.
pub const PLANNED: &str = "MaintenancePlanned";
/// The condition types that are Drydock's, on a node for which [`has_our_conditions`] is true.
pub const OUR_CONDITION_TYPES: [&str; 4] = [IN_PROGRESS, DRAINING, DRAINED, PLANNED];

/// Whether the conditions of [`OUR_CONDITION_TYPES`] on a node are Drydock's. Others may have a condition Drained: it is
/// Drydock's only beside MaintenanceInProgress or MaintenancePlanned.
pub fn has_our_conditions<'t>(types: impl IntoIterator<Item = &'t str>) -> bool {
    types.into_iter().any(|type_| [IN_PROGRESS, PLANNED].contains(&type_))
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "WireNode")]
pub struct Node {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.resourceVersion`
    pub resource_version: String,
    /// `metadata.labels`, of which the cache keeps 1,024 pairs and 64 KiB, as of a pod's, and beside them those that
    /// [no kubelet may set](is_always_kept).
    pub labels: BTreeMap<String, String>,
    /// The first key, in their order, of the labels that are not kept.
    pub labels_cut_from: Option<Box<str>>,
    /// `metadata.annotations`, only those of node maintenance.
    pub annotations: BTreeMap<String, String>,
    /// Whether the node is being deleted (`metadata.deletionTimestamp` is set).
    pub deleting: bool,
    /// `spec.unschedulable`
    pub unschedulable: bool,
    /// `spec.taints`
    pub taints: Vec<Taint>,
    /// `status.conditions`, those that are read.
    pub conditions: Vec<NodeCondition>,
}

/// A core/v1 Taint with all its fields: the list is atomic, so that a change of one taint writes all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Key
    pub key: String,
    /// Value
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`
    pub effect: String,
    /// When a `NoExecute` taint was added, as the host wrote it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// core/v1 NodeCondition without its times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeCondition {
    /// Type
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`
    pub status: String,
    /// Cause
    pub reason: String,
    /// For people
    pub message: String,
}

impl NodeCondition {
    /// What is kept of the condition; none if nothing reads it.
    fn kept(mut self) -> Option<Self> {
        for text in [&mut self.status, &mut self.reason, &mut self.message] {
            if text.len() > MAX_CONDITION_TEXT {
                *text = cut_bytes(text, MAX_CONDITION_TEXT);
            }
        }
        is_read(&self.type_).then_some(self)
    }
}

impl Node {
    /// The labels that the cache keeps, and from where on there may be others.
    pub fn known_labels(&self) -> KnownLabels<'_> {
        KnownLabels {
            labels: &self.labels,
            cut_from: self.labels_cut_from.as_deref(),
            is_always_known: is_always_kept,
        }
    }
    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|c| c.type_ == type_)
    }
}

impl Cacheable for Node {
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const KIND: &'static str = "Node";
    const PLURAL: &'static str = "nodes";

    fn name(&self) -> &str {
        &self.name
    }
    fn namespace(&self) -> &str {
        ""
    }
    fn uid(&self) -> &str {
        &self.uid
    }
    fn resource_version(&self) -> &str {
        &self.resource_version
    }
}

/// Prefix of the annotations that say who cordoned a node.
const OF_MAINTENANCE: &str = "nodemaintenance.k8s.io/";

/// Types of conditions that are read: ours, and whether the node is ready.
fn is_read(type_: &str) -> bool {
    OUR_CONDITION_TYPES.contains(&type_) || type_ == "Ready"
}

/// Most bytes of a reason or message of a condition that are kept: more than any of ours has.
const MAX_CONDITION_TEXT: usize = 8 << 10;

struct KeptNodeLabels;

impl WantedPairs for KeptNodeLabels {
    /// Selectors of maintenances read labels of nodes. A kubelet sets most labels of its own node.
    const MAX_PAIRS: usize = 1024;
    const MAX_BYTES: usize = 64 << 10;

    fn is_wanted(_: &str) -> bool {
        true
    }
    fn is_essential(key: &str) -> bool {
        is_always_kept(key)
    }
}

struct NodeAnnotations;

impl WantedPairs for NodeAnnotations {
    fn is_wanted(key: &str) -> bool {
        key.starts_with(OF_MAINTENANCE)
    }
    fn is_essential(key: &str) -> bool {
        key == CORDONED_BY
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNode {
    metadata: WireNodeMeta,
    spec: WireNodeSpec,
    status: WireNodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireNodeMeta {
    name: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    labels: BoundedMap<KeptNodeLabels>,
    annotations: BoundedMap<NodeAnnotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNodeSpec {
    unschedulable: Option<bool>,
    #[serde(deserialize_with = "null_as_default")]
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireNodeStatus {
    #[serde(deserialize_with = "null_as_default")]
    conditions: Vec<NodeCondition>,
}

/// What is kept of conditions. A kubelet may send any number of one type.
fn first_of_each_type(conditions: Vec<NodeCondition>) -> Vec<NodeCondition> {
    let mut first: Vec<NodeCondition> = Vec::new();
    for condition in conditions.into_iter().filter_map(NodeCondition::kept) {
        if first.iter().all(|other| other.type_ != condition.type_) {
            first.push(condition);
        }
    }
    first
}

impl From<WireNode> for Node {
    fn from(wire: WireNode) -> Self {
        Self {
            name: wire.metadata.name,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            labels_cut_from: wire.metadata.labels.cut_from,
            labels: wire.metadata.labels.pairs,
            annotations: wire.metadata.annotations.pairs,
            deleting: wire.metadata.deletion_timestamp.is_some(),
            unschedulable: wire.spec.unschedulable.unwrap_or_default(),
            taints: wire.spec.taints,
            conditions: first_of_each_type(wire.status.conditions),
        }
    }
}
