//! The world as the machine reads it: which maintenance holds which node, which pods count, which are to leave.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage, PodType, node_selector};
use drydock_plan::PlanOutcome;
use drydock_runtime::cache::Taint;
use drydock_runtime::{Node, Pod};
use jiff::Timestamp;

use crate::config::Config;
use crate::world::World;
use crate::world::recorded::LeftOut;

/// The world, with what is derived from it.
pub(crate) struct WorldView<'a> {
    pub(crate) world: &'a World,
    pub(crate) config: &'a Config,
    pub(crate) now: Timestamp,
    /// The nodes that each maintenance selects, by name; in the order of `world.maintenances`.
    pub(crate) selected: Vec<Vec<&'a Arc<Node>>>,
    /// The nodes of which it is not known whether a maintenance selects them, by its place.
    undecided: HashMap<usize, Vec<&'a str>>,
    /// Maintenances in Cordon or Drain of each node, in the order of their creation.
    pub(crate) holders: HashMap<&'a str, Vec<usize>>,
    /// The last type that the maintenances in Drain of each node drain.
    last_types: HashMap<&'a str, PodType>,
    /// Pods that count, by node, in the order of their types.
    pub(crate) counted: HashMap<&'a str, Vec<&'a Arc<Pod>>>,
    /// The planning of the maintenances in Drain. Empty before it.
    pub(crate) planned: PlannedDrains<'a>,
    /// Nodes whose pods are not asked to leave yet, because they wait for nodes to be cordoned. None until
    /// that is decided.
    pub(crate) waiting: Option<HashSet<&'a str>>,
    /// Nodes that do not fit into the statuses.
    left_out: LeftOut,
    /// UIDs of Drydock's own pods, if no node takes them.
    staying: HashSet<&'a str>,
}

/// What the planning of a step found.
#[derive(Default)]
pub(crate) struct PlannedDrains<'a> {
    /// The outcome for the maintenances in Drain.
    pub(crate) outcome: PlanOutcome,
    /// Place of a maintenance in `outcome`.
    pub(crate) places: HashMap<usize, usize>,
    /// UIDs of the pods that are to leave now: the stored drain targets of their nodes cover them.
    pub(crate) targeted: HashSet<&'a str>,
}

impl<'a> WorldView<'a> {
    /// The view before the planning.
    pub(crate) fn new(world: &'a World, config: &'a Config, now: Timestamp, left_out: LeftOut) -> Self {
        let selected: Vec<Vec<&Arc<Node>>> = world
            .maintenances
            .iter()
            .map(|m| world.nodes.values().filter(|n| selects(m, n)).collect())
            .collect();
        // Most pods are of the first type: sorting all of them would calculate the type of each many times.
        let count = |pods: &'a Vec<Arc<Pod>>| {
            let counted = pods.iter().filter(|p| config.counts(p));
            let (mut counted, mut later): (Vec<&Arc<Pod>>, Vec<&Arc<Pod>>) =
                counted.partition(|pod| pod.pod_type() == PodType::Default);
            later.sort_by_key(|pod| pod.pod_type());
            counted.append(&mut later);
            counted
        };
        let counted = world.pods.iter().map(|(node, pods)| (node.as_str(), count(pods))).collect();
        let holders = holders(world, &selected);
        let mut view = Self {
            world,
            config,
            now,
            selected,
            undecided: undecided(world),
            last_types: last_types(world, &holders),
            holders,
            counted,
            planned: PlannedDrains::default(),
            waiting: None,
            left_out,
            staying: HashSet::new(),
        };
        view.staying = staying(&view);
        view
    }

    /// The nodes that a maintenance selects.
    pub(crate) fn nodes_of(&self, maintenance: usize) -> &[&'a Arc<Node>] {
        self.selected.get(maintenance).map(Vec::as_slice).unwrap_or_default()
    }

    /// The nodes that a maintenance selects and that are not left out of it.
    pub(crate) fn nodes_in(&self, maintenance: usize) -> Vec<&'a Arc<Node>> {
        let nodes = self.nodes_of(maintenance);
        let object = self.world.maintenances.get(maintenance);
        let is_in = |node: &&&Arc<Node>| {
            !object.is_some_and(|object| self.left_out.is(object, nodes.len(), &node.name))
        };
        nodes.iter().filter(is_in).copied().collect()
    }

    /// The pods that count on a node.
    pub(crate) fn pods_on(&self, node: &str) -> &[&'a Arc<Pod>] {
        self.counted.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// The pods that count on a node and exist for a maintenance that drains up to this type.
    pub(crate) fn pods_up_to(&self, node: &str, last: PodType) -> &[&'a Arc<Pod>] {
        let pods = self.pods_on(node);
        pods.get(..pods.partition_point(|pod| pod.pod_type() <= last)).unwrap_or_default()
    }

    /// The last type that the maintenances in Drain of a node drain; none if there is none.
    pub(crate) fn last_type_on(&self, node: &str) -> Option<PodType> {
        self.last_types.get(node).copied()
    }

    /// Maintenances in Cordon or Drain of a node, in the order of their creation.
    pub(crate) fn holders_of(&self, node: &str) -> impl Iterator<Item = &'a Arc<NodeMaintenance>> {
        let world = self.world;
        self.holders.get(node).into_iter().flatten().filter_map(move |i| world.maintenances.get(*i))
    }

    /// Maintenances in Drain of a node, in the order of their creation.
    pub(crate) fn drains_of(&self, node: &str) -> impl Iterator<Item = &'a Arc<NodeMaintenance>> {
        self.holders_of(node).filter(|m| m.spec.stage == NodeMaintenanceStage::Drain)
    }

    /// Maintenances in Drain of a node that drain pods of a type, in the order of their creation.
    pub(crate) fn drains_of_type(
        &self,
        node: &str,
        pod_type: PodType,
    ) -> impl Iterator<Item = &'a Arc<NodeMaintenance>> {
        self.drains_of(node).filter(move |m| m.spec.drains(pod_type))
    }

    /// Maintenances in Complete that select a node and are not released yet.
    pub(crate) fn ending_on(&self, node: &str) -> impl Iterator<Item = &'a Arc<NodeMaintenance>> {
        let all = self.world.maintenances.iter().zip(&self.selected);
        let ending = all.filter(|(m, _)| m.is_ending());
        ending.filter(move |(_, nodes)| nodes.iter().any(|n| n.name == node)).map(|(m, _)| m)
    }

    pub(crate) fn is_held(&self, node: &str) -> bool {
        self.holders.contains_key(node)
    }

    /// The nodes of which it is not known whether a maintenance selects them.
    pub(crate) fn undecided_of(&self, maintenance: usize) -> &[&'a str] {
        self.undecided.get(&maintenance).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a maintenance in Cordon or Drain may hold a node, for all that is known.
    pub(crate) fn may_be_held(&self, node: &str) -> bool {
        let holds = |i: &usize| self.world.maintenances.get(*i).is_some_and(|m| m.spec.stage.holds_nodes());
        self.is_held(node) || self.undecided.iter().any(|(i, nodes)| holds(i) && nodes.contains(&node))
    }

    /// Whether pods of a node may be asked to leave: it is cordoned, and so is each node of its maintenances,
    /// or the first attempt to cordon that one has failed or takes too long.
    pub(crate) fn may_ask_on(&self, node: &str) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| !waiting.contains(node))
    }

    /// Whether a pod, by its UID, is one of Drydock's own that no other node takes.
    pub(crate) fn stays(&self, uid: &str) -> bool {
        self.staying.contains(uid)
    }

    /// Whether a maintenance in Drain selects a node.
    pub(crate) fn is_draining(&self, node: &str) -> bool {
        self.last_types.contains_key(node)
    }
}

/// Whether a maintenance selects a node. While that depends on a label that is not known, a node stays selected of which the
/// maintenance has a status: a kubelet could otherwise take its node out of a drain by giving it thousands of labels.
pub(crate) fn selects(maintenance: &NodeMaintenance, node: &Node) -> bool {
    let has_status =
        || maintenance.status.node_statuses.iter().any(|status| status.node_ref.name == node.name);
    is_selected(maintenance, node).unwrap_or_else(has_status)
}

/// Whether the selector of a maintenance selects a node; none if that depends on a label that is not known.
fn is_selected(maintenance: &NodeMaintenance, node: &Node) -> Option<bool> {
    let Some(selector) = &maintenance.spec.node_selector else { return Some(false) };
    node_selector::matches(selector, &node.name, node.known_labels())
}

/// The nodes of which it is not known whether a maintenance selects them, by its place.
fn undecided(world: &World) -> HashMap<usize, Vec<&str>> {
    let nodes: Vec<_> = world.nodes.values().filter(|node| node.labels_cut_from.is_some()).collect();
    if nodes.is_empty() {
        return HashMap::new();
    }
    let of = |maintenance: &NodeMaintenance| {
        let nodes = nodes.iter().filter(|node| is_selected(maintenance, node).is_none());
        nodes.filter(|node| !selects(maintenance, node)).map(|node| node.name.as_str()).collect::<Vec<_>>()
    };
    let each = world.maintenances.iter().enumerate().map(|(i, maintenance)| (i, of(maintenance)));
    each.filter(|(_, nodes)| !nodes.is_empty()).collect()
}

fn holders<'a>(world: &'a World, selected: &[Vec<&'a Arc<Node>>]) -> HashMap<&'a str, Vec<usize>> {
    let mut by_age: Vec<usize> = (0..world.maintenances.len()).collect();
    let age =
        |i: &usize| world.maintenances.get(*i).map(|m| (m.metadata.creation_timestamp, &m.metadata.name));
    by_age.sort_by(|a, b| age(a).cmp(&age(b)));
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    for i in by_age {
        let holds = world.maintenances.get(i).is_some_and(|m| m.spec.stage.holds_nodes());
        for node in selected.get(i).into_iter().flatten().filter(|_| holds) {
            holders.entry(node.name.as_str()).or_default().push(i);
        }
    }
    holders
}

fn last_types<'a>(world: &World, holders: &HashMap<&'a str, Vec<usize>>) -> HashMap<&'a str, PodType> {
    let last = |holders: &[usize]| {
        let holders = holders.iter().filter_map(|i| world.maintenances.get(*i));
        holders.filter(|m| m.spec.stage == NodeMaintenanceStage::Drain).map(|m| m.spec.last_pod_type).max()
    };
    holders.iter().filter_map(|(node, holders)| Some((*node, last(holders)?))).collect()
}

/// The message about a pod that stays.
pub(crate) const STAYS_OWN: &str = "No other node takes pods, and the drain would stop without this one, which is Drydock's own: make \
                              another node schedulable, or delete the pod by hand";

/// Names of the programs that a drain needs, as deploy/base labels their pods.
const PROGRAMS: [&str; 2] = ["drydock-apiserver", "drydock-controller-manager"];
const NAME_LABEL: &str = "app.kubernetes.io/name";

/// UIDs of Drydock's own pods that stay because no other node takes them: without them a drain would not go
/// on, and nothing would say so.
fn staying<'a>(view: &WorldView<'a>) -> HashSet<&'a str> {
    let own = view.counted.values().flatten().filter(|pod| is_own(view.config, pod));
    own.filter(|pod| !view.world.nodes.values().any(|node| takes(view, node, pod)))
        .map(|pod| pod.uid.as_str())
        .collect()
}

fn is_own(config: &Config, pod: &Pod) -> bool {
    let name = pod.labels.get(NAME_LABEL).map(String::as_str);
    pod.namespace == config.namespace && name.is_some_and(|name| PROGRAMS.contains(&name))
}

/// Whether a node is another than the pod's, takes new pods and is held by no maintenance. The pod is assumed
/// to tolerate the taints that its present node has. Room, affinity and volumes are not checked.
fn takes(view: &WorldView<'_>, node: &Node, pod: &Pod) -> bool {
    let stood = view.world.nodes.get(&pod.node_name).map_or(&[][..], |node| &node.taints);
    let keeps_off = |taint: &&Taint| taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    let is_stood = |taint: &Taint| stood.iter().any(|s| (&s.key, &s.effect) == (&taint.key, &taint.effect));
    let is_free = !node.unschedulable && !node.deleting && !view.is_held(&node.name);
    is_free && node.name != pod.node_name && node.taints.iter().filter(keeps_off).all(is_stood)
}
