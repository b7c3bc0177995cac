//! What is told of a maintenance as it goes on, in the order of things: Cordoned, DrainStarted, EvictionBlocked. (NodeDrained
//! is told with the node's condition, Completed with the finalizer.)

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::meta::is_condition_true;
use drydock_api::node_maintenance::blocker::{NODE_UPDATE_REFUSED, POD_DISRUPTION_BUDGET};
use drydock_api::node_maintenance::{CORDONED, NodeMaintenance, Stage};
use jiff::{SignedDuration, Timestamp};

use crate::actions::{About, Decision, Note};
use crate::blockers::{Blocked, Most};
use crate::words::{are, counted};
use crate::world::View;

/// How long a budget may keep a pod before it is told of: until then it may let it go.
const BUDGET_MAY_LET_GO: SignedDuration = SignedDuration::from_secs(60);
/// Causes of one drain that are told of. Tenants choose their names.
const MAX_CAUSES: usize = 100;

/// What has been told of each maintenance in Cordon or Drain, by its UID.
#[derive(Clone, Debug, Default)]
pub(crate) struct Milestones(HashMap<String, Told>);

#[derive(Clone, Debug, Default)]
struct Told {
    cordoned: bool,
    drain: bool,
    /// Reasons of blockers, and whom they are about.
    causes: HashSet<(String, String)>,
}

impl Milestones {
    /// Tells what is new. After a restart it goes on from what the statuses show.
    pub(crate) fn look(&mut self, view: &View<'_>, blocked: &Blocked, decision: &mut Decision) {
        let mut before = std::mem::take(&mut self.0);
        let holds = |m: &Arc<NodeMaintenance>| matches!(m.spec.stage, Stage::Cordon | Stage::Drain);
        let all = view.world.maintenances.iter().enumerate();
        for (i, maintenance) in all.filter(|(_, maintenance)| holds(maintenance)) {
            let uid = &maintenance.metadata.uid;
            let mut told = before.remove(uid).unwrap_or_else(|| Told::of(maintenance));
            Step { view, i, maintenance, decision }.tell(&mut told, blocked);
            self.0.insert(uid.clone(), told);
        }
    }
}

impl Told {
    fn of(maintenance: &NodeMaintenance) -> Self {
        let status = &maintenance.status;
        Self {
            cordoned: is_condition_true(&status.conditions, CORDONED),
            drain: status.started(Stage::Drain).is_some(),
            causes: HashSet::new(),
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
    fn tell(&mut self, told: &mut Told, blocked: &Blocked) {
        let nodes = self.view.nodes_of(self.i);
        if !told.cordoned && !nodes.is_empty() && nodes.iter().all(|node| node.unschedulable) {
            told.cordoned = true;
            self.note(false, "Cordoned", format!("All {} selected nodes are unschedulable", nodes.len()));
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
            self.note(false, "DrainStarted", message);
        }
        self.tell_of_causes(told, blocked);
    }

    /// Once for each cause, with the pod that it has kept for the longest time.
    fn tell_of_causes(&mut self, told: &mut Told, blocked: &Blocked) {
        let nodes = self.view.nodes_of(self.i).iter().map(|node| node.name.as_str());
        for ((reason, about), most) in blocked.by_cause(nodes, self.maintenance.spec.last_pod_type) {
            let cause = (reason.to_owned(), about.to_owned());
            if reason == NODE_UPDATE_REFUSED || told.causes.contains(&cause) {
                continue;
            }
            let due = due(&most);
            if self.view.now < due {
                self.decision.wake_at(due);
            } else if told.causes.len() < MAX_CAUSES {
                told.causes.insert(cause);
                self.note(true, "EvictionBlocked", message(&most));
            }
        }
    }

    fn note(&mut self, warning: bool, reason: &'static str, message: String) {
        let about = About::Maintenance(self.maintenance.metadata.name.clone());
        self.decision.notes.push(Note { about, warning, reason, message });
    }
}

fn due(most: &Most<'_>) -> Timestamp {
    let since = most.oldest.since_time.unwrap_or(Timestamp::MIN);
    let patience =
        if most.oldest.reason == POD_DISRUPTION_BUDGET { BUDGET_MAY_LET_GO } else { SignedDuration::ZERO };
    since.checked_add(patience).unwrap_or(Timestamp::MAX)
}

fn message(most: &Most<'_>) -> String {
    let Most { of_reason, oldest, node, .. } = most;
    let pod = format!("pod {}/{} on node {node}", oldest.pod.namespace, oldest.pod.name);
    let others = match of_reason.saturating_sub(1) {
        0 => String::new(),
        1 => " and one more pod".to_owned(),
        more => format!(" and {more} more pods"),
    };
    format!("{} keeps {pod}{others}: {}", oldest.reason, oldest.message)
}
