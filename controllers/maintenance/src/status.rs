//! The status of each maintenance.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::meta::{Condition, find_condition, set_condition};
use drydock_api::node_maintenance::{
    DRAINED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStatus, NodeReference, Stage,
    StageStatus,
};
use drydock_api::time::truncate_to_seconds;
use drydock_runtime::{Node, Pod};

use crate::actions::{Action, Decision, Task};
use crate::blockers::Blocked;
use crate::fit::{Fitted, fit};
use crate::view::View;

/// Blockers that all nodes of one maintenance name together, if each names at least one; `blockedPods` counts the rest.
const MAX_BLOCKERS_IN_ALL: usize = 1000;

/// Decides about every maintenance.
pub(crate) fn decide(view: &View<'_>, blocked: &Blocked, decision: &mut Decision) {
    for (i, maintenance) in view.world.maintenances.iter().enumerate() {
        let status = Status { view, blocked, i, maintenance }.wanted();
        if status == maintenance.status {
            continue;
        }
        let confirm = to_confirm(maintenance, &status);
        let action = Action::Status { maintenance: maintenance.clone(), status: Box::new(status), confirm };
        decision.actions.insert(Task::Status(maintenance.metadata.name.clone()), action);
    }
}

/// Nodes whose emptiness nobody has confirmed yet: all of them when Drained turns True, those that join later.
fn to_confirm(maintenance: &NodeMaintenance, status: &NodeMaintenanceStatus) -> Vec<String> {
    let is_drained =
        |conditions: &[Condition]| find_condition(conditions, DRAINED).is_some_and(Condition::is_true);
    if maintenance.spec.stage != Stage::Drain || !is_drained(&status.conditions) {
        return Vec::new();
    }
    let old = &maintenance.status;
    let known: HashSet<&str> = old.node_statuses.iter().map(|s| s.node_ref.name.as_str()).collect();
    let confirmed = |node: &str| is_drained(&old.conditions) && known.contains(node);
    let names = status.node_statuses.iter().map(|s| s.node_ref.name.as_str());
    names.filter(|name| !confirmed(name)).map(str::to_owned).collect()
}

struct Status<'v, 'a> {
    view: &'v View<'a>,
    blocked: &'v Blocked,
    i: usize,
    maintenance: &'v NodeMaintenance,
}

impl Status<'_, '_> {
    fn wanted(&self) -> NodeMaintenanceStatus {
        let mut status = self.maintenance.status.clone();
        status.observed_generation = self.maintenance.metadata.generation;
        let stage = self.maintenance.spec.stage;
        if !status.stage_statuses.iter().any(|s| s.name == stage) && stage != Stage::Unknown {
            status.stage_statuses.push(StageStatus { name: stage, start_timestamp: None });
        }
        // The API server notes a stage when it is set; the time is ours to give.
        for started in status.stage_statuses.iter_mut().filter(|s| s.start_timestamp.is_none()) {
            started.start_timestamp = Some(truncate_to_seconds(self.view.now));
        }
        let fitted = self.node_statuses();
        status.node_statuses = fitted.statuses;
        if let Some(drained) = self.drained(fitted.left_out) {
            set_condition(&mut status.conditions, drained);
        }
        status
    }

    fn node_statuses(&self) -> Fitted {
        let old: HashMap<&str, &NodeMaintenanceNodeStatus> =
            self.maintenance.status.node_statuses.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
        if self.maintenance.spec.stage == Stage::Complete && !old.is_empty() {
            return Fitted { statuses: self.frozen(), left_out: 0 };
        }
        let nodes = self.view.nodes_of(self.i);
        let share = (MAX_BLOCKERS_IN_ALL / nodes.len().max(1)).max(1);
        let status = |n: &&Arc<Node>| self.node_status(&n.name, old.get(n.name.as_str()).copied(), share);
        fit(nodes.iter().map(status).collect())
    }

    /// As it was when it ended, without what is only true while it goes on.
    fn frozen(&self) -> Vec<NodeMaintenanceNodeStatus> {
        let mut statuses = self.maintenance.status.node_statuses.clone();
        for status in &mut statuses {
            status.drain_message.clear();
            status.blockers.clear();
            status.blocked_pods = 0;
        }
        statuses
    }

    fn node_status(
        &self,
        node: &str,
        old: Option<&NodeMaintenanceNodeStatus>,
        share: usize,
    ) -> NodeMaintenanceNodeStatus {
        let pods = self.view.pods_on(node);
        let has_request = |p: &&&Arc<Pod>| self.view.world.request(p).is_some_and(|r| !r.is_finished());
        let evacuating = pods.iter().filter(has_request).count();
        let mut status = NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: node.to_owned() },
            drain_targets: old.map(|o| o.drain_targets.clone()).unwrap_or_default(),
            pods_pending_evacuation: number(pods.len() - evacuating),
            pods_evacuating: number(evacuating),
            ..Default::default()
        };
        let planned =
            self.view.planned.get(&self.i).and_then(|place| self.view.outcome.maintenances.get(*place));
        if let Some(planned) = planned.and_then(|m| m.nodes.get(node)) {
            status.drain_targets.clone_from(&planned.drain_targets);
            status.drain_message.clone_from(&planned.drain_message);
            (status.blockers, status.blocked_pods) = self.blocked.of_node(node, share);
        }
        status
    }

    /// Absent before Drain; frozen at Complete.
    fn drained(&self, left_out: usize) -> Option<Condition> {
        let (stage, old) =
            (self.maintenance.spec.stage, find_condition(&self.maintenance.status.conditions, DRAINED));
        let (is, reason, message) = match stage {
            Stage::Drain => self.draining(left_out),
            Stage::Complete => {
                let old = old.filter(|c| !c.is_true())?;
                (
                    false,
                    "Canceled",
                    if old.reason == "Canceled" { old.message.clone() } else { CANCELED.to_owned() },
                )
            }
            _ => return None,
        };
        Some(Condition {
            type_: DRAINED.to_owned(),
            status: if is { "True" } else { "False" }.to_owned(),
            observed_generation: self.maintenance.metadata.generation,
            last_transition_time: Some(truncate_to_seconds(self.view.now)),
            reason: reason.to_owned(),
            message,
        })
    }

    fn draining(&self, left_out: usize) -> (bool, &'static str, String) {
        let nodes = self.view.nodes_of(self.i);
        if nodes.is_empty() {
            return (false, "NoNodesSelected", "The node selector selects no node".to_owned());
        }
        if left_out > 0 {
            let message = format!(
                "{left_out} of the {} selected nodes do not fit into the status: select fewer nodes, in several maintenances",
                nodes.len()
            );
            return (false, "Draining", message);
        }
        let left: Vec<usize> = nodes.iter().map(|n| self.view.pods_on(&n.name).len()).collect();
        let (pods, busy) = (left.iter().sum::<usize>(), left.iter().filter(|l| **l > 0).count());
        let open: Vec<&str> = nodes.iter().filter(|n| !n.unschedulable).map(|n| n.name.as_str()).collect();
        let total = nodes.len();
        if let Some(first) = open.first() {
            let message = format!(
                "{} of {total} nodes are not cordoned yet, {first} among them; evictions wait for that ({pods} pods are left)",
                open.len()
            );
            return (false, "Draining", message);
        }
        if pods > 0 {
            return (false, "Draining", format!("{pods} pods are left on {busy} of {total} nodes"));
        }
        (true, "AllPodsTerminated", format!("All pods have left the {} selected nodes", nodes.len()))
    }
}

const CANCELED: &str = "The maintenance was completed before all pods had left";

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
