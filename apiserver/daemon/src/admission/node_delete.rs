//! Whoever writes a NodeMaintenance must be allowed to delete every node that it matches, before or after the change;
//! a selection of all nodes is warned of (KEP-4212, NodeMaintenance Admission).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::node_maintenance::{NodeSelector, node_selector};
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, Attributes, Operation};
use drydock_server::authz::{self, Authorizer};

use crate::host::HostNodes;

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Most node names that a refusal lists.
const MOST_NAMED: usize = 10;

type Nodes = BTreeMap<String, BTreeMap<String, String>>;

/// The check.
pub struct NodeDelete {
    authorizer: Arc<Authorizer>,
    nodes: Arc<HostNodes>,
}

impl NodeDelete {
    /// Asks `authorizer` about the nodes among `nodes` that match.
    pub fn new(authorizer: Arc<Authorizer>, nodes: Arc<HostNodes>) -> Self {
        Self { authorizer, nodes }
    }

    async fn may_delete(&self, attributes: &Attributes<'_>, node: &str) -> Result<bool, ApiError> {
        let question = authz::Attributes {
            verb: "delete".into(),
            version: "v1".into(),
            resource: "nodes".into(),
            name: node.into(),
            ..authz::Attributes::default()
        };
        Ok(self.authorizer.authorize(attributes.caller, attributes.user, &question).await?.allowed)
    }
}

#[async_trait]
impl Admission for NodeDelete {
    async fn admit(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        if !self.nodes.ready() {
            return Err(ApiError::service_unavailable("the host's nodes are not known yet; try again"));
        }
        let nodes = self.nodes.all();
        let new = attributes.new.map(|object| matching(object, &nodes)).unwrap_or_default();
        let mut concerned = attributes.old.map(|object| matching(object, &nodes)).unwrap_or_default();
        concerned.extend(new.iter().copied());
        concerned.sort_unstable();
        concerned.dedup();
        // Asked once without a name, and name by name only where that is denied.
        if !concerned.is_empty() && !self.may_delete(attributes, "").await? {
            let mut denied = Vec::new();
            for node in concerned {
                if !self.may_delete(attributes, node).await? {
                    denied.push(node);
                }
            }
            if !denied.is_empty() {
                return Err(refusal(attributes, &denied));
            }
        }
        if attributes.operation != Operation::Delete {
            warn(attributes, &new, &nodes);
        }
        Ok(())
    }
}

/// The nodes that a maintenance selects.
pub(super) fn matching<'a>(object: &Object, nodes: &'a Nodes) -> Vec<&'a str> {
    let selector = object.0.get("spec").and_then(|spec| spec.get("nodeSelector")).cloned();
    let selector: Option<NodeSelector> = selector.and_then(|s| serde_json::from_value(s).ok());
    let Some(selector) = selector else { return Vec::new() };
    let selected = nodes.iter().filter(|(name, labels)| node_selector::matches(&selector, name, labels));
    selected.map(|(name, _)| name.as_str()).collect()
}

fn refusal(attributes: &Attributes<'_>, denied: &[&str]) -> ApiError {
    let more = match denied.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = denied.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
    let user = &attributes.user.name;
    let why = format!("user {user:?} must be allowed to delete the selected nodes; denied: {named}{more}");
    ApiError::forbidden(attributes.names.group, attributes.names.plural, attributes.object_name(), why)
}

fn warn(attributes: &Attributes<'_>, selected: &[&str], nodes: &Nodes) {
    let degraded = "; the cluster may get into a degraded and unrecoverable state";
    if !nodes.is_empty() && selected.len() == nodes.len() {
        attributes.warnings.add(format!("spec.nodeSelector: selects all nodes of the cluster{degraded}"));
        return;
    }
    let mut control_plane =
        nodes.iter().filter(|(_, l)| l.contains_key(CONTROL_PLANE)).map(|(n, _)| n.as_str()).peekable();
    if control_plane.peek().is_some() && control_plane.all(|node| selected.contains(&node)) {
        attributes.warnings.add(format!("spec.nodeSelector: selects all control-plane nodes{degraded}"));
    }
}
