//! The world as the machine reads it: which maintenance holds which node, which pods count, which are to leave.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, PodType, Stage, node_selector};
use drydock_plan::{Maintenance, Outcome, Planner};
use drydock_runtime::{Node, Pod};
use jiff::Timestamp;

use crate::machine::Config;
use crate::own;
use crate::world::World;

/// One look, worked out.
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    pub(crate) config: &'a Config,
    pub(crate) now: Timestamp,
    /// The nodes that each maintenance selects, by name; in the order of `world.maintenances`.
    pub(crate) selected: Vec<Vec<&'a Arc<Node>>>,
    /// Maintenances in Cordon or Drain of each node, oldest first.
    pub(crate) holders: HashMap<&'a str, Vec<usize>>,
    /// Pods that count, of each node that is looked at.
    pub(crate) counted: HashMap<&'a str, Vec<&'a Arc<Pod>>>,
    /// The planning of the maintenances in Drain.
    pub(crate) outcome: Outcome,
    /// Place of a maintenance in `outcome`.
    pub(crate) planned: HashMap<usize, usize>,
    /// UIDs of the pods that are to leave now.
    pub(crate) targeted: HashSet<&'a str>,
    /// Nodes of maintenances in Drain that have nodes which are still schedulable.
    open: HashSet<&'a str>,
    /// UIDs of Drydock's own pods, if no node takes them.
    staying: HashSet<&'a str>,
}

impl<'a> View<'a> {
    pub(crate) fn new(world: &'a World, config: &'a Config, planner: &mut Planner, now: Timestamp) -> Self {
        let selected: Vec<Vec<&Arc<Node>>> = world
            .maintenances
            .iter()
            .map(|m| world.nodes.values().filter(|n| selects(m, n)).collect())
            .collect();
        let count = |pods: &'a Vec<Arc<Pod>>| pods.iter().filter(|p| config.counts(p)).collect();
        let counted = world.pods.iter().map(|(node, pods)| (node.as_str(), count(pods))).collect();
        let holders = holders(world, &selected);
        let mut view = Self {
            world,
            config,
            now,
            selected,
            holders,
            counted,
            outcome: Outcome::default(),
            planned: HashMap::new(),
            targeted: HashSet::new(),
            open: HashSet::new(),
            staying: HashSet::new(),
        };
        view.open = view.open_nodes();
        view.staying = own::staying(&view);
        view.plan(planner);
        view
    }

    fn open_nodes(&self) -> HashSet<&'a str> {
        let all = self.world.maintenances.iter().zip(&self.selected);
        let open =
            all.filter(|(m, nodes)| m.spec.stage == Stage::Drain && nodes.iter().any(|n| !n.unschedulable));
        open.flat_map(|(_, nodes)| nodes.iter().map(|n| n.name.as_str())).collect()
    }

    fn plan(&mut self, planner: &mut Planner) {
        let draining =
            self.world.maintenances.iter().enumerate().filter(|(_, m)| m.spec.stage == Stage::Drain);
        let draining: Vec<(usize, &Arc<NodeMaintenance>)> = draining.collect();
        let input: Vec<Maintenance> =
            draining.iter().map(|(i, m)| plan_input(m, self.nodes_of(*i))).collect();
        let nodes: HashSet<&str> = input.iter().flat_map(|m| &m.nodes).map(String::as_str).collect();
        let pods: Vec<&Arc<Pod>> = self
            .counted
            .iter()
            .filter(|(node, _)| nodes.contains(*node))
            .flat_map(|(_, pods)| pods.clone())
            .collect();
        let as_input = |pod: &&'a Arc<Pod>| drydock_plan::Pod {
            node: &pod.node_name,
            pod_type: pod_type(pod),
            priority: pod.priority,
            labels: &pod.labels,
        };
        self.outcome = planner.plan(&input, &pods.iter().map(as_input).collect::<Vec<_>>());
        self.planned = draining.iter().enumerate().map(|(place, (i, _))| (*i, place)).collect();
        let leaving = pods.iter().zip(&self.outcome.targeted).filter(|(_, targeted)| **targeted);
        self.targeted = leaving.map(|(pod, _)| pod.uid.as_str()).collect();
    }

    /// The nodes that a maintenance selects.
    pub(crate) fn nodes_of(&self, maintenance: usize) -> &[&'a Arc<Node>] {
        self.selected.get(maintenance).map(Vec::as_slice).unwrap_or_default()
    }

    /// The pods that count on a node.
    pub(crate) fn pods_on(&self, node: &str) -> &[&'a Arc<Pod>] {
        self.counted.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// Maintenances in Cordon or Drain of a node, oldest first.
    pub(crate) fn holders_of(&self, node: &str) -> impl Iterator<Item = &'a Arc<NodeMaintenance>> {
        let world = self.world;
        self.holders.get(node).into_iter().flatten().filter_map(move |i| world.maintenances.get(*i))
    }

    pub(crate) fn is_held(&self, node: &str) -> bool {
        self.holders.contains_key(node)
    }

    /// Whether every node that is drained together with this one is cordoned. The stage Cordon is always run first
    /// (KEP-4212, Supported Stage Transitions): a pod that is evicted earlier may be scheduled to a node that is to be
    /// drained next, and be evicted again.
    pub(crate) fn is_cordoned_off(&self, node: &str) -> bool {
        !self.open.contains(node)
    }

    /// Whether a pod, by its UID, is one of Drydock's own that no other node takes.
    pub(crate) fn stays(&self, uid: &str) -> bool {
        self.staying.contains(uid)
    }

    /// Whether a maintenance in Drain selects a node.
    pub(crate) fn is_draining(&self, node: &str) -> bool {
        self.holders_of(node).any(|m| m.spec.stage == Stage::Drain)
    }
}

/// Whether a maintenance selects a node.
pub(crate) fn selects(maintenance: &NodeMaintenance, node: &Node) -> bool {
    let selector = maintenance.spec.node_selector.as_ref();
    selector.is_some_and(|s| node_selector::matches(s, &node.name, &node.labels))
}

/// The type of a pod (KEP-4212, PodType).
pub(crate) fn pod_type(pod: &Pod) -> PodType {
    if pod.is_mirror() {
        PodType::Static
    } else if pod.is_daemon_set_pod() {
        PodType::DaemonSet
    } else {
        PodType::Default
    }
}

fn holders<'a>(world: &'a World, selected: &[Vec<&'a Arc<Node>>]) -> HashMap<&'a str, Vec<usize>> {
    let mut by_age: Vec<usize> = (0..world.maintenances.len()).collect();
    let age =
        |i: &usize| world.maintenances.get(*i).map(|m| (m.metadata.creation_timestamp, &m.metadata.name));
    by_age.sort_by(|a, b| age(a).cmp(&age(b)));
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    for i in by_age {
        let holds =
            world.maintenances.get(i).is_some_and(|m| matches!(m.spec.stage, Stage::Cordon | Stage::Drain));
        for node in selected.get(i).into_iter().flatten().filter(|_| holds) {
            holders.entry(node.name.as_str()).or_default().push(i);
        }
    }
    holders
}

fn plan_input(maintenance: &NodeMaintenance, nodes: &[&Arc<Node>]) -> Maintenance {
    let recorded = maintenance.status.node_statuses.iter();
    let recorded: BTreeMap<_, _> = recorded
        .map(|s| (s.node_ref.name.clone(), s.drain_targets.clone()))
        .filter(|(_, t)| !t.is_empty())
        .collect();
    Maintenance {
        uid: maintenance.metadata.uid.clone(),
        name: maintenance.metadata.name.clone(),
        created: maintenance.metadata.creation_timestamp.map_or(i64::MAX, Timestamp::as_second),
        plan: maintenance.spec.drain_plan.clone(),
        nodes: nodes.iter().map(|n| n.name.clone()).collect(),
        recorded,
    }
}
