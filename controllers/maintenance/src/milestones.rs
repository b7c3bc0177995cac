//! Events about a maintenance as it goes on, in this order: Cordoned, DrainStarted, EvictionBlocked,
//! NodeDrained. (Completed is published with the finalizer.) No event comes after one of a later step.

use std::collections::{BTreeSet, HashMap, HashSet};

use drydock_api::metav1::is_condition_true;
use drydock_api::node_maintenance::{
    CORDONED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, PodType,
};
use drydock_api::reasons::NODE_UPDATE_REFUSED;
use drydock_api::text::{are, counted};
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::{
    CORDONED as ALL_CORDONED, DRAIN_STARTED, EVICTION_BLOCKED, NODE_DRAINED,
};
use jiff::{SignedDuration, Timestamp};

use crate::actions::{EventDraft, MaintenanceDecision};
use crate::blockers::{BlockedPods, Blockers};
use crate::nodes::conditions::ConfirmedEmpty;
use crate::nodes::conditions::{drained_up_to, of_type_suffix};
use crate::nodes::gone::is_drained;
use crate::requests::returns::PodReturns;
use crate::status::cordoned::all_cordoned;
use crate::world::WorldView;

/// Most causes of one drain that get an event: tenants choose their names.
const MAX_CAUSES: usize = 100;
/// How long a node must have no pods before the event NodeDrained if workloads put pods back on it, which
/// takes them a moment.
const DRAINED_SETTLES_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// The events that have been published.
#[derive(Clone, Debug, Default)]
pub(crate) struct Milestones {
    /// The steps of each maintenance in Cordon or Drain that were published, by its UID.
    maintenances: HashMap<String, AnnouncedSteps>,
    /// By node: the type up to which it was reported as drained.
    nodes: HashMap<String, PodType>,
    /// Whether the stored statuses have been read since the start.
    is_recalled: bool,
}

#[derive(Clone, Debug, Default)]
struct AnnouncedSteps {
    cordoned: bool,
    drain: bool,
    /// Reasons of blockers, with the names of what blocks. None until the stored blockers have been read
    /// after a restart.
    causes: Option<HashSet<(String, String)>>,
    /// Names of the nodes that are drained.
    drained: BTreeSet<String>,
    /// By node to which pods may return: when to report it as drained.
    settling: HashMap<String, Timestamp>,
}

impl Milestones {
    /// Publishes the events that are new. After a restart it continues from what the statuses show.
    pub(crate) fn update(
        &mut self,
        view: &WorldView<'_>,
        blockers: &Blockers,
        emptied: &ConfirmedEmpty,
        returns: &PodReturns,
        decision: &mut MaintenanceDecision,
    ) {
        if !std::mem::replace(&mut self.is_recalled, true) {
            self.recall(view);
        }
        let mut before = std::mem::take(&mut self.maintenances);
        for (i, maintenance) in view.world.maintenances.iter().enumerate() {
            let uid = &maintenance.metadata.uid;
            let known = before.remove(uid);
            let mut step = MilestoneStep { view, i, maintenance, emptied, nodes: &mut self.nodes, decision };
            if maintenance.spec.stage.holds_nodes() {
                let mut announced = known.unwrap_or_else(|| AnnouncedSteps::from_status(view, maintenance));
                step.publish(&mut announced, blockers, returns);
                self.maintenances.insert(uid.clone(), announced);
            } else if let Some(announced) = known.filter(|announced| announced.drain) {
                step.publish_unsettled(&announced);
            }
        }
        self.nodes.retain(|node, last| view.is_draining(node) && view.pods_up_to(node, *last).is_empty());
    }

    /// Restores what was published before a restart: a node was reported together with its maintenance.
    fn recall(&mut self, view: &WorldView<'_>) {
        for maintenance in view.world.maintenances.iter().filter(|m| m.spec.stage.holds_nodes()) {
            let (last, announced) =
                (maintenance.spec.last_pod_type, AnnouncedSteps::from_status(view, maintenance));
            for node in &announced.drained {
                let up_to = self.nodes.entry(node.clone()).or_insert(last);
                *up_to = last.max(*up_to);
            }
            self.maintenances.insert(maintenance.metadata.uid.clone(), announced);
        }
    }
}

impl AnnouncedSteps {
    /// The steps that the stored status shows.
    fn from_status(view: &WorldView<'_>, maintenance: &NodeMaintenance) -> Self {
        let status = &maintenance.status;
        let cordoned = is_condition_true(&status.conditions, CORDONED);
        let is_recorded = |node: &str| {
            let node = view.world.nodes.get(node);
            node.is_some_and(|node| drained_up_to(node) >= Some(maintenance.spec.last_pod_type))
        };
        let is_drained = |s: &&NodeMaintenanceNodeStatus| {
            s.pods_pending_evacuation == 0 && s.pods_evacuating == 0 && is_recorded(&s.node_ref.name)
        };
        let drained = status.node_statuses.iter().filter(is_drained);
        // The stage begins before the nodes are cordoned, and no pod is asked to leave until then.
        let has_asked = cordoned
            || status.node_statuses.iter().any(|s| s.pods_evacuating > 0)
            || status.outcomes.evicted > 0
            || status.drained_nodes > 0;
        let drain = status.started(NodeMaintenanceStage::Drain).is_some() && has_asked;
        Self {
            cordoned,
            drain,
            causes: (!drain).then(HashSet::new),
            drained: drained.filter(|_| drain).map(|s| s.node_ref.name.clone()).collect(),
            settling: HashMap::new(),
        }
    }
}

struct MilestoneStep<'s, 'a> {
    view: &'s WorldView<'a>,
    i: usize,
    maintenance: &'s NodeMaintenance,
    emptied: &'s ConfirmedEmpty,
    /// Up to which type each node was reported as drained.
    nodes: &'s mut HashMap<String, PodType>,
    decision: &'s mut MaintenanceDecision,
}

impl MilestoneStep<'_, '_> {
    fn publish(&mut self, announced: &mut AnnouncedSteps, blockers: &Blockers, returns: &PodReturns) {
        let nodes = self.view.nodes_of(self.i);
        let is_announced = announced.cordoned || announced.drain;
        if !is_announced && !nodes.is_empty() && nodes.iter().all(|node| node.unschedulable) {
            announced.cordoned = true;
            self.note(Severity::Normal, ALL_CORDONED, all_cordoned(nodes.len()));
        }
        if self.maintenance.spec.stage != NodeMaintenanceStage::Drain {
            return;
        }
        if !announced.drain && nodes.iter().any(|node| self.view.may_ask_on(&node.name)) {
            announced.drain = true;
            let last = self.maintenance.spec.last_pod_type;
            let pods: usize = nodes.iter().map(|node| self.view.pods_up_to(&node.name, last).len()).sum();
            let message = format!(
                "{} on {} {} asked to leave",
                counted(pods, "pod", "pods"),
                counted(nodes.len(), "node", "nodes"),
                are(pods)
            );
            self.note(Severity::Normal, DRAIN_STARTED, message);
        }
        if announced.drain {
            self.publish_causes(announced, blockers);
            self.publish_drained(announced, returns);
        }
    }

    /// Publishes one event for each cause, with the pod that it has kept for the longest time.
    fn publish_causes(&mut self, announced: &mut AnnouncedSteps, blockers: &Blockers) {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        let causes = blockers.by_cause(nodes, self.maintenance.spec.last_pod_type);
        let stored = announced.causes.is_none().then(|| self.stored_blockers());
        let known = announced.causes.get_or_insert_default();
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
        new.into_iter().for_each(|message| self.note(Severity::Warning, EVICTION_BLOCKED, message));
    }

    /// The pods that the status says are blocked, and why: these have had their event.
    fn stored_blockers(&self) -> HashSet<(&str, &str)> {
        let stored = self.maintenance.status.node_statuses.iter().flat_map(|node| &node.blockers);
        stored.map(|blocker| (blocker.pod.uid.as_str(), blocker.reason.as_str())).collect()
    }

    /// Publishes an event for each node whose pods up to the maintenance's last type have all left, and
    /// another one when pods came and left again. A node to which pods may return is not reported at once.
    fn publish_drained(&mut self, announced: &mut AnnouncedSteps, returns: &PodReturns) {
        let last = self.maintenance.spec.last_pod_type;
        let (mut drained, mut settling) = (BTreeSet::new(), HashMap::new());
        for node in self.view.nodes_of(self.i) {
            let is_empty = self.view.pods_up_to(&node.name, last).is_empty();
            if is_empty && announced.drained.contains(&node.name) {
                drained.insert(node.name.clone());
            } else if is_drained(self.view, self.emptied, node, last) {
                if returns.may_come_back(self.view, &node.name) {
                    let settled = self.view.now.checked_add(DRAINED_SETTLES_AFTER).unwrap_or(Timestamp::MAX);
                    let until = announced.settling.get(&node.name).copied().unwrap_or(settled);
                    if self.view.now < until {
                        self.decision.wake_at(until);
                        settling.insert(node.name.clone(), until);
                        continue;
                    }
                }
                drained.insert(node.name.clone());
                self.report_drained(&node.name);
            }
        }
        (announced.drained, announced.settling) = (drained, settling);
    }

    /// Reports the nodes that are drained when the maintenance moves to Complete, even if pods may return to
    /// them.
    fn publish_unsettled(&mut self, announced: &AnnouncedSteps) {
        let last = self.maintenance.spec.last_pod_type;
        for node in self.view.nodes_of(self.i).iter().filter(|node| !announced.drained.contains(&node.name)) {
            let is_settling = announced.settling.contains_key(&node.name)
                && self.view.pods_up_to(&node.name, last).is_empty();
            if is_settling || is_drained(self.view, self.emptied, node, last) {
                self.report_drained(&node.name);
            }
        }
    }

    /// Publishes an event about the maintenance that a node is drained; and one about the node, unless
    /// another maintenance drains later types there, or the node was reported as drained up to this type
    /// before.
    fn report_drained(&mut self, node: &str) {
        let last = self.maintenance.spec.last_pod_type;
        let is_last = self.view.last_type_on(node) <= Some(last);
        if is_last && self.nodes.get(node) < Some(&last) {
            self.nodes.insert(node.to_owned(), last);
            let message = format!("All pods{} have left the node", of_type_suffix(last));
            self.decision.events.push(EventDraft::of_node(node, Severity::Normal, NODE_DRAINED, message));
        }
        let message = format!("All pods{} have left node {node}", of_type_suffix(last));
        self.note(Severity::Normal, NODE_DRAINED, message);
    }

    fn note(&mut self, severity: Severity, reason: &'static str, message: String) {
        self.decision.events.push(EventDraft::of(self.maintenance, severity, reason, message));
    }
}

fn message(group: &BlockedPods<'_>) -> String {
    let BlockedPods { pods, oldest, node, .. } = group;
    let blocker = &oldest.blocker;
    let pod = format!("pod {}/{} on node {node}", blocker.pod.namespace, blocker.pod.name);
    let others = match pods.saturating_sub(1) {
        0 => String::new(),
        1 => " and one more pod".to_owned(),
        more => format!(" and {more} more pods"),
    };
    format!("{} keeps {pod}{others}: {}", blocker.reason, blocker.message)
}
