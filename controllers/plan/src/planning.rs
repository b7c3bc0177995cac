//! The state of one planning: plans with their cursors, nodes with their targets, pods counted by class.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use crate::catalog::{Catalog, Class, Tier};
use crate::planned_maintenance::PlannedMaintenance;
use crate::targets::{DrainTargets, TargetKey};
use crate::types::{CountedPod, DrainingMaintenance, TargetsByNode};

/// A node with the pods that are left on it, by class.
#[derive(Debug, Default)]
pub(crate) struct PlannedNode {
    pub(crate) name: String,
    /// Indexes into [`Planning::maintenances`], the oldest first.
    pub(crate) maintenances: Vec<usize>,
    pub(crate) targets: DrainTargets,
    pub(crate) classes: BTreeMap<Class, usize>,
    /// Index into [`Planning::keys`].
    keys: usize,
}

/// The state of one planning.
#[derive(Debug, Default)]
pub(crate) struct Planning {
    pub(crate) catalog: Catalog,
    pub(crate) maintenances: Vec<PlannedMaintenance>,
    /// Ordered by name.
    pub(crate) nodes: Vec<PlannedNode>,
    node_ids: HashMap<String, usize>,
    /// The keys of the targets that the plans on a node have, each with its place in their order. Nodes with
    /// the same maintenances share one map.
    keys: Vec<HashMap<TargetKey, usize>>,
}

impl Planning {
    /// The planning of these maintenances, with cursors at the first entry and targets as they are recorded.
    pub(crate) fn new(maintenances: &[DrainingMaintenance], ended: &TargetsByNode) -> Self {
        let mut planning = Self::default();
        let names: BTreeSet<&String> = maintenances.iter().flat_map(|m| &m.nodes).collect();
        for name in names {
            planning.node_ids.insert(name.clone(), planning.nodes.len());
            planning.nodes.push(PlannedNode { name: name.clone(), ..PlannedNode::default() });
        }
        let mut by_age: Vec<&DrainingMaintenance> = maintenances.iter().collect();
        by_age.sort_by_key(|m| (m.started, m.created, &m.name));
        let ages: HashMap<&str, usize> =
            by_age.iter().enumerate().map(|(age, m)| (m.name.as_str(), age)).collect();
        for maintenance in maintenances {
            planning.add_maintenance(
                maintenance,
                ages.get(maintenance.name.as_str()).copied().unwrap_or_default(),
            );
        }
        planning.add_keys();
        planning.remember(maintenances, ended);
        planning
    }

    fn add_maintenance(&mut self, maintenance: &DrainingMaintenance, age: usize) {
        let plan: Vec<Tier> = maintenance.plan.iter().map(|e| self.catalog.tier(e)).collect();
        let nodes: Vec<usize> =
            maintenance.nodes.iter().filter_map(|n| self.node_ids.get(n).copied()).collect();
        for id in &nodes {
            if let Some(node) = self.nodes.get_mut(*id) {
                node.maintenances.push(self.maintenances.len());
            }
        }
        let DrainingMaintenance { name, last_pod_type, .. } = maintenance;
        self.maintenances.push(PlannedMaintenance::new(name.clone(), age, plan, *last_pod_type, nodes));
    }

    fn add_keys(&mut self) {
        let mut sets: HashMap<Vec<usize>, usize> = HashMap::new();
        for node in &mut self.nodes {
            node.maintenances.sort_by_key(|id| self.maintenances.get(*id).map(|d| d.age));
            let next = sets.len();
            node.keys = *sets.entry(node.maintenances.clone()).or_insert(next);
            if node.keys == next {
                let plans = node.maintenances.iter().filter_map(|id| self.maintenances.get(*id));
                let spoken = plans.flat_map(|d| d.plan.iter());
                let mut keys = HashMap::new();
                for key in spoken.flat_map(|t| [(t.pod_type, t.selector), (t.pod_type, None)]) {
                    let place = keys.len();
                    keys.entry(key).or_insert(place);
                }
                self.keys.push(keys);
            }
        }
    }

    /// Gives nodes the targets that the maintenances on them have recorded. What a maintenance has recorded
    /// that has left the node or ended counts only for pod types that another maintenance drains which was on
    /// the node already: otherwise the last maintenance that drained such pods there is gone.
    fn remember(&mut self, maintenances: &[DrainingMaintenance], ended: &TargetsByNode) {
        for maintenance in maintenances {
            let stays = |(node, _): &(&String, &Vec<_>)| maintenance.nodes.contains(*node);
            let last = Some(maintenance.last_pod_type);
            let recorded = maintenance.recorded.iter().filter(stays);
            recorded.for_each(|(node, targets)| self.raise_to(node, targets, last));
        }
        let known = |node: &str| {
            let is_there = |m: &&DrainingMaintenance| m.nodes.contains(node) && m.recorded.contains_key(node);
            maintenances.iter().filter(is_there).map(|m| m.last_pod_type).max()
        };
        let left = maintenances.iter().flat_map(|m| m.recorded.iter().filter(|(n, _)| !m.nodes.contains(*n)));
        for (node, targets) in left.chain(ended) {
            self.raise_to(node, targets, known(node));
        }
    }

    /// Raises the targets of a node to those of a status, for pod types up to `last`; raises none if `last`
    /// is none.
    fn raise_to(&mut self, node: &str, targets: &[DrainPlanEntry], last: Option<PodType>) {
        let Some(node) = self.node_ids.get(node).and_then(|id| self.nodes.get_mut(*id)) else { return };
        for entry in targets.iter().filter(|entry| Some(entry.pod_type) <= last) {
            let tier = self.catalog.tier(entry);
            node.targets.raise((tier.pod_type, tier.selector), tier.priority);
        }
        node.targets.raise_to_base();
    }

    /// Counts the pods. Returns each pod's node and class; none for a pod on a node of no maintenance.
    pub(crate) fn count(&mut self, pods: &[CountedPod<'_>]) -> Vec<Option<(usize, Class)>> {
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

    /// Puts the cursors where the statuses have them. For a node that has joined a maintenance the cursor
    /// goes back to the first entry that covers one of its pods, so that this node is drained in the plan's
    /// order too.
    pub(crate) fn place_cursors(&mut self, maintenances: &[DrainingMaintenance]) {
        for (planned, maintenance) in self.maintenances.iter_mut().zip(maintenances) {
            let Some(position) = maintenance.position else { continue };
            let nodes = planned.nodes.iter().filter_map(|id| self.nodes.get(*id));
            let joined = nodes.filter(|node| !maintenance.recorded.contains_key(&node.name));
            let first = |class: &Class| planned.first_entry(class);
            let earliest = joined.flat_map(|node| node.classes.keys()).filter_map(first).min();
            let last = planned.plan.len().saturating_sub(1);
            planned.place(earliest.unwrap_or(last).min(position).min(last));
        }
    }

    /// The maintenances on a node.
    pub(crate) fn maintenances_on<'a>(
        &'a self,
        node: &'a PlannedNode,
    ) -> impl Iterator<Item = &'a PlannedMaintenance> {
        node.maintenances.iter().filter_map(|id| self.maintenances.get(*id))
    }

    pub(crate) fn nodes_of<'a>(
        &'a self,
        planned: &'a PlannedMaintenance,
    ) -> impl Iterator<Item = &'a PlannedNode> {
        planned.nodes.iter().filter_map(|id| self.nodes.get(*id))
    }

    /// The maintenances on a node that drain pods of a type: to all others these pods do not exist.
    pub(crate) fn maintenances_draining<'a>(
        &'a self,
        node: &'a PlannedNode,
        pod_type: PodType,
    ) -> impl Iterator<Item = &'a PlannedMaintenance> {
        self.maintenances_on(node).filter(move |planned| planned.drains(pod_type))
    }

    /// Whether pods of a class are to leave a node.
    pub(crate) fn targets(&self, node: &PlannedNode, class: &Class) -> bool {
        node.targets.covers(class, &self.catalog)
    }

    /// The first type of the pods on a node that are to leave; none if no pod is to leave.
    pub(crate) fn first_targeted(&self, node: &PlannedNode) -> Option<PodType> {
        node.classes.keys().filter(|class| self.targets(node, class)).map(|class| class.pod_type).min()
    }

    /// The targets of a node as the status of a maintenance shows them: those of the types that it drains.
    pub(crate) fn entries(&self, planned: &PlannedMaintenance, node: &PlannedNode) -> Vec<DrainPlanEntry> {
        let Some(keys) = self.keys.get(node.keys) else { return Vec::new() };
        let mut entries = node.targets.entries(&self.catalog, keys);
        entries.retain(|entry| planned.drains(entry.pod_type));
        entries
    }

    fn least(&self, node: &PlannedNode, key: TargetKey) -> Option<i32> {
        self.maintenances_draining(node, key.0).map(|planned| planned.reached.get(key)).min().flatten()
    }

    /// Raises every node's targets to what all its maintenances have reached there.
    pub(crate) fn raise_targets(&mut self) {
        for id in 0..self.nodes.len() {
            self.raise(id, |_| true);
        }
        self.join_targets();
    }

    /// Each of these maintenances takes its next entry.
    pub(crate) fn step(&mut self, maintenances: &[usize]) {
        for id in maintenances {
            let Some(planned) = self.maintenances.get_mut(*id) else { continue };
            let Some(tier) = planned.step() else { continue };
            // Only targets of the entry's type can have changed; if it has a selector, only those with that
            // selector.
            let concerns = |key: &TargetKey| {
                key.0 == tier.pod_type && (tier.selector.is_none() || key.1 == tier.selector)
            };
            for node in planned.nodes.clone() {
                self.raise(node, concerns);
            }
        }
        self.join_targets();
    }

    fn raise(&mut self, id: usize, concerned: impl Fn(&TargetKey) -> bool) {
        let Some(node) = self.nodes.get(id) else { return };
        let Some(keys) = self.keys.get(node.keys) else { return };
        let keys: Vec<TargetKey> = keys.keys().filter(|key| concerned(key)).copied().collect();
        let raised: Vec<(TargetKey, i32)> =
            keys.iter().filter_map(|key| Some((*key, self.least(node, *key)?))).collect();
        let Some(node) = self.nodes.get_mut(id) else { return };
        raised.into_iter().for_each(|(key, priority)| node.targets.raise(key, priority));
        keys.iter().for_each(|key| node.targets.add_key(*key));
        if keys.iter().any(|(_, selector)| selector.is_none()) {
            node.targets.raise_to_base();
        }
    }

    /// Adds a target where every maintenance on a node has reached pods that no target covers, because they
    /// have reached them by different selectors. The target joins these selectors.
    fn join_targets(&mut self) {
        for id in 0..self.nodes.len() {
            let Some(node) = self.nodes.get(id).filter(|node| node.maintenances.len() > 1) else { continue };
            let missed = node.classes.keys().filter(|class| !self.targets(node, class));
            let shares = |class: &Class| {
                let draining = self.maintenances_draining(node, class.pod_type);
                let shares = draining.map(|planned| planned.reached.contribution(class, &self.catalog));
                let shares = shares.collect::<Option<Vec<Tier>>>().filter(|tiers| !tiers.is_empty());
                shares.map(|tiers| (class.pod_type, tiers))
            };
            for (pod_type, tiers) in missed.filter_map(shares).collect::<Vec<_>>() {
                let parts: BTreeSet<usize> = tiers.iter().filter_map(|tier| tier.selector).collect();
                let joined = self.catalog.join(&parts.into_iter().collect::<Vec<_>>());
                let least = tiers.iter().map(|tier| tier.priority).min();
                if let (Some(node), Some(least)) = (self.nodes.get_mut(id), least) {
                    node.targets.raise_joined((pod_type, Some(joined)), least);
                }
            }
        }
    }
}
