//! The condition Cordoned: whether every selected node is unschedulable.

use drydock_api::metav1::{Condition, find_condition};
use drydock_api::node_maintenance::{CORDONED, NodeMaintenanceStage};
use drydock_api::reasons::NODE_UPDATE_REFUSED;
use drydock_api::text::{all, are, counted, first_of};

use super::StatusBuilder;
use crate::nodes::awaiting_cordon;

/// Most nodes that the message names.
const MAX_NAMED: usize = 5;
const UNCORDONED: &str = "The maintenance is complete: its nodes are schedulable, but for those that were unschedulable before it \
    and those that another maintenance holds";

impl StatusBuilder<'_, '_> {
    /// The condition. It is absent before Cordon, and for a maintenance that went from Idle straight to
    /// Complete.
    pub(super) fn cordoned(&self) -> Option<Condition> {
        match self.maintenance.spec.stage {
            stage if stage.holds_nodes() => {
                let (is, reason, message) = self.cordoning();
                Some(self.condition(CORDONED, is, reason, message))
            }
            NodeMaintenanceStage::Complete => {
                find_condition(&self.maintenance.status.conditions, CORDONED)?;
                Some(self.condition(CORDONED, false, "Uncordoned", UNCORDONED.to_owned()))
            }
            _ => None,
        }
    }

    fn cordoning(&self) -> (bool, &'static str, String) {
        let nodes = self.view.nodes_of(self.i);
        let open: Vec<&str> = nodes.iter().filter(|n| !n.unschedulable).map(|n| n.name.as_str()).collect();
        if nodes.is_empty() {
            return (false, "NoNodesSelected", "The node selector selects no node".to_owned());
        }
        if open.is_empty() {
            return (true, "AllNodesCordoned", all_cordoned(nodes.len()));
        }
        let is_refused = |node: &&&str| self.view.world.refused.contains_key(**node);
        let reason =
            if open.iter().any(|node| is_refused(&node)) { NODE_UPDATE_REFUSED } else { "Cordoning" };
        let mut message = format!(
            "{} of {} {} schedulable still: {}",
            open.len(),
            counted(nodes.len(), "node", "nodes"),
            are(open.len()),
            first_of(&open, MAX_NAMED)
        );
        let first = open.iter().filter(is_refused).chain(&open);
        let why = first
            .copied()
            .find_map(|node| awaiting_cordon::why(self.view, self.sources.uncordon_conflicts, node));
        message.extend(why.into_iter().flat_map(|why| [". ".to_owned(), why]));
        (false, reason, message)
    }
}

/// The message when all selected nodes, `nodes` in number, are unschedulable.
pub(crate) fn all_cordoned(nodes: usize) -> String {
    format!("{} {} unschedulable", all(nodes, "selected node", "selected nodes"), are(nodes))
}
