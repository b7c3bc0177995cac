//! The state of one planning: plans with their cursors, nodes with their targets, pods counted by class.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::catalog::{Catalog, Class, Tier};
use crate::input::{Maintenance, Pod};
use crate::targets::{Key, Targets, reached};

/// A maintenance with its place in its plan.
#[derive(Debug)]
pub(crate) struct Drain {
    pub(crate) name: String,
    /// Lower is older; no two are equal.
    pub(crate) age: usize,
    pub(crate) plan: Vec<Tier>,
    pub(crate) cursor: usize,
    /// Indexes into [`Board::nodes`], in order of names.
    pub(crate) nodes: Vec<usize>,
}

impl Drain {
    /// The entries up to the cursor.
    pub(crate) fn reached(&self) -> &[Tier] {
        self.plan.get(..=self.cursor).unwrap_or(&self.plan)
    }

    pub(crate) fn has_reached(&self, class: &Class) -> bool {
        self.reached().iter().any(|tier| tier.covers(class))
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
        self.drains.push(Drain { name: maintenance.name.clone(), age, plan, cursor: 0, nodes });
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
            || (!node.drains.is_empty() && self.drains_of(node).all(|drain| drain.has_reached(class)))
    }

    /// How many targeted pods are left on a node.
    pub(crate) fn targeted_left(&self, node: &Node) -> usize {
        node.classes.iter().filter(|(class, _)| self.targets(node, class)).map(|(_, count)| count).sum()
    }

    /// What every maintenance on a node has reached for each key: what its targets would be without memory.
    pub(crate) fn least_reached(&self, node: &Node) -> Vec<(Key, i32)> {
        let least = |key: Key| -> Option<i32> {
            let each = self.drains_of(node).map(|drain| reached(drain.reached(), key));
            each.min().flatten()
        };
        node.keys.iter().filter_map(|key| Some((*key, least(*key)?))).collect()
    }

    /// Raises every node's targets to what has been reached there.
    pub(crate) fn raise_targets(&mut self) {
        for id in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(id) else { continue };
            let (raised, keys) = (self.least_reached(node), node.keys.clone());
            if let Some(node) = self.nodes.get_mut(id) {
                raised.into_iter().for_each(|(key, priority)| node.targets.raise(key, priority));
                keys.into_iter().for_each(|key| node.targets.add_key(key));
                node.targets.level();
            }
        }
    }
}
