//! Whoever writes a NodeMaintenance must be allowed to delete every node that it matches, before or after the change;
//! a selection of all nodes is warned of (KEP-4212, NodeMaintenance Admission).

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::node_maintenance::{NodeSelector, node_selector};
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, Attributes, Operation};
use drydock_server::authn::Caller;
use drydock_server::authz::{self, Authorizer};
use drydock_server::user::User;
use futures::future::try_join_all;

use crate::host::HostNodes;

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Most node names that a refusal lists.
const MOST_NAMED: usize = 10;

/// Nodes that the host is asked about at a time.
const AT_A_TIME: usize = 8;

/// Nodes that may not be deleted.
#[derive(Debug, Default, PartialEq)]
struct Denied<'n> {
    nodes: Vec<&'n str>,
    /// Whether there may be others, about which nobody was asked as the refusal has no room for them.
    maybe_more: bool,
}

type Nodes = BTreeMap<String, BTreeMap<String, String>>;

/// The check.
pub struct NodeDelete {
    deletes: Deletes,
    nodes: Arc<HostNodes>,
}

impl NodeDelete {
    /// Asks `authorizer` about the nodes among `nodes` that match.
    pub fn new(authorizer: Arc<Authorizer>, nodes: Arc<HostNodes>) -> Self {
        Self { deletes: Deletes(authorizer), nodes }
    }
}

/// Who may delete nodes.
struct Deletes(Arc<Authorizer>);

impl Deletes {
    /// The nodes among `concerned` that `user` may not delete, as far as a refusal names them. The host is asked once
    /// without a name, and name by name, a few at a time, only where that is denied.
    async fn denied<'n>(
        &self,
        caller: &Caller,
        user: &User,
        concerned: &[&'n str],
    ) -> Result<Option<Denied<'n>>, ApiError> {
        if concerned.is_empty() || self.may_delete(caller, user, "").await? {
            return Ok(None);
        }
        let mut denied = Denied::default();
        for (i, some) in concerned.chunks(AT_A_TIME).enumerate() {
            let answers = try_join_all(some.iter().map(|node| self.may_delete(caller, user, node))).await?;
            let refused = some.iter().zip(answers).filter(|(_, may)| !may);
            denied.nodes.extend(refused.map(|(node, _)| *node));
            if denied.nodes.len() >= MOST_NAMED {
                denied.maybe_more = (i + 1) * AT_A_TIME < concerned.len() || denied.nodes.len() > MOST_NAMED;
                break;
            }
        }
        Ok(Some(denied).filter(|denied| !denied.nodes.is_empty()))
    }

    async fn may_delete(&self, caller: &Caller, user: &User, node: &str) -> Result<bool, ApiError> {
        let question = authz::Attributes {
            verb: "delete".into(),
            version: "v1".into(),
            resource: "nodes".into(),
            name: node.into(),
            ..authz::Attributes::default()
        };
        Ok(self.0.authorize(caller, user, &question).await?.allowed)
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
        if let Some(denied) = self.deletes.denied(attributes.caller, attributes.user, &concerned).await? {
            return Err(refusal(attributes, &denied));
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

fn refusal(attributes: &Attributes<'_>, denied: &Denied<'_>) -> ApiError {
    let more = if denied.maybe_more { " and possibly more" } else { "" };
    let named = denied.nodes.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::admission::asked::{caller, host};

    async fn denied(rule: fn(&str, &str) -> bool, nodes: usize) -> (Option<(Vec<String>, bool)>, usize) {
        let (authorizer, asked) = host(rule);
        let names: Vec<String> = (0..nodes).map(|i| format!("n{i:04}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let caller = caller("ann", &[]);
        let denied = Deletes(authorizer).denied(&caller, &caller.user, &names).await.unwrap();
        let denied = denied.map(|it| (it.nodes.iter().map(|&n| n.to_owned()).collect(), it.maybe_more));
        (denied, asked.names().len())
    }

    #[tokio::test]
    async fn whoever_may_delete_all_nodes_costs_one_review() {
        assert_eq!(denied(|_, _| true, 5000).await, (None, 1));
    }

    /// A write of somebody who may delete no node cost as many reviews as there are nodes, one after another.
    #[tokio::test]
    async fn no_more_is_asked_than_a_refusal_names() {
        let (denied, asked) = denied(|_, _| false, 5000).await;
        let (nodes, maybe_more) = denied.unwrap();
        assert!(nodes[..MOST_NAMED].iter().enumerate().all(|(i, node)| *node == format!("n{i:04}")));
        assert!(maybe_more && asked <= 1 + MOST_NAMED + AT_A_TIME, "{asked}");
    }

    #[tokio::test]
    async fn every_node_is_asked_about_before_the_write_is_let_through() {
        assert_eq!(denied(|_, node| !node.is_empty(), 100).await, (None, 101));
        let (last, asked) = denied(|_, node| !["", "n0098", "n0099"].contains(&node), 100).await;
        assert_eq!((last, asked), (Some((vec!["n0098".into(), "n0099".into()], false)), 101));
    }
}
