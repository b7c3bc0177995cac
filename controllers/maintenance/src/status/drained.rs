//! The condition Drained: people power nodes off on it.

use std::collections::HashSet;

use drydock_api::meta::{Condition, find_condition};
use drydock_api::node_maintenance::{
    DRAINED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStatus, Stage,
};
use jiff::Timestamp;

use super::Status;
use crate::actions::{About, Note};
use crate::nodes::emptied::Emptied;
use crate::nodes::gone::Tally;
use crate::nodes::uncordoned;
use crate::status::fit::Fitted;

const CANCELED: &str = "The maintenance was completed before all pods had left";
/// Reason of the condition, and of the event: what the drain needs does not fit into the status.
const TOO_LARGE: &str = "StatusTooLarge";

impl Status<'_, '_> {
    /// Absent before Drain; frozen at Complete.
    pub(super) fn drained(&self, fitted: &Fitted) -> Option<Condition> {
        let (stage, old) =
            (self.maintenance.spec.stage, find_condition(&self.maintenance.status.conditions, DRAINED));
        let (is, reason, message) = match stage {
            Stage::Drain => self.draining(fitted),
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
        Some(self.condition(DRAINED, is, reason, message))
    }

    fn draining(&self, fitted: &Fitted) -> (bool, &'static str, String) {
        let nodes = self.view.nodes_of(self.i);
        let left: Vec<usize> = nodes.iter().map(|n| self.view.pods_on(&n.name).len()).collect();
        let (pods, busy) = (left.iter().sum::<usize>(), left.iter().filter(|l| **l > 0).count());
        if let Some(message) = without_room(fitted, nodes.len()).filter(|_| pods > 0 || fitted.left_out > 0) {
            return (false, TOO_LARGE, message);
        }
        if let Some(told) = self.without_nodes() {
            return told;
        }
        let open: Vec<&str> = nodes.iter().filter(|n| !n.unschedulable).map(|n| n.name.as_str()).collect();
        let total = nodes.len();
        if let Some(first) = open.first() {
            let why = open.iter().find_map(|node| uncordoned::why(self.view, &self.memory.flips, node));
            let which = why.map_or_else(|| format!(", {first} among them"), |why| format!(". {why}"));
            let message = format!(
                "{} of {total} nodes are not cordoned yet{which}; evictions of their pods wait for that ({pods} pods are left)",
                open.len()
            );
            return (false, "Draining", message);
        }
        if pods > 0 {
            return (false, "Draining", format!("{pods} pods are left on {busy} of {total} nodes"));
        }
        (true, "AllPodsTerminated", format!("All pods have left the {} selected nodes", nodes.len()))
    }

    /// What is said when nodes have gone that had not been drained, or all nodes have.
    fn without_nodes(&self) -> Option<(bool, &'static str, String)> {
        let is_empty = self.view.nodes_of(self.i).is_empty();
        let gone = self.gone().map(Tally::counts).unwrap_or_default();
        if gone.undrained > 0 {
            let example = match self.gone().and_then(Tally::example) {
                Some((node, 0)) => format!(", {node} among them"),
                Some((node, pods)) => format!(", {node} with {pods} pods among them"),
                None => String::new(),
            };
            let reason = if is_empty { "NoNodesSelected" } else { "Draining" };
            let message = format!(
                "{} nodes left the cluster before they were drained{example}. Wait until they are back, or change the node \
                 selector so that it does not select them",
                gone.undrained
            );
            return Some((false, reason, message));
        }
        if !is_empty {
            return None;
        }
        if gone.drained > 0 && self.were_all_drained() {
            let message = format!("All {} nodes left the cluster after all pods had left them", gone.drained);
            return Some((true, "AllPodsTerminated", message));
        }
        Some((false, "NoNodesSelected", "The node selector selects no node".to_owned()))
    }

    /// Whether the nodes that are not selected any more were drained: none is there that was released before.
    fn were_all_drained(&self) -> bool {
        let status = &self.maintenance.status;
        let Some(old) = find_condition(&status.conditions, DRAINED) else { return false };
        let is_there = |s: &NodeMaintenanceNodeStatus| self.view.world.nodes.contains_key(&s.node_ref.name);
        old.is_true() || (old.reason != "NoNodesSelected" && !status.node_statuses.iter().any(is_there))
    }
}

/// What is said when something does not fit into the status without which pods are not asked to leave.
fn without_room(fitted: &Fitted, nodes: usize) -> Option<String> {
    let advice = "select fewer nodes, and drain the others in further maintenances";
    match fitted {
        Fitted { held: true, .. } => Some(format!(
            "No further pods are asked to leave: the next drain targets of {nodes} nodes do not fit into the status. Use \
             fewer or shorter pod selectors in the drain plan, or {advice}"
        )),
        Fitted { left_out: 0, .. } => None,
        Fitted { left_out, .. } => Some(format!(
            "{left_out} of the {nodes} selected nodes do not fit into the status, and are not drained: {advice}"
        )),
    }
}

/// What is told when something does not fit into the status any more.
pub(super) fn too_large(maintenance: &NodeMaintenance, status: &NodeMaintenanceStatus) -> Option<Note> {
    let says = |status: &NodeMaintenanceStatus| {
        find_condition(&status.conditions, DRAINED).filter(|drained| drained.reason == TOO_LARGE).cloned()
    };
    let message = says(status).filter(|_| says(&maintenance.status).is_none())?.message;
    let about = About::Maintenance(maintenance.metadata.name.clone());
    Some(Note { about, warning: true, reason: TOO_LARGE, message })
}

/// Nodes whose emptiness nobody has confirmed just now when Drained turns True, or when they join later.
pub(super) fn to_confirm(
    maintenance: &NodeMaintenance,
    status: &NodeMaintenanceStatus,
    emptied: &Emptied,
    now: Timestamp,
) -> Vec<String> {
    let is_drained =
        |conditions: &[Condition]| find_condition(conditions, DRAINED).is_some_and(Condition::is_true);
    if maintenance.spec.stage != Stage::Drain || !is_drained(&status.conditions) {
        return Vec::new();
    }
    let old = &maintenance.status;
    let known: HashSet<&str> = old.node_statuses.iter().map(|s| s.node_ref.name.as_str()).collect();
    let confirmed =
        |node: &str| emptied.is_fresh(node, now) || (is_drained(&old.conditions) && known.contains(node));
    let names = status.node_statuses.iter().map(|s| s.node_ref.name.as_str());
    names.filter(|name| !confirmed(name)).map(str::to_owned).collect()
}
