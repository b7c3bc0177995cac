//! What the statuses say of the plan: positions and drain targets, the only memory that planning has. A pod
//! is asked to leave when the stored targets of its node cover it, so that no restart can find less than what
//! has been done already.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use drydock_api::metav1::LabelSelector;
use drydock_api::node_maintenance::limits::MAX_NODES;
use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceSpec, NodeMaintenanceStage,
};
use drydock_api::time::truncate_to_seconds;
use drydock_plan::{DrainingMaintenance, TargetsByNode};
use drydock_runtime::{Node, Pod};
use jiff::Timestamp;

use crate::world::{World, WorldView};

/// A maintenance in Drain, as the input of the plan.
pub(crate) fn plan_input(
    maintenance: &NodeMaintenance,
    nodes: &[&Arc<Node>],
    now: Timestamp,
) -> DrainingMaintenance {
    let status = &maintenance.status;
    let position = status.drain_plan_position.and_then(|at| usize::try_from(at).ok());
    let planned = status.node_statuses.iter().filter(|s| !s.drain_targets.is_empty());
    let started = status.started(NodeMaintenanceStage::Drain).unwrap_or_else(|| truncate_to_seconds(now));
    DrainingMaintenance {
        name: maintenance.metadata.name.clone(),
        started: started.as_second(),
        created: maintenance.metadata.creation_timestamp.map_or(i64::MAX, Timestamp::as_second),
        plan: maintenance.spec.drain_plan.clone(),
        last_pod_type: maintenance.spec.last_pod_type,
        nodes: nodes.iter().map(|n| n.name.clone()).collect(),
        position,
        recorded: planned.map(|s| (s.node_ref.name.clone(), s.drain_targets.clone())).collect(),
    }
}

/// The nodes of a maintenance that fit into its status, beside those that have left it. Nodes that the
/// status shows already come first.
pub(crate) fn fitting_nodes<'a>(view: &WorldView<'a>, maintenance: usize) -> Vec<&'a Arc<Node>> {
    let mut nodes = view.nodes_in(maintenance);
    let statuses = view.world.maintenances.get(maintenance).map(|m| m.status.node_statuses.as_slice());
    let statuses = statuses.unwrap_or_default();
    if nodes.len() + statuses.len() <= MAX_NODES {
        return nodes;
    }
    let most = MAX_NODES.saturating_sub(not_handed_over(view, maintenance).len());
    if nodes.len() > most {
        let shown: BTreeSet<&str> = statuses.iter().map(|s| s.node_ref.name.as_str()).collect();
        nodes.sort_by_key(|n| (!shown.contains(n.name.as_str()), n.name.as_str()));
        nodes.truncate(most);
        nodes.sort_by_key(|n| n.name.as_str());
    }
    nodes
}

/// The statuses of nodes that have left a maintenance, as long as the other maintenances there do not show
/// their targets. Until they do, the stored position stays, so that a node that comes back is where it was.
pub(crate) fn not_handed_over<'a>(
    view: &WorldView<'a>,
    maintenance: usize,
) -> Vec<&'a NodeMaintenanceNodeStatus> {
    let selected: HashSet<&str> = view.nodes_of(maintenance).iter().map(|n| n.name.as_str()).collect();
    let statuses = view.world.maintenances.get(maintenance).into_iter().flat_map(|m| &m.status.node_statuses);
    let left = statuses.filter(|s| !selected.contains(s.node_ref.name.as_str()));
    left.filter(|s| !is_handed_over(view, s)).collect()
}

/// Drain targets, by node, that maintenances in Complete have recorded and whose finalizer is still there. A node
/// counts only if a maintenance of `draining` recorded it too and started before the other one completed: for one that
/// started later, the targets mean nothing.
pub(crate) fn ended(world: &World, draining: &[DrainingMaintenance]) -> TargetsByNode {
    let mut ended = TargetsByNode::new();
    for maintenance in world.maintenances.iter().filter(|m| m.is_ending()) {
        let at =
            maintenance.status.started(NodeMaintenanceStage::Complete).map_or(i64::MAX, Timestamp::as_second);
        let was_there =
            |node: &String| draining.iter().any(|m| m.started < at && m.recorded.contains_key(node));
        for status in maintenance.status.node_statuses.iter().filter(|s| was_there(&s.node_ref.name)) {
            let targets = ended.entry(status.node_ref.name.clone()).or_default();
            targets.extend_from_slice(&status.drain_targets);
        }
    }
    ended
}

/// The drain targets of each node, as the statuses of the maintenances in Drain that select it show them.
pub(crate) struct Recorded<'a>(HashMap<&'a str, Vec<&'a [DrainPlanEntry]>>);

impl<'a> Recorded<'a> {
    pub(crate) fn of(view: &WorldView<'a>) -> Self {
        let mut targets: HashMap<&str, Vec<&[DrainPlanEntry]>> = HashMap::new();
        for (maintenance, nodes) in view.world.maintenances.iter().zip(&view.selected) {
            if maintenance.spec.stage != NodeMaintenanceStage::Drain {
                continue;
            }
            let selected: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            for status in &maintenance.status.node_statuses {
                let node = status.node_ref.name.as_str();
                if selected.contains(node) {
                    targets.entry(node).or_default().push(&status.drain_targets);
                }
            }
        }
        Self(targets)
    }

    /// Whether these are the targets that the statuses of a node show.
    pub(crate) fn is(&self, node: &str, targets: &[DrainPlanEntry]) -> bool {
        self.0.get(node).is_some_and(|shown| shown.contains(&targets))
    }

    /// Whether the targets that a node's statuses show cover a pod.
    pub(crate) fn cover(&self, pod: &Pod) -> bool {
        let mut targets = self.0.get(pod.node_name.as_str()).into_iter().flatten().copied().flatten();
        targets.any(|target| target.covers(pod.pod_type(), pod.priority, pod.known_labels()))
    }
}

/// Whether a maintenance's status of a node is no longer needed once the maintenance has left the node: the
/// others that drain the node show the same targets, or more, of the types that they drain. A maintenance
/// whose status does not name the node has not begun there, and does not count.
pub(crate) fn is_handed_over(view: &WorldView<'_>, status: &NodeMaintenanceNodeStatus) -> bool {
    let node = status.node_ref.name.as_str();
    let known = view.drains_of(node).filter(|m| m.status.drain_plan_position.is_some());
    let others = known.filter_map(|m| Some((&m.spec, m.status.of_node(node)?)));
    let shows = |spec: &NodeMaintenanceSpec, other: &NodeMaintenanceNodeStatus, target: &DrainPlanEntry| {
        !spec.drains(target.pod_type) || other.drain_targets.iter().any(|shown| includes(shown, target))
    };
    others.into_iter().all(|(spec, other)| status.drain_targets.iter().all(|t| shows(spec, other, t)))
}

fn includes(shown: &DrainPlanEntry, target: &DrainPlanEntry) -> bool {
    let selects_more = |selector: &LabelSelector| {
        target.pod_selector.as_ref().is_some_and(|narrow| selector.includes(narrow))
    };
    shown.pod_type == target.pod_type
        && shown.pod_priority >= target.pod_priority
        && shown.pod_selector.as_ref().is_none_or(|selector| selector.is_empty() || selects_more(selector))
}

/// The nodes that do not fit into the status of their maintenance, by UID of the maintenance. The plan
/// leaves them alone: a node whose targets cannot be stored is never drained, and a plan that waited for it
/// would stand still on all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut(HashMap<String, NodesLeftOut>);

#[derive(Clone, Debug)]
struct NodesLeftOut {
    generation: i64,
    /// How many nodes it selected.
    selected: usize,
    /// Names of those that do not fit.
    nodes: HashSet<String>,
}

impl LeftOut {
    /// Whether a node is left out of a maintenance that selects `selected` nodes. All nodes are tried again
    /// when the maintenance is edited, or selects fewer.
    pub(crate) fn is(&self, maintenance: &NodeMaintenance, selected: usize, node: &str) -> bool {
        self.of(maintenance, selected).is_some_and(|known| known.nodes.contains(node))
    }

    /// Records further nodes that did not fit.
    pub(crate) fn note(&mut self, maintenance: &NodeMaintenance, selected: usize, nodes: Vec<String>) {
        let uid = &maintenance.metadata.uid;
        if self.of(maintenance, selected).is_none() {
            self.0.remove(uid);
        }
        if nodes.is_empty() {
            return;
        }
        let generation = maintenance.metadata.generation;
        let new = || NodesLeftOut { generation, selected, nodes: HashSet::new() };
        let known = self.0.entry(uid.clone()).or_insert_with(new);
        known.selected = selected;
        known.nodes.extend(nodes);
    }

    /// Forgets all, so that all nodes are tried again.
    pub(crate) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Forgets maintenances that are gone.
    pub(crate) fn update(&mut self, world: &World) {
        let is_there = |uid: &String| world.maintenances.iter().any(|m| m.metadata.uid == *uid);
        self.0.retain(|uid, _| is_there(uid));
    }

    fn of(&self, maintenance: &NodeMaintenance, selected: usize) -> Option<&NodesLeftOut> {
        let known = self.0.get(&maintenance.metadata.uid)?;
        let is_same = known.generation == maintenance.metadata.generation && known.selected <= selected;
        is_same.then_some(known)
    }
}
