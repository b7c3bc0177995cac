//! The state of one planning: plans with their cursors, nodes with their targets, pods counted by class.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::catalog::{Catalog, Class, Tier};
use crate::input::{Maintenance, Pod};
use crate::targets::{Key, Reach, Targets};

/// A maintenance with its place in its plan.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) name: String,
    /// Lower is older; no two are equal.
    pub(crate) age: usize,
    pub(crate) plan: Vec<Tier>,
    pub(crate) cursor: usize,
    /// What the entries up to the cursor cover.
    pub(crate) reach: Reach,
    /// Indexes into [`Board::nodes`], in order of names.
    pub(crate) nodes: Vec<usize>,
}

impl Drain {
    /// Places the cursor.
    pub(crate) fn place(&mut self, cursor: usize) {
        self.cursor = cursor;
        self.reach = Reach::of(self.plan.get(..=cursor).unwrap_or(&self.plan));
    }

    /// Takes the next entry; returns it.
    pub(crate) fn step(&mut self) -> Option<Tier> {
        self.cursor += 1;
        let tier = self.plan.get(self.cursor).copied();
        tier.iter().for_each(|tier| self.reach.add(tier));
        tier
    }

    pub(crate) fn at_end(&self) -> bool {
        self.cursor + 1 >= self.plan.len()
    }

    /// Rank of the current entry.
    pub(crate) fn rank(&self) -> Option<(drydock_api::node_maintenance::PodType, i32, bool)> {
        self.plan.get(self.cursor).map(Tier::rank)
    }
}

/// A node with what is left on it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Indexes into [`Board::drains`].
    pub(crate) drains: Vec<usize>,
    pub(crate) targets: Targets,
    pub(crate) classes: BTreeMap<Class, usize>,
    /// What the plans on the node speak of.
    keys: BTreeSet<Key>,
}

/// Everything of one planning.
#[derive(Debug, Default)]
pub(crate) struct Board {
    pub(crate) catalog: Catalog,
    pub(crate) drains: Vec<Drain>,
    /// Ordered by name.
    pub(crate) nodes: Vec<Node>,
    node_ids: HashMap<String, usize>,
}

impl Board {
    /// The board of these maintenances, with cursors at the first entry and targets as they are remembered.
    pub(crate) fn new(maintenances: &[Maintenance]) -> Self {
        let mut board = Self::default();
        board.add_nodes(maintenances);
        let mut by_age: Vec<usize> = (0..maintenances.len()).collect();
        let age = |i: &usize| maintenances.get(*i).map(|m| (m.created, m.name.as_str(), m.uid.as_str()));
        by_age.sort_by(|a, b| age(a).cmp(&age(b)));
        let mut ages = vec![0; maintenances.len()];
        for (age, i) in by_age.iter().enumerate() {
            if let Some(slot) = ages.get_mut(*i) {
                *slot = age;
            }
        }
        for (maintenance, age) in maintenances.iter().zip(ages) {
            board.add_drain(maintenance, age);
        }
        board.remember(maintenances.iter().flat_map(|m| &m.recorded));
        board
    }

    fn add_nodes(&mut self, maintenances: &[Maintenance]) {
        let names: BTreeSet<&String> = maintenances.iter().flat_map(|m| &m.nodes).collect();
        for name in names {
            self.node_ids.insert(name.clone(), self.nodes.len());
            self.nodes.push(Node { name: name.clone(), ..Default::default() });
        }
    }

    fn add_drain(&mut self, maintenance: &Maintenance, age: usize) {
        let plan: Vec<Tier> = maintenance.plan.iter().map(|e| self.catalog.tier(e)).collect();
        let nodes: Vec<usize> =
            maintenance.nodes.iter().filter_map(|n| self.node_ids.get(n).copied()).collect();
        for id in &nodes {
            if let Some(node) = self.nodes.get_mut(*id) {
                node.drains.push(self.drains.len());
                node.keys.extend(plan.iter().flat_map(|t| [(t.pod_type, t.selector), (t.pod_type, None)]));
            }
        }
        let (name, reach) = (maintenance.name.clone(), Reach::default());
        let mut drain = Drain { name, age, plan, cursor: 0, reach, nodes };
        drain.place(0);
        self.drains.push(drain);
    }

    /// Raises nodes to targets that they had before.
    pub(crate) fn remember<'a>(
        &mut self,
        memory: impl IntoIterator<Item = (&'a String, &'a Vec<drydock_api::node_maintenance::DrainPlanEntry>)>,
    ) {
        for (name, entries) in memory {
            let Some(node) = self.node_ids.get(name).and_then(|id| self.nodes.get_mut(*id)) else { continue };
            for entry in entries {
                let tier = self.catalog.tier(entry);
                node.targets.raise((tier.pod_type, tier.selector), tier.priority);
            }
            node.targets.level();
        }
    }

    /// Counts the pods. Returns each pod's node and class; none for a pod on another node.
    pub(crate) fn count(&mut self, pods: &[Pod<'_>]) -> Vec<Option<(usize, Class)>> {
        let mut placed = Vec::with_capacity(pods.len());
        for pod in pods {
            let id = self.node_ids.get(pod.node).copied();
            let class = id.map(|_| self.catalog.class(pod.pod_type, pod.priority, pod.labels));
            if let (Some(node), Some(class)) = (id.and_then(|id| self.nodes.get_mut(id)), &class) {
                *node.classes.entry(class.clone()).or_default() += 1;
            }
            placed.push(id.zip(class));
        }
        placed
    }

    pub(crate) fn drains_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Drain> {
        node.drains.iter().filter_map(|id| self.drains.get(*id))
    }

    pub(crate) fn nodes_of<'a>(&'a self, drain: &'a Drain) -> impl Iterator<Item = &'a Node> {
        drain.nodes.iter().filter_map(|id| self.nodes.get(*id))
    }

    /// Whether pods of a class are to leave a node.
    pub(crate) fn targets(&self, node: &Node, class: &Class) -> bool {
        node.targets.covers(class)
            || (!node.drains.is_empty() && self.drains_of(node).all(|drain| drain.reach.covers(class)))
    }

    /// How many targeted pods are left on a node.
    pub(crate) fn targeted_left(&self, node: &Node) -> usize {
        node.classes.iter().filter(|(class, _)| self.targets(node, class)).map(|(_, count)| count).sum()
    }

    /// What every maintenance on a node has reached for each key: what its targets would be without memory.
    pub(crate) fn least_reached(&self, node: &Node) -> Vec<(Key, i32)> {
        node.keys.iter().filter_map(|key| Some((*key, self.least(node, *key)?))).collect()
    }

    fn least(&self, node: &Node, key: Key) -> Option<i32> {
        self.drains_of(node).map(|drain| drain.reach.get(key)).min().flatten()
    }

    /// Raises every node's targets to what has been reached there.
    pub(crate) fn raise_targets(&mut self) {
        for id in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(id) else { continue };
            let raised = self.least_reached(node);
            if let Some(node) = self.nodes.get_mut(id) {
                raised.into_iter().for_each(|(key, priority)| node.targets.raise(key, priority));
                node.add_keys();
            }
        }
    }

    /// A maintenance takes its next entry. Its nodes' targets are raised, for the keys that the entry speaks of: all of
    /// its type, if it has no selector. Nothing else can have changed.
    pub(crate) fn step(&mut self, drain: usize) {
        let Some(drain) = self.drains.get_mut(drain) else { return };
        let Some(tier) = drain.step() else { return };
        for id in drain.nodes.clone() {
            let Some(node) = self.nodes.get(id) else { continue };
            let raised: Vec<(Key, i32)> = match tier.selector {
                Some(_) => {
                    let key = (tier.pod_type, tier.selector);
                    self.least(node, key).map(|least| (key, least)).into_iter().collect()
                }
                None => {
                    let of_type = node.keys.iter().filter(|(pod_type, _)| *pod_type == tier.pod_type);
                    of_type.filter_map(|key| Some((*key, self.least(node, *key)?))).collect()
                }
            };
            let Some(node) = self.nodes.get_mut(id) else { continue };
            for (key, priority) in raised {
                node.targets.raise(key, priority);
                node.targets.add_key(key);
            }
            if tier.selector.is_none() {
                node.add_keys();
            }
        }
    }
}

impl Node {
    /// Every key of the plans on the node is shown, at what its type has reached without a selector at least.
    fn add_keys(&mut self) {
        self.keys.iter().for_each(|key| self.targets.add_key(*key));
        self.targets.level();
    }
}
