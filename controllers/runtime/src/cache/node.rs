//! A node, trimmed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// Whether the node is being deleted (`metadata.deletionTimestamp` is set).
    pub deleting: bool,
    /// `spec.unschedulable`
    pub unschedulable: bool,
    /// `spec.taints`
    pub taints: Vec<Taint>,
    /// `status.conditions`
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

impl Node {
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
    #[serde(deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_as_default")]
    annotations: BTreeMap<String, String>,
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

impl From<WireNode> for Node {
    fn from(wire: WireNode) -> Self {
        Self {
            name: wire.metadata.name,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            labels: wire.metadata.labels,
            annotations: wire.metadata.annotations,
            deleting: wire.metadata.deletion_timestamp.is_some(),
            unschedulable: wire.spec.unschedulable.unwrap_or_default(),
            taints: wire.spec.taints,
            conditions: wire.status.conditions,
        }
    }
}
