//! A user who writes a NodeMaintenance must be allowed to delete every node that it selects before or after the change,
//! now or in the future (KEP-4212, NodeMaintenance Admission).
//!
//! A selector that names its nodes never selects others: the right is checked for each name, whether the node exists or
//! not. Any other selector may later select any node, by a label that the node gets: it needs the right to delete nodes
//! of any name. So no right has to be checked again when nodes join or change.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::node_maintenance::{FINALIZER, NAMES, NodeSelector, finalizer, node_selector};
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes, AdmissionOperation};
use drydock_serving::auth::Caller;
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::request::user::User;
use futures::future::try_join_all;

/// Maximum number of node names that a refusal lists.
const MOST_NAMED: usize = 10;

/// Number of nodes about which the host is asked at the same time.
const AT_A_TIME: usize = 8;

/// The right that a write needs.
#[derive(Debug, PartialEq)]
enum Needed {
    /// To update `nodemaintenances/finalizers`, for a write that only removes our finalizer.
    /// OwnerReferencesPermissionEnforcement of Kubernetes uses the same right.
    Release,
    /// To delete nodes of any name.
    AnyNode,
    /// To delete these nodes.
    Nodes(BTreeSet<String>),
}

/// Nodes that may not be deleted.
#[derive(Debug, Default, PartialEq)]
struct Denied {
    nodes: Vec<String>,
    /// Whether there may be others, which the refusal does not list.
    maybe_more: bool,
}

/// The admission check.
pub struct NodeDelete {
    rights: Rights,
}

impl NodeDelete {
    /// Creates the check, which asks `authorizer`.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { rights: Rights(authorizer) }
    }
}

#[async_trait]
impl Admission for NodeDelete {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let AdmissionAttributes { caller, user, .. } = *attributes;
        let why = match needed(attributes.operation, attributes.old, attributes.new)? {
            Needed::Release if self.rights.may_release(caller, user, attributes.object_name()).await? => {
                return Ok(());
            }
            Needed::Release => {
                format!("update nodemaintenances/finalizers to remove the finalizer {FINALIZER}")
            }
            Needed::AnyNode if self.rights.may_delete(caller, user, "").await? => return Ok(()),
            Needed::AnyNode => ANY_NODE.to_owned(),
            Needed::Nodes(nodes) => match self.rights.denied(caller, user, &nodes).await? {
                None => return Ok(()),
                Some(denied) => format!("delete the selected nodes; denied: {denied}"),
            },
        };
        Err(attributes.forbidden_object(format!("user {:?} must be allowed to {why}", user.name)))
    }
}

const ANY_NODE: &str = "delete nodes whatever their name, as spec.nodeSelector may select any that is to come; one whose \
                        every term has matchFields metadata.name In [...] needs it for the named nodes alone";

fn needed(
    operation: AdmissionOperation,
    old: Option<&Object>,
    new: Option<&Object>,
) -> Result<Needed, ApiError> {
    if let (AdmissionOperation::Update, Some(old), Some(new)) = (operation, old, new)
        && finalizer::removes_only_finalizer(new, old)
    {
        return Ok(Needed::Release);
    }
    let mut nodes = BTreeSet::new();
    for object in old.into_iter().chain(new) {
        match node_selector::names(&selector_of(object)?) {
            Some(names) => nodes.extend(names.into_iter().map(str::to_owned)),
            None => return Ok(Needed::AnyNode),
        }
    }
    Ok(Needed::Nodes(nodes))
}

/// Returns the selector of a maintenance that is stored or has been validated.
pub(super) fn selector_of(object: &Object) -> Result<NodeSelector, ApiError> {
    node_selector::of(object)
        .map_err(|why| ApiError::internal(format!("{} {:?}: {why}", NAMES.kind, object.name())))
}

/// Asks the host for rights.
struct Rights(Arc<Authorizer>);

impl Rights {
    /// Returns the nodes that `user` may not delete, at least as many as a refusal lists. The host is asked once
    /// without a name, and by name, a few at a time, only if that is denied.
    async fn denied(
        &self,
        caller: &Caller,
        user: &User,
        nodes: &BTreeSet<String>,
    ) -> Result<Option<Denied>, ApiError> {
        if nodes.is_empty() || self.may_delete(caller, user, "").await? {
            return Ok(None);
        }
        let (nodes, mut denied) = (Vec::from_iter(nodes), Denied::default());
        for (i, some) in nodes.chunks(AT_A_TIME).enumerate() {
            let answers = try_join_all(some.iter().map(|node| self.may_delete(caller, user, node))).await?;
            let refused = some.iter().zip(answers).filter(|(_, may)| !may);
            denied.nodes.extend(refused.map(|(node, _)| (*node).clone()));
            if denied.nodes.len() >= MOST_NAMED {
                denied.maybe_more = (i + 1) * AT_A_TIME < nodes.len() || denied.nodes.len() > MOST_NAMED;
                break;
            }
        }
        Ok(Some(denied).filter(|denied| !denied.nodes.is_empty()))
    }

    async fn may_delete(&self, caller: &Caller, user: &User, node: &str) -> Result<bool, ApiError> {
        let question = AuthorizationAttributes {
            verb: "delete".into(),
            version: "v1".into(),
            resource: "nodes".into(),
            name: node.into(),
            ..AuthorizationAttributes::default()
        };
        Ok(self.0.authorize(caller, user, &question).await?.allowed)
    }

    async fn may_release(&self, caller: &Caller, user: &User, maintenance: &str) -> Result<bool, ApiError> {
        let question = AuthorizationAttributes {
            verb: "update".into(),
            group: NAMES.group.into(),
            version: NAMES.version.into(),
            resource: NAMES.plural.into(),
            subresource: "finalizers".into(),
            name: maintenance.into(),
            ..AuthorizationAttributes::default()
        };
        Ok(self.0.authorize(caller, user, &question).await?.allowed)
    }
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = self.nodes.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        write!(f, "{named}{}", if self.maybe_more { " and possibly more" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::asked::{caller, host};

    async fn denied(rule: fn(&str, &str) -> bool, nodes: usize) -> (Option<(Vec<String>, bool)>, usize) {
        let (authorizer, asked) = host(rule);
        let names: BTreeSet<String> = (0..nodes).map(|i| format!("n{i:04}")).collect();
        let caller = caller("ann", &[]);
        let denied = Rights(authorizer).denied(&caller, &caller.user, &names).await.unwrap();
        (denied.map(|it| (it.nodes, it.maybe_more)), asked.names().len())
    }

    #[tokio::test]
    async fn whoever_may_delete_all_nodes_costs_one_review() {
        assert_eq!(denied(|_, _| true, 5000).await, (None, 1));
    }

    /// Regression: a write by a user who may delete no node cost one review for each node, one after another.
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

    fn maintenance(terms: &Value, finalizers: &[&str]) -> Object {
        let spec = json!({ "nodeSelector": { "nodeSelectorTerms": terms } });
        let metadata = json!({ "name": "m", "finalizers": finalizers });
        Object::from(serde_json::Map::from_iter([("metadata".into(), metadata), ("spec".into(), spec)]))
    }

    fn named(node: &str) -> Value {
        json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] })
    }

    fn labelled() -> Value {
        json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b"] }] })
    }

    /// Regression: if no node matched at the time, no right was checked, and a user who could create the kind drained
    /// all later nodes.
    #[test]
    fn nodes_that_are_named_are_asked_about_and_any_other_selector_needs_the_right_to_all() {
        let nodes = |names: &[&str]| Needed::Nodes(names.iter().map(|name| (*name).to_owned()).collect());
        let on = |terms: Value| maintenance(&terms, &[]);
        let create = |new: &Object| needed(AdmissionOperation::Create, None, Some(new)).unwrap();
        assert_eq!(create(&on(json!([named("a"), named("nowhere")]))), nodes(&["a", "nowhere"]));
        assert_eq!(create(&on(json!([named("a"), labelled()]))), Needed::AnyNode);
        let change =
            |old: &Object, new: &Object| needed(AdmissionOperation::Update, Some(old), Some(new)).unwrap();
        let (a, b, any) = (on(json!([named("a")])), on(json!([named("b")])), on(json!([labelled()])));
        assert_eq!(change(&a, &b), nodes(&["a", "b"]));
        assert_eq!((change(&a, &any), change(&any, &a)), (Needed::AnyNode, Needed::AnyNode));
        assert_eq!(needed(AdmissionOperation::Delete, Some(&any), None).unwrap(), Needed::AnyNode);
    }

    /// Regression: a selector that could not be decoded selected no node and was admitted.
    #[test]
    fn a_selector_that_cannot_be_read_is_an_error() {
        let odd = maintenance(&json!("a"), &[]);
        assert_eq!(needed(AdmissionOperation::Create, None, Some(&odd)).unwrap_err().code(), 500);
        let none = Object::from(serde_json::Map::new());
        assert!(needed(AdmissionOperation::Delete, Some(&none), None).is_err());
    }

    #[test]
    fn a_write_that_only_removes_our_finalizer_is_a_release() {
        let (terms, other) = (json!([labelled()]), "a/b");
        let held = maintenance(&terms, &[FINALIZER, other]);
        let of = |finalizers: &[&str]| {
            needed(AdmissionOperation::Update, Some(&held), Some(&maintenance(&terms, finalizers))).unwrap()
        };
        assert_eq!(of(&[other]), Needed::Release);
        assert_eq!((of(&[]), of(&[FINALIZER])), (Needed::AnyNode, Needed::AnyNode));
    }
}
