//! Conditions on nodes: MaintenanceInProgress, DrainInProgress, Drained, and MaintenancePlanned if it is enabled.
//! Also which nodes a live read has confirmed to be empty.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::maintenances::MaintenanceReference;
use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage, PodType};
use drydock_api::text::cut;
use drydock_runtime::Node;
use drydock_runtime::cache::node::{
    DRAINED, DRAINING, IN_PROGRESS, OUR_CONDITION_TYPES, PLANNED, has_our_conditions,
};
use jiff::{SignedDuration, Timestamp};

use crate::actions::{Action, MaintenanceDecision, NodeConditionChange, Task};
use crate::nodes::drained_message::{DrainedText, recorded};
use crate::world::WorldView;

/// Longest message of a condition.
const MAX_MESSAGE: usize = 1024;

/// Decides about every node.
pub(crate) fn decide(view: &WorldView<'_>, emptied: &ConfirmedEmpty, decision: &mut MaintenanceDecision) {
    let planned = planned_on(view);
    for node in view.world.nodes.values() {
        if is_about_to_be_cordoned(view, node, decision) || waits_for_other_cordons(view, node) {
            continue;
        }
        let planned = planned.get(node.name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let desired = desired(view, node, planned);
        let remove: Vec<&str> = OUR_CONDITION_TYPES
            .into_iter()
            .filter(|t| node.condition(t).is_some() && !desired.iter().any(|d| d.type_ == *t))
            .collect();
        let remove = if is_ours(node) { remove } else { Vec::new() };
        let set: Vec<NodeConditionChange> =
            desired.into_iter().filter(|d| d.status_changes || differs(node, d)).collect();
        if !set.is_empty() || !remove.is_empty() {
            // A live read is needed only if more is recorded than before.
            let (before, now) = (drained_up_to(node), recorded_by(&set));
            let confirm = now.filter(|last| now > before && !emptied.is_fresh(&node.name, *last, view.now));
            let (node, uid) = (node.name.clone(), node.uid.clone());
            decision.add(Action::Conditions { node, uid, set, remove, confirm });
        }
    }
}

/// Whether the cordon of a node is written now, or its removal. The conditions come after it: in between they would change
/// the version of the node that the cordon was decided on. One that was refused holds up nothing.
fn is_about_to_be_cordoned(view: &WorldView<'_>, node: &Node, decision: &MaintenanceDecision) -> bool {
    let is_written = decision.actions.contains_key(&Task::Cordon(node.name.clone()));
    is_written && !view.world.refused.contains_key(&node.name)
}

/// Whether the first conditions of a node wait: it is cordoned, and the pods of its maintenance in Drain wait for the first
/// attempts to cordon other nodes. The host has the more time for those. What stands in conditions already is kept true.
fn waits_for_other_cordons(view: &WorldView<'_>, node: &Node) -> bool {
    node.unschedulable && node.condition(IN_PROGRESS).is_none() && !view.may_ask_on(&node.name)
}

/// The type up to which a node is recorded as drained, by us and after a live read; none if it is not.
pub(crate) fn drained_up_to(node: &Node) -> Option<PodType> {
    let drained = node.condition(DRAINED).filter(|_| is_ours(node))?;
    recorded(drained.status == "True", &drained.message)
}

/// The type up to which these conditions record that a node is drained.
fn recorded_by(set: &[NodeConditionChange]) -> Option<PodType> {
    let drained = set.iter().find(|condition| condition.type_ == DRAINED)?;
    recorded(drained.status == "True", &drained.message)
}

/// Whether the conditions of our types on a node were set by us: others may have one of the name Drained.
fn is_ours(node: &Node) -> bool {
    has_our_conditions(node.conditions.iter().map(|condition| condition.type_.as_str()))
}

/// The conditions of our types that a node should have.
fn desired(
    view: &WorldView<'_>,
    node: &Arc<Node>,
    idle: &[&Arc<NodeMaintenance>],
) -> Vec<NodeConditionChange> {
    let holders: Vec<_> = view.holders_of(&node.name).collect();
    let Some(furthest) = holders.iter().map(|m| m.spec.stage).max() else { return planned(node, idle) };
    let condition = |type_: &'static str, is: bool, message: String| {
        let status = if is { "True" } else { "False" };
        let same = is_ours(node) && node.condition(type_).is_some_and(|c| c.status == status);
        NodeConditionChange { type_, status, reason: furthest.as_str(), message, status_changes: !same }
    };
    let mut list = vec![condition(IN_PROGRESS, true, message(&holders))];
    if let Some(last) = view.last_type_on(&node.name) {
        let left = view.pods_up_to(&node.name, last).len();
        let empty = left == 0 && node.unschedulable;
        let stay = view.pods_on(&node.name).len() - left;
        let partly = if empty { None } else { empty_up_to(view, node, last) };
        let text = DrainedText { last, stay, empty: partly }.text();
        let naming = |of: &[&Arc<NodeMaintenance>]| cut(&format!("{text}: {}", message(of)), MAX_MESSAGE);
        let draining: Vec<_> = view.drains_of(&node.name).collect();
        let busy = |m: &&Arc<NodeMaintenance>| {
            !node.unschedulable || !view.pods_up_to(&node.name, m.spec.last_pod_type).is_empty()
        };
        let busy: Vec<_> = draining.iter().copied().filter(busy).collect();
        let in_progress = naming(if busy.is_empty() { &draining } else { &busy });
        list.extend([condition(DRAINING, !empty, in_progress), condition(DRAINED, empty, naming(&draining))]);
    }
    list
}

/// The greatest type before the last up to which no pod is left on a node that is cordoned.
fn empty_up_to(view: &WorldView<'_>, node: &Node, last: PodType) -> Option<PodType> {
    let before = [PodType::DaemonSet, PodType::Default].into_iter().filter(|before| *before < last);
    let is_empty = |before: &PodType| view.pods_up_to(&node.name, *before).is_empty();
    before.filter(|_| node.unschedulable).find(is_empty)
}

/// The maintenances in Idle of each node, if they are to be advertised.
fn planned_on<'a>(view: &WorldView<'a>) -> HashMap<&'a str, Vec<&'a Arc<NodeMaintenance>>> {
    let mut on: HashMap<&str, Vec<_>> = HashMap::new();
    let all = view.world.maintenances.iter().zip(&view.selected).filter(|_| view.config.advertise_planned);
    let idle = |m: &NodeMaintenance| {
        m.spec.stage == NodeMaintenanceStage::Idle && m.metadata.deletion_timestamp.is_none()
    };
    for (maintenance, nodes) in all.filter(|(m, _)| idle(m)) {
        nodes.iter().for_each(|n| on.entry(n.name.as_str()).or_default().push(maintenance));
    }
    on
}

fn planned(node: &Arc<Node>, idle: &[&Arc<NodeMaintenance>]) -> Vec<NodeConditionChange> {
    if idle.is_empty() {
        return Vec::new();
    }
    let status_changes = node.condition(PLANNED).is_none();
    let (status, reason) = ("True", NodeMaintenanceStage::Idle.as_str());
    vec![NodeConditionChange { type_: PLANNED, status, reason, message: message(idle), status_changes }]
}

/// Names and reasons of maintenances: `a (OS upgrade), b`.
fn message(maintenances: &[&Arc<NodeMaintenance>]) -> String {
    let one =
        |m: &&Arc<NodeMaintenance>| MaintenanceReference::new(&m.metadata.name, &m.spec.reason).to_string();
    let all = maintenances.iter().map(one).collect::<Vec<_>>().join(", ");
    cut(&all, MAX_MESSAGE)
}

fn differs(node: &Node, desired: &NodeConditionChange) -> bool {
    node.condition(desired.type_).is_none_or(|c| {
        c.status != desired.status || c.reason != desired.reason || c.message != desired.message
    })
}

/// Names the pods up to a type in a message; empty if these are all pods.
pub(crate) fn of_type_suffix(last: PodType) -> String {
    match last {
        PodType::Default => " of type Default".to_owned(),
        PodType::DaemonSet => " up to type DaemonSet".to_owned(),
        PodType::Static | PodType::Unknown => String::new(),
    }
}

/// How long a live read counts when a maintenance is called drained: the watch of the pods may hang, and a pod that has
/// come since would not be seen.
const LIVE_READ_COUNTS_FOR: SignedDuration = SignedDuration::from_secs(10);

/// Nodes that a live read of the host has shown to have no pods up to a type, by name and type, and on which no
/// such pod has been seen since. A cache may lag, and people power nodes off because of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfirmedEmpty(HashMap<(String, PodType), LiveRead>);

/// A live read that showed no pod.
#[derive(Clone, Debug)]
struct LiveRead {
    /// UID of the node.
    uid: String,
    /// When a planning learnt of it.
    at: Timestamp,
}

impl ConfirmedEmpty {
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let nodes = &view.world.nodes;
        let confirmed = view.world.since.confirmed.iter();
        let confirmed = confirmed.filter_map(|(name, last)| Some((nodes.get(name)?, *last)));
        let read =
            |node: &Node, last| ((node.name.clone(), last), LiveRead { uid: node.uid.clone(), at: view.now });
        self.0.extend(confirmed.map(|(node, last)| read(node, last)));
        let is_empty = |node: &str, last| view.is_draining(node) && view.pods_up_to(node, last).is_empty();
        self.0.retain(|(node, last), read| {
            is_empty(node, *last) && nodes.get(node).is_some_and(|n| n.uid == read.uid)
        });
    }

    /// Whether a live read has shown the node to have no pods up to this type, and none has been seen there since.
    pub(crate) fn contains(&self, node: &str, last: PodType) -> bool {
        self.reads(node, last).next().is_some()
    }

    /// Like [`ConfirmedEmpty::contains`], by a read within the last 10 seconds: no other read is needed to
    /// call the node drained.
    pub(crate) fn is_fresh(&self, node: &str, last: PodType, now: Timestamp) -> bool {
        self.reads(node, last).any(|read| now.duration_since(read.at) < LIVE_READ_COUNTS_FOR)
    }

    /// The reads that have looked for all of these types.
    fn reads<'e>(&'e self, node: &str, last: PodType) -> impl Iterator<Item = &'e LiveRead> {
        let wide = PodType::ALL.into_iter().filter(move |read| last <= *read);
        wide.filter_map(|read| self.0.get(&(node.to_owned(), read)))
    }
}
