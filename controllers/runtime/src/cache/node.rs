//! A node, trimmed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cacheable::Cacheable;
use super::pod_wire::null_as_default;

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
