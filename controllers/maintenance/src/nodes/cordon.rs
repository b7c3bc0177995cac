//! Cordoning and uncordoning: `spec.unschedulable`, and the annotation that remembers who set it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_api::time::format_seconds;
use drydock_runtime::cache::node::{CORDONED_BY, CORDONED_BY_OTHERS, CORDONED_BY_US};
use drydock_runtime::events::reasons::CORDON_CONFLICT;
use drydock_runtime::{Node, UndoneByOthers};
use jiff::Timestamp;

use crate::actions::{Action, MaintenanceDecision};
use crate::world::WorldView;

/// Most maintenances that an event names.
const MAX_NAMED: usize = 5;

/// How often others made a node schedulable during its maintenance, by node.
#[derive(Clone, Debug, Default)]
pub(crate) struct UncordonConflicts(HashMap<String, UndoneByOthers>);

/// Decides about every node.
pub(crate) fn decide(
    view: &WorldView<'_>,
    uncordon_conflicts: &mut UncordonConflicts,
    decision: &mut MaintenanceDecision,
) {
    uncordon_conflicts.0.retain(|node, _| view.is_held(node));
    uncordon_conflicts.0.values_mut().for_each(|conflict| conflict.forget(view.now));
    let never_started_nodes = never_started_nodes(view);
    for node in view.world.nodes.values() {
        let by = node.annotations.get(CORDONED_BY).map(String::as_str);
        let action = if view.is_held(&node.name) {
            if let Some(times) = view.world.since.uncordoned.get(&node.name) {
                uncordon_conflicts.note(view, node, *times, decision);
            }
            hold(node, by)
        } else if view.may_be_held(&node.name) {
            None
        } else {
            release(node, by).or_else(|| release_never_started(&never_started_nodes, node))
        };
        if let Some(action) = action {
            decision.add(action);
        }
    }
}

/// Makes a node under maintenance unschedulable. If others had cordoned the node before and uncordon it
/// during the maintenance, it becomes schedulable afterwards.
fn hold(node: &Arc<Node>, by: Option<&str>) -> Option<Action> {
    match (by, node.unschedulable) {
        (Some(_), true) => None,
        (None, true) => Some(cordon(node, None, Some(CORDONED_BY_OTHERS))),
        (_, false) => Some(cordon(node, Some(true), Some(CORDONED_BY_US))),
    }
}

/// Releases a node that no maintenance holds any more: makes it schedulable if we had cordoned it, and
/// removes our annotation.
fn release(node: &Arc<Node>, by: Option<&str>) -> Option<Action> {
    let ours = by? == CORDONED_BY_US;
    Some(cordon(node, (ours && node.unschedulable).then_some(false), None))
}

/// Nodes of the maintenances that went from Idle straight to Complete.
fn never_started_nodes<'a>(view: &WorldView<'a>) -> HashSet<&'a str> {
    let all = view.world.maintenances.iter().zip(&view.selected);
    all.filter(|(m, _)| never_started(m))
        .flat_map(|(_, nodes)| nodes.iter().map(|n| n.name.as_str()))
        .collect()
}

/// Makes a node of such a maintenance schedulable, even if others cordoned it.
fn release_never_started(never_started_nodes: &HashSet<&str>, node: &Arc<Node>) -> Option<Action> {
    let due = node.unschedulable && never_started_nodes.contains(node.name.as_str());
    due.then(|| cordon(node, Some(false), None))
}

/// Whether a maintenance went from Idle straight to Complete and still has its finalizer. False for one that
/// was created in Complete, and for one that is being deleted: it may have been in any stage. The API server
/// notes each stage in the write that sets it, so that no stage is missed however short it was.
pub(crate) fn never_started(maintenance: &NodeMaintenance) -> bool {
    let was = |stages: &[NodeMaintenanceStage]| {
        maintenance.status.stage_statuses.iter().any(|s| stages.contains(&s.name))
    };
    maintenance.is_ending()
        && maintenance.metadata.deletion_timestamp.is_none()
        && was(&[NodeMaintenanceStage::Idle])
        && !was(&[NodeMaintenanceStage::Cordon, NodeMaintenanceStage::Drain])
}

fn cordon(node: &Arc<Node>, unschedulable: Option<bool>, annotation: Option<&'static str>) -> Action {
    Action::Cordon { node: node.clone(), unschedulable, annotation }
}

impl UncordonConflicts {
    /// How often others made a node schedulable, and since when; none unless it was more than once.
    pub(crate) fn since(&self, node: &str) -> Option<(usize, Timestamp)> {
        self.0.get(node)?.since()
    }

    fn note(&mut self, view: &WorldView<'_>, node: &Node, times: usize, decision: &mut MaintenanceDecision) {
        let conflict = self.0.entry(node.name.clone()).or_default();
        conflict.undone(times, view.now);
        let (is_first, again) = (conflict.times() == 1, conflict.report(view.now));
        let holders = holders(view, node);
        let mut warn = |message: &dyn Fn(&str) -> String| {
            let of = view.holders_of(&node.name);
            decision.warn_node_and_maintenances(&node.name, of, CORDON_CONFLICT, message);
        };
        if is_first {
            warn(&|who| held_text(who, &holders));
        }
        if let Some((count, began)) = again {
            warn(&|who| {
                let uncordoned = conflict_text(who, count, began);
                format!(
                    "{uncordoned}, and is made unschedulable again, as it is under maintenance: {holders}"
                )
            });
        }
    }
}

/// The message of the first event that `who` made a node schedulable, on the node and on its maintenances.
fn held_text(who: &str, holders: &str) -> String {
    format!(
        "{who} was made schedulable by others, and is made unschedulable again, as it is under maintenance: {holders}. It is \
         schedulable when each NodeMaintenance is in stage Complete"
    )
}

/// The message about a node, `who`, that others make schedulable again and again.
pub(super) fn conflict_text(who: &str, times: usize, since: Timestamp) -> String {
    format!("{who} was made schedulable by others {times} times since {}", format_seconds(since))
}

/// The maintenances that hold a node, with their stages: `a (stage Drain), b (stage Cordon)`.
fn holders(view: &WorldView<'_>, node: &Node) -> String {
    let holder = |m: &Arc<NodeMaintenance>| format!("{} (stage {})", m.metadata.name, m.spec.stage.as_str());
    view.holders_of(&node.name).take(MAX_NAMED).map(holder).collect::<Vec<_>>().join(", ")
}
