//! Conditions on nodes: MaintenanceInProgress, DrainInProgress, Drained, and MaintenancePlanned if asked for.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, PodType, Stage};
use drydock_runtime::Node;

use crate::actions::{About, Action, Decision, NodeCondition, Note};
use crate::nodes::emptied::Emptied;
use crate::world::View;

const IN_PROGRESS: &str = "MaintenanceInProgress";
const DRAINING: &str = "DrainInProgress";
const DRAINED: &str = "Drained";
const PLANNED: &str = "MaintenancePlanned";
/// All that are ours; Drained is ours while MaintenanceInProgress stands beside it.
const TYPES: [&str; 4] = [IN_PROGRESS, DRAINING, DRAINED, PLANNED];
/// Longest message of a condition.
const MAX_MESSAGE: usize = 1024;

/// Decides about every node.
pub(crate) fn decide(view: &View<'_>, emptied: &Emptied, decision: &mut Decision) {
    let planned = planned_on(view);
    for node in view.world.nodes.values() {
        let planned = planned.get(node.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let wanted = wanted(view, node, planned);
        let remove: Vec<&str> = TYPES
            .into_iter()
            .filter(|t| node.condition(t).is_some() && !wanted.iter().any(|w| w.type_ == *t))
            .collect();
        let remove = if is_ours(node) { remove } else { Vec::new() };
        let set: Vec<NodeCondition> = wanted.into_iter().filter(|w| w.turns || differs(node, w)).collect();
        if !set.is_empty() || !remove.is_empty() {
            // Its message changes with the maintenances, and so with the type up to which it speaks.
            let drained = set.iter().find(|c| c.type_ == DRAINED && c.status == "True");
            let notes = if drained.is_some_and(|c| c.turns) { tell_drained(view, node) } else { Vec::new() };
            let last = drained.and_then(|_| view.last_type_on(&node.name));
            let confirm = last.filter(|last| !emptied.is_fresh(&node.name, *last, view.now));
            let (node, uid) = (node.name.clone(), node.uid.clone());
            decision.add(Action::Conditions { node, uid, set, remove, confirm, notes });
        }
    }
}

/// Whether a node is recorded as drained, by us and after a live read.
pub(crate) fn says_drained(node: &Node) -> bool {
    is_ours(node) && node.condition(DRAINED).is_some_and(|c| c.status == "True")
}

/// Whether the conditions of our types on a node were set by us: others may have one of the name Drained.
fn is_ours(node: &Node) -> bool {
    node.condition(IN_PROGRESS).is_some() || node.condition(PLANNED).is_some()
}

fn wanted(view: &View<'_>, node: &Arc<Node>, idle: &[&Arc<NodeMaintenance>]) -> Vec<NodeCondition> {
    let holders: Vec<_> = view.holders_of(&node.name).collect();
    let Some(furthest) = holders.iter().map(|m| m.spec.stage).max() else { return planned(node, idle) };
    let names = message(&holders);
    let condition = |type_: &'static str, is: bool, message: String| {
        let status = if is { "True" } else { "False" };
        let same = is_ours(node) && node.condition(type_).is_some_and(|c| c.status == status);
        NodeCondition { type_, status, reason: furthest.as_str(), message, turns: !same }
    };
    let mut list = vec![condition(IN_PROGRESS, true, names.clone())];
    if let Some(last) = view.last_type_on(&node.name) {
        let left = view.pods_up_to(&node.name, last).len();
        let empty = left == 0 && node.unschedulable;
        let message = up_to(last, view.pods_on(&node.name).len() - left, names);
        list.extend([condition(DRAINING, !empty, message.clone()), condition(DRAINED, empty, message)]);
    }
    list
}

/// The message of what is said up to a type, and how many pods of later types stay.
fn up_to(last: PodType, stay: usize, names: String) -> String {
    if last >= PodType::Static {
        return names;
    }
    let speaks = format!("Pods up to type {}; {stay} of later types stay: ", last.as_str());
    (speaks + &names).chars().take(MAX_MESSAGE).collect()
}

/// The maintenances in Idle of each node, if they are to be advertised.
fn planned_on<'a>(view: &View<'a>) -> HashMap<&'a str, Vec<&'a Arc<NodeMaintenance>>> {
    let mut on: HashMap<&str, Vec<_>> = HashMap::new();
    let all = view.world.maintenances.iter().zip(&view.selected).filter(|_| view.config.advertise_planned);
    let idle = |m: &NodeMaintenance| m.spec.stage == Stage::Idle && m.metadata.deletion_timestamp.is_none();
    for (maintenance, nodes) in all.filter(|(m, _)| idle(m)) {
        nodes.iter().for_each(|n| on.entry(n.name.as_str()).or_default().push(maintenance));
    }
    on
}

fn planned(node: &Arc<Node>, idle: &[&Arc<NodeMaintenance>]) -> Vec<NodeCondition> {
    if idle.is_empty() {
        return Vec::new();
    }
    let turns = node.condition(PLANNED).is_none();
    let (status, reason) = ("True", Stage::Idle.as_str());
    vec![NodeCondition { type_: PLANNED, status, reason, message: message(idle), turns }]
}

/// Names and reasons of maintenances: `a (OS upgrade), b`.
fn message(maintenances: &[&Arc<NodeMaintenance>]) -> String {
    let one = |m: &&Arc<NodeMaintenance>| match m.spec.reason.as_str() {
        "" => m.metadata.name.clone(),
        reason => format!("{} ({reason})", m.metadata.name),
    };
    let all = maintenances.iter().map(one).collect::<Vec<_>>().join(", ");
    all.chars().take(MAX_MESSAGE).collect()
}

fn differs(node: &Node, wanted: &NodeCondition) -> bool {
    node.condition(wanted.type_)
        .is_none_or(|c| c.status != wanted.status || c.reason != wanted.reason || c.message != wanted.message)
}

/// Which pods are meant, where these are not all.
pub(crate) fn named(last: PodType) -> String {
    match last {
        PodType::Default => " of type Default".to_owned(),
        PodType::DaemonSet => " up to type DaemonSet".to_owned(),
        PodType::Static | PodType::Unknown => String::new(),
    }
}

/// What is told of a node that is drained.
fn tell_drained(view: &View<'_>, node: &Node) -> Vec<Note> {
    let note = |about, message| Note { about, warning: false, reason: "NodeDrained", message };
    let pods = view.last_type_on(&node.name).map_or_else(String::new, named);
    let mut notes = vec![note(About::Node(node.name.clone()), format!("All pods{pods} have left the node"))];
    for maintenance in view.holders_of(&node.name).filter(|m| m.spec.stage == Stage::Drain) {
        let message =
            format!("All pods{} have left node {}", named(maintenance.spec.last_pod_type), node.name);
        notes.push(note(About::Maintenance(maintenance.metadata.name.clone()), message));
    }
    notes
}
