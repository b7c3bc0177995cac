//! Nodes that leave the cluster during a drain. A node that was recorded as drained counts as drained; any
//! other keeps Drained False, so that the maintenance does not look like a success.
//!
//! A node is recorded as drained when a live read has shown it to be; its own condition says so too. A node
//! that is only no longer selected is still there, and does not count as gone, nor does one that comes back
//! under its name.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use drydock_api::metav1::{find_condition, is_condition_true};
use drydock_api::node_maintenance::{
    DRAINED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, PodType, WORKLOADS_DRAINED,
    node_selector,
};
use drydock_api::text::number;
use drydock_runtime::Node;

use crate::nodes::conditions::ConfirmedEmpty;
use crate::nodes::conditions::drained_up_to;
use crate::nodes::gone_tally::{GoneNodesTally, LEFT_UNDRAINED};
use crate::world::{WorldView, selects};

/// The label that the kubelet sets to the name of its node, unless its flags say otherwise.
const HOST_NAME: &str = "kubernetes.io/hostname";

/// The nodes of each maintenance in Drain, those that have left the cluster among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneNodes {
    /// By UID of the maintenance, and by the last type of the pods that count: the maintenance's own last
    /// type, and Default.
    maintenances: HashMap<(String, PodType), GoneNodesTally>,
    /// Nodes that are being drained, as they were seen last, by name.
    known: HashMap<String, LastSeenNode>,
}

#[derive(Clone, Debug)]
struct LastSeenNode {
    node: Arc<Node>,
    /// Its pods, by the last type of those that count.
    seen: BTreeMap<PodType, NodePods>,
}

/// The pods of a node up to a type: how many are left, and whether the node is drained of them.
#[derive(Clone, Copy, Debug)]
struct NodePods {
    pods: usize,
    drained: bool,
}

impl GoneNodes {
    /// Takes in which nodes are there.
    pub(crate) fn update(&mut self, view: &WorldView<'_>, emptied: &ConfirmedEmpty) {
        let mut before = std::mem::take(&mut self.maintenances);
        for (maintenance, nodes) in view.world.maintenances.iter().zip(&view.selected) {
            if maintenance.spec.stage == NodeMaintenanceStage::Drain {
                for last in BTreeSet::from([PodType::Default, maintenance.spec.last_pod_type]) {
                    let key = (maintenance.metadata.uid.clone(), last);
                    let mut tally = before.remove(&key).unwrap_or_else(|| recall(view, maintenance, last));
                    self.count(view, maintenance, last, &mut tally);
                    tally.select(nodes);
                    self.maintenances.insert(key, tally);
                }
            }
        }
        self.see(view, emptied);
    }

    /// The tally of a maintenance in Drain, for pods up to its last type or for pods of type Default alone.
    pub(crate) fn of(&self, maintenance: &NodeMaintenance, last: PodType) -> Option<&GoneNodesTally> {
        self.maintenances.get(&(maintenance.metadata.uid.clone(), last))
    }

    fn count(
        &self,
        view: &WorldView<'_>,
        maintenance: &NodeMaintenance,
        up_to: PodType,
        tally: &mut GoneNodesTally,
    ) {
        let is_there = |name: &str| view.world.nodes.contains_key(name);
        tally.drained.retain(|name| !is_there(name));
        let gone: Vec<String> = tally.selected.iter().filter(|name| !is_there(name)).cloned().collect();
        for name in &gone {
            match self.known.get(name).and_then(|known| known.seen.get(&up_to)) {
                Some(seen) if seen.drained => tally.has_gone_drained(name),
                seen => tally.has_gone_undrained(name, seen.map_or(0, |seen| seen.pods)),
            }
        }
        self.drop_unselected(maintenance, tally);
        tally.undrained.retain(|name, _| !is_there(name));
    }

    /// Forgets undrained nodes that a changed selector would no longer select. After a restart only their
    /// names are known: then it forgets those that the selector does not select by name, if a term of the
    /// selector was removed. After an edit that was not seen it keeps all.
    fn drop_unselected(&self, maintenance: &NodeMaintenance, tally: &mut GoneNodesTally) {
        if tally.selector == maintenance.spec.node_selector {
            return;
        }
        let before = std::mem::replace(&mut tally.selector, maintenance.spec.node_selector.clone());
        let Some(before) = before else { return };
        let terms = maintenance.spec.node_selector.iter().flat_map(|selector| &selector.node_selector_terms);
        let terms: Vec<_> = terms.collect();
        let is_narrower = !before.node_selector_terms.iter().all(|term| terms.contains(&term));
        if is_narrower {
            tally.undrained_unnamed = 0;
        }
        tally.undrained.retain(|name, _| match self.known.get(name) {
            Some(known) => selects(maintenance, &known.node),
            None => !is_narrower || selects_name(maintenance, name),
        });
    }

    fn see(&mut self, view: &WorldView<'_>, emptied: &ConfirmedEmpty) {
        let kept: HashSet<&String> = self.maintenances.values().flat_map(|t| t.undrained.keys()).collect();
        self.known.retain(|name, _| view.is_draining(name) || kept.contains(name));
        for node in view.world.nodes.values().filter(|node| view.is_draining(&node.name)) {
            let seen = |up_to: PodType| NodePods {
                pods: view.pods_up_to(&node.name, up_to).len(),
                drained: is_drained(view, emptied, node, up_to),
            };
            let types = view.drains_of(&node.name).map(|m| m.spec.last_pod_type).chain([PodType::Default]);
            let seen = types.map(|up_to| (up_to, seen(up_to))).collect();
            let known = LastSeenNode { node: node.clone(), seen };
            match self.known.get_mut(&node.name) {
                Some(before) => *before = known,
                None => drop(self.known.insert(node.name.clone(), known)),
            }
        }
    }
}

/// Restores a tally from the status after a restart. The status counts pods up to the last type of the
/// maintenance; about those of type Default alone it says whether all had left each node, and whether all had
/// left all nodes.
fn recall(view: &WorldView<'_>, maintenance: &NodeMaintenance, last: PodType) -> GoneNodesTally {
    let mut tally = recall_all(view, maintenance, last);
    let status = &maintenance.status;
    if last != maintenance.spec.last_pod_type && is_condition_true(&status.conditions, WORKLOADS_DRAINED) {
        tally.drain_all();
    }
    tally
}

/// Restores a tally from the status. It is empty if no drain has begun: nodes may leave before that.
fn recall_all(view: &WorldView<'_>, maintenance: &NodeMaintenance, last: PodType) -> GoneNodesTally {
    let (spec, status) = (&maintenance.spec, &maintenance.status);
    if find_condition(&status.conditions, DRAINED).is_none() {
        return GoneNodesTally { selector: spec.node_selector.clone(), ..GoneNodesTally::default() };
    }
    let count = |count: i32| usize::try_from(count).unwrap_or_default();
    // After an edit, it is not known what the selector was before.
    let is_same = status.observed_generation == maintenance.metadata.generation;
    let mut tally = GoneNodesTally {
        selector: spec.node_selector.clone().filter(|_| is_same),
        drained_unnamed: count(status.gone_nodes.drained),
        undrained_unnamed: count(status.gone_nodes.undrained),
        ..GoneNodesTally::default()
    };
    let (undrained, others): (Vec<_>, Vec<_>) =
        status.node_statuses.iter().partition(|s| s.drain_message == LEFT_UNDRAINED);
    tally.undrained_unnamed = tally.undrained_unnamed.saturating_sub(undrained.len());
    let is_there = |s: &NodeMaintenanceNodeStatus| view.world.nodes.contains_key(&s.node_ref.name);
    let (there, gone): (Vec<_>, Vec<_>) = others.into_iter().partition(|s| is_there(s));
    let were_drained = were_drained(view, maintenance, &there, &gone);
    let was_drained = |status: &NodeMaintenanceNodeStatus| {
        let is_undrained = status.drain_message == LEFT_UNDRAINED;
        (last == PodType::Default && status.workloads_drained)
            || (were_drained && !is_undrained && left_on(status) == 0)
    };
    for status in undrained.into_iter().filter(|s| !is_there(s)).chain(gone) {
        let (node, pods) = (&status.node_ref.name, left_on(status));
        if was_drained(status) {
            tally.has_gone_drained(node);
        } else {
            tally.has_gone_undrained(node, pods);
        }
    }
    tally
}

/// Whether the nodes that have gone since the status was written, and had no pods then, were all drained: the
/// status says so of all nodes, or its count includes them beside those that are still there. If it counts
/// fewer, it is unknown which of them were.
fn were_drained(
    view: &WorldView<'_>,
    maintenance: &NodeMaintenance,
    there: &[&NodeMaintenanceNodeStatus],
    gone: &[&NodeMaintenanceNodeStatus],
) -> bool {
    let (status, last) = (&maintenance.status, maintenance.spec.last_pod_type);
    let is_drained = |s: &NodeMaintenanceNodeStatus| {
        view.world.nodes.get(&s.node_ref.name).is_some_and(|node| is_recorded(node, last))
    };
    let empty = gone.iter().filter(|s| left_on(s) == 0).count();
    let drained = there.iter().filter(|s| left_on(s) == 0 && is_drained(s)).count();
    is_condition_true(&status.conditions, DRAINED)
        || number(drained + empty) <= status.drained_nodes.saturating_sub(status.gone_nodes.drained)
}

fn left_on(status: &NodeMaintenanceNodeStatus) -> usize {
    usize::try_from(status.pods_pending_evacuation.saturating_add(status.pods_evacuating)).unwrap_or_default()
}

/// Whether a node is recorded as drained of pods up to a type, and still is.
pub(crate) fn is_drained(view: &WorldView<'_>, emptied: &ConfirmedEmpty, node: &Node, last: PodType) -> bool {
    let is_recorded = is_recorded(node, last) || emptied.contains(&node.name, last);
    is_recorded && node.unschedulable && view.pods_up_to(&node.name, last).is_empty()
}

/// Whether a node's own condition records it as drained of pods up to a type.
fn is_recorded(node: &Node, last: PodType) -> bool {
    drained_up_to(node) >= Some(last)
}

/// Whether a maintenance selects a node of which only the name is known.
fn selects_name(maintenance: &NodeMaintenance, name: &str) -> bool {
    let labels = BTreeMap::from([(HOST_NAME.to_owned(), name.to_owned())]);
    let selector = maintenance.spec.node_selector.as_ref();
    selector.is_some_and(|selector| node_selector::matches(selector, name, &labels) == Some(true))
}
