//! What is told of a maintenance as it goes on, in the order of things: Cordoned, DrainStarted, EvictionBlocked, NodeDrained.
//! (Completed is told with the finalizer.) No step is told after a later one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use drydock_api::meta::is_condition_true;
use drydock_api::node_maintenance::blocker::NODE_UPDATE_REFUSED;
use drydock_api::node_maintenance::{CORDONED, NodeMaintenance, Stage};
use drydock_api::text::{all, are, counted};
use drydock_runtime::events::reasons::{
    CORDONED as ALL_CORDONED, DRAIN_STARTED, EVICTION_BLOCKED, NODE_DRAINED,
};
use jiff::{SignedDuration, Timestamp};

use crate::actions::{About, Decision, Note};
use crate::blockers::{Blocked, Group};
use crate::nodes::conditions::{named, node_drained};
use crate::nodes::emptied::Emptied;
use crate::nodes::gone::is_drained;
use crate::requests::returns::Returns;
use crate::world::View;

/// Causes of one drain that are told of. Tenants choose their names.
const MAX_CAUSES: usize = 100;
/// How long a node must have no pods to be told of as drained, where workloads put pods back: they need a moment.
const SETTLES: SignedDuration = SignedDuration::from_secs(10);

/// What has been told of each maintenance in Cordon or Drain, by its UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Milestones(HashMap<String, Told>);

#[derive(Clone, Debug, Default)]
struct Told {
    cordoned: bool,
    drain: bool,
    /// Reasons of blockers, and whom they are about. None are known after a restart, until it has been looked at what was stored.
    causes: Option<HashSet<(String, String)>>,
    /// Names of the nodes that are drained.
    drained: BTreeSet<String>,
    /// When nodes are told of to which pods may be put back, by name.
    settling: HashMap<String, Timestamp>,
}

impl Milestones {
    /// Tells what is new. After a restart it goes on from what the statuses show.
    pub(crate) fn look(
        &mut self,
        view: &View<'_>,
        blocked: &Blocked,
        emptied: &Emptied,
        returns: &Returns,
        decision: &mut Decision,
    ) {
        let mut before = std::mem::take(&mut self.0);
        let holds = |m: &Arc<NodeMaintenance>| matches!(m.spec.stage, Stage::Cordon | Stage::Drain);
        let all = view.world.maintenances.iter().enumerate();
        for (i, maintenance) in all.filter(|(_, maintenance)| holds(maintenance)) {
            let uid = &maintenance.metadata.uid;
            let mut told = before.remove(uid).unwrap_or_else(|| Told::stored(maintenance));
            Step { view, i, maintenance, decision }.tell(&mut told, blocked, emptied, returns);
            self.0.insert(uid.clone(), told);
        }
    }
}

impl Told {
    /// What was told before the status was written.
    fn stored(maintenance: &NodeMaintenance) -> Self {
        let status = &maintenance.status;
        let cordoned = is_condition_true(&status.conditions, CORDONED);
        let is_empty = |pods: i32, evacuating: i32| pods == 0 && evacuating == 0;
        let nodes = status.node_statuses.iter();
        let drained = nodes.filter(|s| is_empty(s.pods_pending_evacuation, s.pods_evacuating));
        // The stage begins before the nodes are cordoned, and no pod is asked to leave until then.
        let has_asked = cordoned
            || status.node_statuses.iter().any(|s| s.pods_evacuating > 0)
            || status.outcomes.evicted > 0
            || status.drained_nodes > 0;
        let drain = status.started(Stage::Drain).is_some() && has_asked;
        Self {
            cordoned,
            drain,
            causes: (!drain).then(HashSet::new),
            drained: drained.filter(|_| drain).map(|s| s.node_ref.name.clone()).collect(),
            settling: HashMap::new(),
        }
    }
}

struct Step<'s, 'a> {
    view: &'s View<'a>,
    i: usize,
    maintenance: &'s NodeMaintenance,
    decision: &'s mut Decision,
}

impl Step<'_, '_> {
    fn tell(&mut self, told: &mut Told, blocked: &Blocked, emptied: &Emptied, returns: &Returns) {
        let nodes = self.view.nodes_of(self.i);
        let is_told = told.cordoned || told.drain;
        if !is_told && !nodes.is_empty() && nodes.iter().all(|node| node.unschedulable) {
            told.cordoned = true;
            let nodes = nodes.len();
            let which = all(nodes, "selected node", "selected nodes");
            self.note(false, ALL_CORDONED, format!("{which} {} unschedulable", are(nodes)));
        }
        if self.maintenance.spec.stage != Stage::Drain {
            return;
        }
        if !told.drain && nodes.iter().any(|node| self.view.may_ask_on(&node.name)) {
            told.drain = true;
            let last = self.maintenance.spec.last_pod_type;
            let pods: usize = nodes.iter().map(|node| self.view.pods_up_to(&node.name, last).len()).sum();
            let message = format!(
                "{} on {} {} asked to leave",
                counted(pods, "pod", "pods"),
                counted(nodes.len(), "node", "nodes"),
                are(pods)
            );
            self.note(false, DRAIN_STARTED, message);
        }
        if told.drain {
            self.tell_of_causes(told, blocked);
            self.tell_of_drained(told, emptied, returns);
        }
    }

    /// Once for each cause, with the pod that it has kept for the longest time.
    fn tell_of_causes(&mut self, told: &mut Told, blocked: &Blocked) {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        let causes = blocked.by_cause(nodes, self.maintenance.spec.last_pod_type);
        let stored = told.causes.is_none().then(|| self.stored_blockers());
        let known = told.causes.get_or_insert_default();
        let mut new = Vec::new();
        for ((reason, about), group) in causes {
            let cause = (reason.to_owned(), about.to_owned());
            let is_known = known.contains(&cause) || known.len() >= MAX_CAUSES;
            if reason == NODE_UPDATE_REFUSED || !group.is_due || is_known {
                continue;
            }
            known.insert(cause);
            let pod = group.oldest.blocker.pod.uid.as_str();
            if !stored.as_ref().is_some_and(|stored| stored.contains(&(pod, reason))) {
                new.push(message(&group));
            }
        }
        new.into_iter().for_each(|message| self.note(true, EVICTION_BLOCKED, message));
    }

    /// The pods that the status says are blocked, and why: these have been told of.
    fn stored_blockers(&self) -> HashSet<(&str, &str)> {
        let stored = self.maintenance.status.node_statuses.iter().flat_map(|node| &node.blockers);
        stored.map(|blocker| (blocker.pod.uid.as_str(), blocker.reason.as_str())).collect()
    }

    /// Once for each node whose pods have all left, as far as they exist for this maintenance; and again when others came and left.
    /// A node to which a workload puts pods back is none in the moment before the next one comes.
    fn tell_of_drained(&mut self, told: &mut Told, emptied: &Emptied, returns: &Returns) {
        let last = self.maintenance.spec.last_pod_type;
        let (mut drained, mut settling) = (BTreeSet::new(), HashMap::new());
        for node in self.view.nodes_of(self.i) {
            let is_empty = self.view.pods_up_to(&node.name, last).is_empty();
            if is_empty && told.drained.contains(&node.name) {
                drained.insert(node.name.clone());
            } else if is_drained(self.view, emptied, node, last) {
                if returns.may_come_back(self.view, &node.name) {
                    let settled = self.view.now.checked_add(SETTLES).unwrap_or(Timestamp::MAX);
                    let until = told.settling.get(&node.name).copied().unwrap_or(settled);
                    if self.view.now < until {
                        self.decision.wake_at(until);
                        settling.insert(node.name.clone(), until);
                        continue;
                    }
                    if self.speaks_for(&node.name) {
                        self.decision.notes.push(node_drained(&node.name, last));
                    }
                }
                drained.insert(node.name.clone());
                let message = format!("All pods{} have left node {}", named(last), node.name);
                self.note(false, NODE_DRAINED, message);
            }
        }
        (told.drained, told.settling) = (drained, settling);
    }

    /// Whether it is the oldest of those whose pods are the last ones that leave a node.
    fn speaks_for(&self, node: &str) -> bool {
        let last = self.view.last_type_on(node);
        let mut widest = self.view.drains_of(node).filter(|m| Some(m.spec.last_pod_type) == last);
        widest.next().is_some_and(|first| first.metadata.uid == self.maintenance.metadata.uid)
    }

    fn note(&mut self, warning: bool, reason: &'static str, message: String) {
        let about = About::Maintenance(self.maintenance.metadata.name.clone());
        self.decision.notes.push(Note { about, warning, reason, message });
    }
}

fn message(group: &Group<'_>) -> String {
    let Group { pods, oldest, node, .. } = group;
    let blocker = &oldest.blocker;
    let pod = format!("pod {}/{} on node {node}", blocker.pod.namespace, blocker.pod.name);
    let others = match pods.saturating_sub(1) {
        0 => String::new(),
        1 => " and one more pod".to_owned(),
        more => format!(" and {more} more pods"),
    };
    format!("{} keeps {pod}{others}: {}", blocker.reason, blocker.message)
}
