//! The planning rule as literally as its page says it: slow, without cleverness, and independent of the
//! planner. `targets` calculates what a node shows, `words` the messages; this file moves the cursors.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod compare;
pub mod targets;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

/// A maintenance in stage Drain, with its stored status.
#[derive(Clone, Debug)]
pub struct Maintenance {
    pub name: String,
    pub started: i64,
    pub created: i64,
    pub plan: Vec<DrainPlanEntry>,
    pub last: PodType,
    pub nodes: BTreeSet<String>,
    pub position: Option<usize>,
    pub recorded: BTreeMap<String, Vec<DrainPlanEntry>>,
}

impl Maintenance {
    /// It drains only the pod types up to its last one.
    pub fn drains(&self, pod_type: PodType) -> bool {
        [PodType::Default, PodType::DaemonSet, PodType::Static]
            .into_iter()
            .take_while(|earlier| *earlier != self.last)
            .chain([self.last])
            .any(|spoken| spoken == pod_type)
    }

    /// Start of the Drain stage, then creation, then name; less is older.
    pub fn age(&self) -> (i64, i64, &str) {
        (self.started, self.created, &self.name)
    }
}

/// A counted pod.
#[derive(Clone, Debug)]
pub struct Pod<'a> {
    pub node: &'a str,
    pub pod_type: PodType,
    pub priority: i32,
    pub labels: &'a BTreeMap<String, String>,
}

impl Pod<'_> {
    /// Whether an entry covers it.
    pub fn is_covered(&self, entry: &DrainPlanEntry) -> bool {
        entry.covers(self.pod_type, self.priority, self.labels)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub maintenances: Vec<MaintenanceOutcome>,
    pub targeted: Vec<bool>,
    pub fast_forwards: Vec<FastForward>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOutcome {
    pub cursor: usize,
    pub nodes: BTreeMap<String, NodeOutcome>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    pub drain_targets: Vec<DrainPlanEntry>,
    pub drain_message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FastForward {
    pub maintenance: usize,
    pub node: Option<String>,
    pub other: Option<Other>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Other {
    pub name: String,
    pub is_older: bool,
}

/// Targets by node.
pub type Targets = BTreeMap<String, Vec<DrainPlanEntry>>;

/// Everything that one planning looks at. A maintenance is identified by its index.
pub struct State<'a> {
    pub all: &'a [Maintenance],
    pub ended: &'a Targets,
    pub pods: &'a [Pod<'a>],
    pub cursors: Vec<usize>,
    pub targets: Targets,
}

/// The whole rule.
pub fn plan(maintenances: &[Maintenance], ended: &Targets, pods: &[Pod<'_>]) -> Outcome {
    let cursors = maintenances.iter().map(|m| first_cursor(m, pods)).collect();
    let mut state = State { all: maintenances, ended, pods, cursors, targets: Targets::new() };
    let mut forced = BTreeSet::new();
    loop {
        state.targets = state.nodes().into_iter().map(|n| (n.clone(), targets::of(&state, &n))).collect();
        let movers: Vec<usize> = state.indexes().filter(|m| state.may_advance(*m)).collect();
        for m in &movers {
            state.cursors[*m] += 1;
        }
        if !movers.is_empty() {
            continue;
        }
        let Some((m, k)) = state.contradiction() else { break };
        forced.insert(FastForward { maintenance: m, node: None, other: Some(state.other(m, k)) });
        state.cursors[m] += 1;
    }
    words::outcome(&state, forced)
}

/// The stored cursor, or the first entry for one that has just come into Drain. When a node joins, the cursor goes
/// back to the first entry that covers a pod there, if that is lower.
pub fn first_cursor(m: &Maintenance, pods: &[Pod<'_>]) -> usize {
    let Some(position) = m.position else { return 0 };
    let joined = |p: &&Pod<'_>| m.nodes.contains(p.node) && !m.recorded.contains_key(p.node);
    let first = |p: &Pod<'_>| m.plan.iter().position(|e| p.is_covered(e));
    let back = pods.iter().filter(joined).filter_map(first);
    back.chain([position, m.plan.len().saturating_sub(1)]).min().unwrap()
}

impl<'a> State<'a> {
    pub fn indexes(&self) -> std::ops::Range<usize> {
        0..self.all.len()
    }

    pub fn nodes(&self) -> BTreeSet<String> {
        self.all.iter().flat_map(|m| m.nodes.iter().cloned()).collect()
    }

    /// The maintenances on a node, the oldest first.
    pub fn on(&self, node: &str) -> Vec<usize> {
        let mut here: Vec<usize> = self.indexes().filter(|m| self.all[*m].nodes.contains(node)).collect();
        here.sort_by_key(|m| self.all[*m].age());
        here
    }

    /// 'Every maintenance on a node' means those that drain the type.
    pub fn on_for(&self, node: &str, pod_type: PodType) -> Vec<usize> {
        self.on(node).into_iter().filter(|m| self.all[*m].drains(pod_type)).collect()
    }

    pub fn share_a_node(&self, m: usize, k: usize) -> bool {
        !self.all[m].nodes.is_disjoint(&self.all[k].nodes)
    }

    pub fn pods_on<'s>(&'s self, node: &'s str) -> impl Iterator<Item = &'a Pod<'a>> + 's {
        self.pods.iter().filter(move |p| p.node == node)
    }

    /// Pods of types that a maintenance does not drain do not count as being on its nodes.
    pub fn pods_of(&self, m: usize) -> Vec<&'a Pod<'a>> {
        let is_there = |p: &&Pod<'_>| self.all[m].nodes.contains(p.node) && self.all[m].drains(p.pod_type);
        self.pods.iter().filter(is_there).collect()
    }

    /// The entries of a plan up to its cursor.
    pub fn entries(&self, m: usize) -> &'a [DrainPlanEntry] {
        let plan = &self.all[m].plan;
        &plan[..plan.len().min(self.cursors[m] + 1)]
    }

    /// A maintenance has reached a pod when any entry up to its cursor covers it.
    pub fn has_reached(&self, m: usize, pod: &Pod<'_>) -> bool {
        self.entries(m).iter().any(|e| pod.is_covered(e))
    }

    /// A pod is targeted when the drainTargets of its node cover it.
    pub fn is_targeted(&self, pod: &Pod<'_>) -> bool {
        self.targets.get(pod.node).is_some_and(|t| t.iter().any(|e| pod.is_covered(e)))
    }

    /// Finished: no targeted pod is left on any of its nodes, of the types that the observing maintenance
    /// drains.
    pub fn is_finished(&self, m: usize, seen_by: usize) -> bool {
        let exists = |p: &&&Pod<'_>| self.all[seen_by].drains(p.pod_type);
        !self.pods_of(m).iter().filter(exists).any(|p| self.is_targeted(p))
    }

    /// Done with its cursor: no pod that it has reached is left there.
    fn is_done(&self, m: usize) -> bool {
        !self.pods_of(m).iter().any(|p| self.has_reached(m, p))
    }

    fn has_next(&self, m: usize) -> bool {
        self.cursors[m] + 1 < self.all[m].plan.len()
    }

    /// It and every maintenance that shares a node with it, and drains its next entry's type, are finished.
    fn all_around_finished(&self, m: usize) -> bool {
        let Some(next) = self.all[m].plan.get(self.cursors[m] + 1) else { return false };
        let matters = |k: &usize| self.share_a_node(m, *k) && self.all[*k].drains(next.pod_type);
        self.is_finished(m, m) && self.indexes().filter(matters).all(|k| self.is_finished(k, m))
    }

    /// Done, finished together with all around it, and it selects a node.
    fn may_advance(&self, m: usize) -> bool {
        self.has_next(m) && !self.all[m].nodes.is_empty() && self.is_done(m) && self.all_around_finished(m)
    }

    /// One waits for another when, on a node of both, there is a pod, not targeted, that it has reached and the other
    /// has not.
    pub fn waits(&self, m: usize, k: usize) -> bool {
        let both = |p: &&&Pod<'_>| self.all[k].nodes.contains(p.node) && self.all[k].drains(p.pod_type);
        self.pods_of(m)
            .iter()
            .filter(both)
            .any(|p| !self.is_targeted(p) && self.has_reached(m, p) && !self.has_reached(k, p))
    }

    /// Returns the maintenance that a candidate waits for in a cycle of maintenances that are no younger than
    /// itself: the oldest of these. None if it is no candidate.
    fn waits_in_a_cycle(&self, m: usize) -> Option<usize> {
        let no_younger = |k: &usize| self.all[*k].age() <= self.all[m].age();
        let comes_back = |k: usize| {
            let mut found = BTreeSet::from([k]);
            loop {
                let more: BTreeSet<usize> = self
                    .indexes()
                    .filter(no_younger)
                    .filter(|to| found.iter().any(|from| self.waits(*from, *to)))
                    .filter(|to| !found.contains(to))
                    .collect();
                if more.is_empty() {
                    return found.contains(&m);
                }
                found.extend(more);
            }
        };
        self.indexes()
            .filter(no_younger)
            .filter(|k| self.waits(m, *k) && comes_back(*k))
            .min_by_key(|k| self.all[*k].age())
    }

    /// If none may advance: returns the oldest candidate that is finished together with all that share a node with
    /// it, and the maintenance that it waited for.
    fn contradiction(&self) -> Option<(usize, usize)> {
        self.indexes()
            .filter(|m| self.has_next(*m) && self.all_around_finished(*m))
            .filter_map(|m| Some((m, self.waits_in_a_cycle(m)?)))
            .min_by_key(|(m, _)| self.all[*m].age())
    }

    /// How a message names another maintenance.
    pub fn other(&self, m: usize, k: usize) -> Other {
        Other { name: self.all[k].name.clone(), is_older: self.all[k].age() < self.all[m].age() }
    }
}
