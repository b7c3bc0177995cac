//! The status of each maintenance.

pub(crate) mod cordoned;
mod drained;
mod fast_forwards;
mod fit;
mod status_bytes;
mod unscheduled;
mod ways_out;
mod will_be_lost;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use drydock_api::metav1::{Condition, is_condition_true, set_condition};
use drydock_api::node_maintenance::{
    DRAINED, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeMaintenanceStatus,
    NodeReference, PodType, PodsLeft, StageStatus,
};
use drydock_api::text::number;
use drydock_api::time::truncate_to_seconds;
use drydock_machinery::object::json_len;
use drydock_plan::{MaintenanceOutcome, NodeOutcome};
use drydock_runtime::{Node, Pod};
use jiff::Timestamp;

use crate::actions::{Action, MaintenanceDecision};
use crate::blockers::Blockers;
use crate::nodes::conditions::ConfirmedEmpty;
use crate::nodes::cordon::UncordonConflicts;
use crate::nodes::gone::{GoneNodes, is_drained};
use crate::nodes::gone_tally::GoneNodesTally;
use crate::requests::outcomes::Outcomes;
use crate::requests::turns::ShownTurns;
use crate::world::WorldView;
use crate::world::recorded::{self, LeftOut};

use self::fast_forwards::FastForwards;
use self::fit::Fitted;
use self::status_bytes::StatusBytes;
use self::unscheduled::EvictedControllers;
use self::will_be_lost::BarePods;

/// Most blockers in one status, except that each node may name one; `blockedPods` counts all.
const MAX_BLOCKERS_IN_ALL: usize = 1000;
/// Reason of a condition about pods that leave, once the maintenance is complete.
const COMPLETED: &str = "Completed";

/// The memories that statuses are made from, beside the view.
pub(crate) struct StatusSources<'m> {
    pub(crate) blockers: &'m Blockers,
    pub(crate) uncordon_conflicts: &'m UncordonConflicts,
    pub(crate) outcomes: &'m Outcomes,
    pub(crate) gone: &'m GoneNodes,
    pub(crate) emptied: &'m ConfirmedEmpty,
    pub(crate) turns: &'m ShownTurns,
}

/// The memory of statuses between steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct StatusMemory {
    pub(crate) settled: Settled,
    pub(crate) left_out: LeftOut,
    pub(crate) bytes: StatusBytes,
    pub(crate) evicted_controllers: EvictedControllers,
    pub(crate) bare_pods: BarePods,
    pub(crate) fast_forwards: FastForwards,
}

/// Decides about every maintenance.
pub(crate) fn decide(
    view: &WorldView<'_>,
    sources: &StatusSources<'_>,
    memory: &mut StatusMemory,
    decision: &mut MaintenanceDecision,
) {
    memory.settled.update(view);
    memory.left_out.update(view.world);
    if memory.bytes.update(view.world) {
        memory.left_out.forget_all();
    }
    memory.evicted_controllers.update(view);
    memory.bare_pods.update(view);
    memory.fast_forwards.update(view, decision);
    for (i, maintenance) in view.world.maintenances.iter().enumerate() {
        if let Some(until) = memory.settled.rests_until(maintenance, view.nodes_of(i).len(), view.now) {
            decision.wake_at(until);
            continue;
        }
        let room = memory.bytes.room(maintenance);
        let now = StatusBuilder { view, sources, i, maintenance, room };
        let ((mut status, dropped), bare_pods) = (now.desired(), now.will_be_lost());
        memory.left_out.note(maintenance, view.nodes_of(i).len(), dropped);
        let unschedulable = memory.evicted_controllers.condition(view, maintenance, decision);
        let unschedulable_note = unschedulable.as_ref().and_then(|c| unscheduled::note(maintenance, c));
        let bare_note =
            bare_pods.as_ref().and_then(|bare| memory.bare_pods.note(maintenance, bare, decision));
        for condition in unschedulable.into_iter().chain(bare_pods.map(|(condition, _)| condition)) {
            set_condition(&mut status.conditions, condition);
        }
        if status == maintenance.status {
            memory.settled.note(maintenance, view.now);
            continue;
        }
        let confirm = drained::to_confirm(maintenance, &status, sources.emptied, view.now);
        let mut events = memory.fast_forwards.events(view, i, maintenance, decision);
        events.extend(unschedulable_note.into_iter().chain(bare_note));
        memory.bytes.note(maintenance, &status);
        events.extend(drained::stuck(maintenance, &status));
        let (maintenance, status) = (maintenance.clone(), Box::new(status));
        decision.add(Action::Status { maintenance, status, confirm, events });
    }
}

struct StatusBuilder<'v, 'a> {
    view: &'v WorldView<'a>,
    sources: &'v StatusSources<'v>,
    i: usize,
    maintenance: &'v NodeMaintenance,
    /// Bytes that all maintenances together leave for its node statuses.
    room: usize,
}

impl StatusBuilder<'_, '_> {
    /// Returns the status to write, and the names of the nodes that do not fit into it.
    fn desired(&self) -> (NodeMaintenanceStatus, Vec<String>) {
        let mut status = self.maintenance.status.clone();
        status.observed_generation = self.maintenance.metadata.generation;
        let stage = self.maintenance.spec.stage;
        if !status.stage_statuses.iter().any(|s| s.name == stage) && stage != NodeMaintenanceStage::Unknown {
            status.stage_statuses.push(StageStatus { name: stage, start_timestamp: None });
        }
        // The API server records a stage when it is set; we add the time.
        for started in status.stage_statuses.iter_mut().filter(|s| s.start_timestamp.is_none()) {
            started.start_timestamp = Some(truncate_to_seconds(self.view.now));
        }
        let kept = recorded::not_handed_over(self.view, self.i);
        let fitted = self.node_statuses(&kept);
        let is_held = fitted.held || !kept.is_empty();
        if let Some(planned) = self.planned().filter(|_| !is_held) {
            let last = self.maintenance.spec.drain_plan.len().checked_sub(1);
            let next = last.map(|last| position(planned.cursor.min(last)));
            // A node that was left out in this step does not move the plan back: the next planning leaves it
            // out.
            let is_back = !fitted.dropped.is_empty() && next < status.drain_plan_position;
            status.drain_plan_position = if is_back { status.drain_plan_position } else { next };
        }
        if let Some(outcomes) = self.sources.outcomes.of(self.maintenance) {
            status.outcomes.clone_from(outcomes);
        }
        for condition in self.cordoned().into_iter().chain(self.drained(&fitted)) {
            set_condition(&mut status.conditions, condition);
        }
        if let Some(gone) = self.gone() {
            status.gone_nodes = gone.counts();
            let drained = self.drained_nodes(is_condition_true(&status.conditions, DRAINED));
            status.drained_nodes = number(drained).saturating_add(status.gone_nodes.drained);
        }
        status.pod_turns = self.sources.turns.of_maintenance(&self.maintenance.metadata.name);
        status.node_statuses = fitted.statuses;
        (status, fitted.dropped)
    }

    /// How many of the selected nodes are drained. If the status says that all are, all count, even if the condition
    /// of a node is not written yet: the maintenance may move to Complete before that, which freezes the count.
    fn drained_nodes(&self, all: bool) -> usize {
        let nodes = self.view.nodes_of(self.i);
        if all && self.is_draining() {
            return nodes.len();
        }
        nodes.iter().filter(|node| self.is_drained(&node.name, self.last_type())).count()
    }

    /// The last type of pods that the maintenance drains.
    fn last_type(&self) -> PodType {
        self.maintenance.spec.last_pod_type
    }

    fn is_draining(&self) -> bool {
        self.maintenance.spec.stage == NodeMaintenanceStage::Drain
    }

    /// Whether a node is recorded as drained of pods up to a type.
    fn is_drained(&self, node: &str, last: PodType) -> bool {
        let node = self.view.world.nodes.get(node);
        node.is_some_and(|node| is_drained(self.view, self.sources.emptied, node, last))
    }

    /// What is known of the nodes that have gone while they were drained.
    fn gone(&self) -> Option<&GoneNodesTally> {
        self.sources.gone.of(self.maintenance, self.last_type())
    }

    fn node_statuses(&self, kept: &[&NodeMaintenanceNodeStatus]) -> Fitted {
        let old: HashMap<&str, &NodeMaintenanceNodeStatus> =
            self.maintenance.status.node_statuses.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
        if self.maintenance.spec.stage == NodeMaintenanceStage::Complete && !old.is_empty() {
            return Fitted { statuses: self.frozen(), ..Fitted::default() };
        }
        let selected = self.view.nodes_of(self.i);
        let nodes = recorded::fitting_nodes(self.view, self.i);
        let share = (MAX_BLOCKERS_IN_ALL / nodes.len().max(1)).max(1);
        let status = |n: &&Arc<Node>| self.node_status(&n.name, old.get(n.name.as_str()).copied(), share);
        let mut statuses: Vec<_> = nodes.iter().map(status).collect();
        // Blockers are not determined for a node that is no longer selected.
        statuses.extend(kept.iter().map(|status| NodeMaintenanceNodeStatus {
            blockers: Vec::new(),
            blocked_pods: 0,
            ..(*status).clone()
        }));
        statuses.sort_by(|a, b| a.node_ref.cmp(&b.node_ref));
        let turns = json_len(&self.sources.turns.of_maintenance(&self.maintenance.metadata.name));
        let of_object = fit::max_bytes(self.maintenance, turns);
        let max_bytes = of_object.min(self.room);
        let mut fitted = fit::fit(statuses, &old, max_bytes);
        fitted.all_are_full = self.room < of_object;
        fitted.left_out += selected.len() - nodes.len();
        let workloads = self.sources.gone.of(self.maintenance, PodType::Default);
        fitted.add(self.gone().into_iter().flat_map(|gone| gone.statuses(workloads)), max_bytes);
        fitted
    }

    fn condition(&self, type_: &str, is: bool, reason: &str, message: String) -> Condition {
        Condition {
            type_: type_.to_owned(),
            status: if is { "True" } else { "False" }.to_owned(),
            observed_generation: self.maintenance.metadata.generation,
            last_transition_time: Some(truncate_to_seconds(self.view.now)),
            reason: reason.to_owned(),
            message,
        }
    }

    fn planned(&self) -> Option<&MaintenanceOutcome> {
        self.view
            .planned
            .places
            .get(&self.i)
            .and_then(|place| self.view.planned.outcome.maintenances.get(*place))
    }

    /// The node statuses as they were at the end, without what is true only during the drain.
    fn frozen(&self) -> Vec<NodeMaintenanceNodeStatus> {
        let mut statuses = self.maintenance.status.node_statuses.clone();
        for status in &mut statuses {
            status.drain_message.clear();
            status.blockers.clear();
            status.blocked_pods = 0;
            status.left.clear();
            // The requests are withdrawn, so that no pod is evacuating.
            let left = status.pods_pending_evacuation.saturating_add(status.pods_evacuating);
            (status.pods_pending_evacuation, status.pods_evacuating) = (left, 0);
        }
        statuses
    }

    fn node_status(
        &self,
        node: &str,
        old: Option<&NodeMaintenanceNodeStatus>,
        share: usize,
    ) -> NodeMaintenanceNodeStatus {
        let pods = self.view.pods_up_to(node, self.last_type());
        let has_request = |p: &&&Arc<Pod>| self.view.world.request(p).is_some_and(|r| !r.is_finished());
        let evacuating = pods.iter().filter(has_request).count();
        let mut status = NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: node.to_owned() },
            drain_targets: old.map(|o| o.drain_targets.clone()).unwrap_or_default(),
            pods_pending_evacuation: number(pods.len() - evacuating),
            pods_evacuating: number(evacuating),
            workloads_drained: self.is_draining() && self.is_drained(node, PodType::Default),
            ..Default::default()
        };
        if let Some(planned) = self.planned().and_then(|m| m.nodes.get(node)) {
            status.drain_targets.clone_from(&planned.drain_targets);
            status.drain_message.clone_from(&planned.drain_message);
            status.left = self.left(planned);
            let ways_out = self.ways_out_of_blocker();
            (status.blockers, status.blocked_pods) =
                self.sources.blockers.of_node(node, self.last_type(), share, &ways_out);
        }
        status
    }

    fn left(&self, node: &NodeOutcome) -> Vec<PodsLeft> {
        let plan = &self.maintenance.spec.drain_plan;
        let entries = node.by_entry.iter().filter_map(|(at, count)| Some((plan.get(*at)?, *count)));
        let left = entries.map(|(entry, count)| PodsLeft {
            pod_type: entry.pod_type,
            priority: entry.pod_priority,
            pod_selector: entry.pod_selector.clone(),
            count: number(count),
        });
        left.collect()
    }
}

fn position(cursor: usize) -> i32 {
    i32::try_from(cursor).unwrap_or(i32::MAX)
}

/// How long, for each of its nodes, the status of an Idle maintenance is not checked: this limits its writes
/// to about 25 KB a second.
const REST_PER_NODE: Duration = Duration::from_millis(15);
/// The longest time for which the status of an Idle maintenance is not checked.
const MAX_REST: Duration = Duration::from_secs(60);

/// Maintenances, by UID, whose status need not be checked, and when it was last found to be right: those that
/// are over, and Idle ones for a while. A status of many nodes may be more than a megabyte, and the pods of a
/// cluster come and go all the time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled(HashMap<String, (Arc<NodeMaintenance>, Timestamp)>);

impl Settled {
    /// Forgets maintenances that are gone.
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let uids: HashSet<&str> = view.world.maintenances.iter().map(|m| m.metadata.uid.as_str()).collect();
        self.0.retain(|uid, _| uids.contains(uid.as_str()));
    }

    /// Records that the status of a maintenance is as it should be.
    pub(crate) fn note(&mut self, maintenance: &Arc<NodeMaintenance>, now: Timestamp) {
        let is_over =
            maintenance.spec.stage == NodeMaintenanceStage::Complete && !maintenance.has_finalizer();
        if is_over || maintenance.spec.stage == NodeMaintenanceStage::Idle {
            self.0.insert(maintenance.metadata.uid.clone(), (maintenance.clone(), now));
        }
    }

    /// Until when the status of a maintenance with `nodes` nodes need not be checked, unless the maintenance
    /// itself changes.
    pub(crate) fn rests_until(
        &self,
        maintenance: &Arc<NodeMaintenance>,
        nodes: usize,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let (seen, at) = self.0.get(&maintenance.metadata.uid)?;
        if !Arc::ptr_eq(seen, maintenance) {
            return None;
        }
        if maintenance.spec.stage == NodeMaintenanceStage::Complete {
            return Some(Timestamp::MAX);
        }
        let rest = REST_PER_NODE.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).min(MAX_REST);
        at.checked_add(rest).ok().filter(|until| now < *until)
    }
}
