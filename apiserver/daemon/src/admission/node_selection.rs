//! Checks the nodes that a maintenance selects at present. A write that makes it select more nodes than its status can
//! list (`node_maintenance::limits::MAX_NODES`) is refused, because its progress could not be shown. A selection of all
//! nodes (KEP-4212, NodeMaintenance Admission), a term that selects none, and one that kubelets can join get a warning.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use drydock_api::node_maintenance::limits::MAX_NODES;
use drydock_api::node_maintenance::{NodeSelector, kubelet_labels, node_selector};
use drydock_machinery::field::{Error, Path};
use drydock_machinery::{ApiError, Object};
use drydock_server::admission::{Admission, AdmissionAttributes};
use drydock_serving::host::Reflector;
use drydock_serving::tasks::ProgramTasks;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::node_delete::selector_of;

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Maximum number of empty terms for which one write gets warnings; a selector may have any number of them.
const MOST_EMPTY_TERMS: usize = 10;

/// The labels of every node, by its name.
type NodeLabels = BTreeMap<String, BTreeMap<String, String>>;

/// The admission check.
pub struct NodeSelection {
    nodes: Arc<HostNodes>,
}

impl NodeSelection {
    /// Creates the check over `nodes`.
    pub fn new(nodes: Arc<HostNodes>) -> Self {
        Self { nodes }
    }
}

/// Watches the host's nodes for their names and labels.
pub struct HostNodes(Reflector<Node>);

impl HostNodes {
    /// Starts the watch.
    pub fn follow(client: Client, tasks: &ProgramTasks) -> Self {
        Self(Reflector::start("nodes", Api::all(client), tasks))
    }

    /// Whether the initial list of nodes has been read.
    pub fn ready(&self) -> bool {
        self.0.ready()
    }

    /// Returns the labels of every node, by its name.
    fn all(&self) -> NodeLabels {
        let nodes = self.0.known().state();
        nodes.iter().map(|node| (node.name_any(), node.labels().clone())).collect()
    }
}

#[async_trait]
impl Admission for NodeSelection {
    async fn admit(&self, attributes: &AdmissionAttributes<'_>) -> Result<(), ApiError> {
        let Some(new) = attributes.new.filter(|_| attributes.subresource.is_empty()) else { return Ok(()) };
        if !self.nodes.ready() {
            return Err(ApiError::service_unavailable("the host's nodes are not known yet; try again"));
        }
        let nodes = self.nodes.all();
        let selector = selector_of(new)?;
        let selected = matching(&selector, &nodes);
        if let Some(error) = too_many(selected.len()).filter(|_| is_asked_for(new, attributes.old)) {
            let names = attributes.names;
            return Err(ApiError::invalid(names.group, names.kind, attributes.object_name(), vec![error]));
        }
        empty_terms(&selector).take(MOST_EMPTY_TERMS).for_each(|path| {
            attributes.warnings.add(format!("{path}: selects no node, as it has no requirements"));
        });
        warn(attributes, &selected, &nodes);
        if attributes.old.is_none_or(|old| field(old, "nodeSelector") != field(new, "nodeSelector")) {
            kubelet_labels::warning(&selector).into_iter().for_each(|text| attributes.warnings.add(text));
        }
        Ok(())
    }
}

/// Returns the nodes that a selector selects.
fn matching<'n>(selector: &NodeSelector, nodes: &'n NodeLabels) -> Vec<&'n str> {
    let selected =
        nodes.iter().filter(|(name, labels)| node_selector::matches(selector, name, *labels) == Some(true));
    selected.map(|(name, _)| name.as_str()).collect()
}

/// Returns the paths of the terms without requirements, which select no node (core/v1, NodeSelectorTerm).
fn empty_terms(selector: &NodeSelector) -> impl Iterator<Item = Path> {
    let path = Path::new("spec").child("nodeSelector").child("nodeSelectorTerms");
    let terms = selector.node_selector_terms.iter().enumerate();
    let empty = terms.filter(|(_, term)| term.is_empty());
    empty.map(move |(i, _)| path.index(i))
}

/// Whether the write changes the selection or the stage, except to Complete. A maintenance that selects too many nodes
/// because the cluster grew can still be completed, and changed in other fields.
fn is_asked_for(new: &Object, old: Option<&Object>) -> bool {
    let changes = |name: &str| old.is_none_or(|old| field(old, name) != field(new, name));
    field(new, "stage").and_then(Value::as_str) != Some("Complete")
        && (changes("nodeSelector") || changes("stage"))
}

/// A field of the spec.
fn field<'o>(object: &'o Object, name: &str) -> Option<&'o Value> {
    object.0.get("spec")?.get(name)
}

fn too_many(selected: usize) -> Option<Error> {
    let path = Path::new("spec").child("nodeSelector");
    let detail = format!(
        "selects {selected} nodes, and one maintenance holds at most {MAX_NODES}; make several that select fewer each"
    );
    (selected > MAX_NODES).then(|| Error::forbidden(path, detail))
}

fn warn(attributes: &AdmissionAttributes<'_>, selected: &[&str], nodes: &NodeLabels) {
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
    use serde_json::json;

    use super::*;

    fn object(stage: &str, term: &str) -> Object {
        let spec = json!({ "stage": stage, "nodeSelector": { "nodeSelectorTerms": [term] } });
        Object::from(serde_json::Map::from_iter([("spec".to_owned(), spec)]))
    }

    #[test]
    fn only_as_many_nodes_as_the_status_can_name_may_be_selected() {
        assert_eq!(too_many(MAX_NODES), None);
        let body = too_many(MAX_NODES + 1).map(|e| e.body()).unwrap_or_default();
        assert!(body.contains("selects 4001 nodes") && body.contains("at most 4000"), "{body}");
    }

    #[test]
    fn only_terms_without_requirements_are_empty() {
        let selector = json!({ "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "rack", "operator": "Exists" }] },
            {},
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["a"] }] },
            { "matchExpressions": [] },
        ] });
        let selector: NodeSelector = serde_json::from_value(selector).unwrap_or_default();
        let paths: Vec<_> = empty_terms(&selector).map(|path| path.to_string()).collect();
        let terms = "spec.nodeSelector.nodeSelectorTerms";
        assert_eq!(paths, [format!("{terms}[1]"), format!("{terms}[3]")]);
    }

    #[test]
    fn a_maintenance_that_the_cluster_outgrew_can_be_completed_and_changed_otherwise() {
        let drain = object("Drain", "a");
        assert!(is_asked_for(&drain, None));
        assert!(is_asked_for(&object("Drain", "b"), Some(&drain)));
        assert!(is_asked_for(&drain, Some(&object("Cordon", "a"))));
        assert!(!is_asked_for(&drain, Some(&drain)));
        assert!(!is_asked_for(&object("Complete", "a"), Some(&drain)));
    }
}
