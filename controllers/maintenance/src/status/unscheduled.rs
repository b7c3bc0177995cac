//! Evicted pods that find no other node: the pods with which their controllers replace them are
//! unschedulable.

use std::collections::{BTreeMap, HashMap};

use drydock_api::metav1::{Condition, is_condition_true};
use drydock_api::node_maintenance::{EVICTED_PODS_UNSCHEDULABLE, NodeMaintenance, NodeMaintenanceStage};
use drydock_api::text::{counted, cut, cut_at_word};
use drydock_api::time::truncate_to_seconds;
use drydock_runtime::Pod;
use drydock_runtime::events::Severity;
use drydock_runtime::events::reasons::PODS_UNSCHEDULABLE;
use jiff::{SignedDuration, Timestamp};

use super::COMPLETED;
use crate::actions::{EventDraft, MaintenanceDecision};
use crate::remembered::{SteadyText, cutoff};
use crate::world::WorldView;

/// How long the scheduler's words stay while the counts are the same: each change of them writes the whole status.
const WORDS_STAY: SignedDuration = SignedDuration::from_mins(5);
/// How long a pod may be unschedulable before the condition says so: a node may be on its way.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_secs(10);
/// Most controllers that one message names.
const MAX_NAMED: usize = 5;
/// Most characters of the scheduler's words that a message shows for one controller.
const LONGEST_WHY: usize = 256;
/// Most characters of a controller's kind, and of its name, that a message shows.
const LONGEST_NAME: usize = 253;
/// How long a controller is remembered that has no pods that are to leave or are unschedulable.
const ABSENT_REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The message in stage Complete.
const NOT_FOLLOWED: &str = "The maintenance is complete: whether the pods that replace the evicted ones are scheduled is no longer followed";
/// Most controllers of a maintenance that are remembered without such pods; those that were seen last stay.
const MAX_ABSENT: usize = 10_000;

/// Namespace and UID of a controller.
type ControllerId = (String, String);

/// The controllers whose pods each maintenance evicts, by UID of the maintenance.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictedControllers(HashMap<String, OfMaintenance>);

#[derive(Clone, Debug, Default)]
struct OfMaintenance {
    controllers: HashMap<ControllerId, EvictedController>,
    last_message: Option<LastMessage>,
}

/// A controller whose pods are evicted.
#[derive(Clone, Debug)]
struct EvictedController {
    since: Timestamp,
    /// When it last had pods that were to leave or were unschedulable.
    last: Timestamp,
}

/// The last message; its key is the number of pods of each controller. It keeps the scheduler's words of that
/// time, because the scheduler counts the nodes again in each attempt.
type LastMessage = SteadyText<BTreeMap<ControllerId, usize>, String>;

/// Unschedulable pods of one controller.
#[derive(Debug)]
struct Unscheduled<'a> {
    count: usize,
    /// One of them.
    example: &'a Pod,
}

impl Unscheduled<'_> {
    /// How many pods of which controller, and why in the scheduler's words.
    fn named(&self) -> (String, String) {
        let Self { count, example } = self;
        let (kind, name) =
            example.controller.as_ref().map_or(("", ""), |o| (o.kind.as_str(), o.name.as_str()));
        let (kind, name) = (cut(kind, LONGEST_NAME), cut(name, LONGEST_NAME));
        let why = cut_at_word(example.unschedulable.as_deref().unwrap_or_default(), LONGEST_WHY);
        (format!("{count} of {kind} {}/{name}", example.namespace), why)
    }
}

impl EvictedControllers {
    /// How many controllers are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|of| of.controllers.len()).sum()
    }

    /// Takes in the controllers whose pods are to leave.
    pub(crate) fn update(&mut self, view: &WorldView<'_>) {
        let draining = |m: &&std::sync::Arc<NodeMaintenance>| m.spec.stage == NodeMaintenanceStage::Drain;
        let mut before = std::mem::take(&mut self.0);
        for (i, maintenance) in view.world.maintenances.iter().enumerate().filter(|(_, m)| draining(m)) {
            let uid = &maintenance.metadata.uid;
            let known = before.remove(uid);
            let of = self.0.entry(uid.clone()).or_default();
            *of = known.unwrap_or_else(|| recall(view, maintenance));
            let pods = view.nodes_of(i).iter();
            let pods = pods.flat_map(|node| view.pods_up_to(&node.name, maintenance.spec.last_pod_type));
            let leaving = pods.filter(|pod| view.planned.targeted.contains(pod.uid.as_str()));
            for controller in leaving.filter_map(|pod| controller(pod)) {
                let evicted = of.controllers.entry(controller);
                evicted.or_insert_with(|| EvictedController::since(truncate_to_seconds(view.now))).last =
                    view.now;
            }
            for controller in view.world.unscheduled.iter().filter_map(|pod| controller(pod)) {
                of.controllers.get_mut(&controller).into_iter().for_each(|evicted| evicted.last = view.now);
            }
            of.forget_absent(view.now);
        }
    }

    /// The condition about such pods: absent until there was one; False in Complete.
    pub(crate) fn condition(
        &mut self,
        view: &WorldView<'_>,
        maintenance: &NodeMaintenance,
        decision: &mut MaintenanceDecision,
    ) -> Option<Condition> {
        let was = maintenance.status.conditions.iter().any(|c| c.type_ == EVICTED_PODS_UNSCHEDULABLE);
        let (is, reason, message) = match self.message(view, &maintenance.metadata.uid, decision) {
            Some(message) => (true, "NoNodeFits", message),
            None if !was => return None,
            None if maintenance.spec.stage == NodeMaintenanceStage::Complete => {
                (false, COMPLETED, NOT_FOLLOWED.to_owned())
            }
            None => {
                (false, "AllPodsScheduled", "The pods that replace the evicted ones are scheduled".to_owned())
            }
        };
        Some(Condition {
            type_: EVICTED_PODS_UNSCHEDULABLE.to_owned(),
            status: if is { "True" } else { "False" }.to_owned(),
            observed_generation: maintenance.metadata.generation,
            last_transition_time: Some(truncate_to_seconds(view.now)),
            reason: reason.to_owned(),
            message,
        })
    }

    /// The message about the pods of a maintenance in Drain that find no node, if there are any.
    fn message(
        &mut self,
        view: &WorldView<'_>,
        uid: &str,
        decision: &mut MaintenanceDecision,
    ) -> Option<String> {
        let OfMaintenance { controllers, last_message } = self.0.get_mut(uid)?;
        let mut found: BTreeMap<ControllerId, Unscheduled<'_>> = BTreeMap::new();
        for pod in &view.world.unscheduled {
            let Some(controller) = controller(pod).filter(|c| is_replacement(pod, controllers.get(c))) else {
                continue;
            };
            let counts_from = pod.creation_timestamp.and_then(|made| made.checked_add(SETTLES_WITHIN).ok());
            if let Some(at) = counts_from.filter(|at| view.now < *at) {
                decision.wake_at(at);
                continue;
            }
            let of_controller = found.entry(controller).or_insert(Unscheduled { count: 0, example: pod });
            of_controller.count += 1;
        }
        if found.is_empty() {
            return None;
        }
        let counts = found.iter().map(|(controller, of)| (controller.clone(), of.count)).collect();
        let before = last_message.as_ref();
        let new = SteadyText::after(before, counts, message(&found), WORDS_STAY, view.now, decision);
        Some(last_message.insert(new).text.clone())
    }
}

impl OfMaintenance {
    fn forget_absent(&mut self, now: Timestamp) {
        self.controllers.retain(|_, evicted| now.duration_since(evicted.last) < ABSENT_REMEMBERED_FOR);
        let absent = self.controllers.values().map(|evicted| evicted.last).filter(|last| *last != now);
        if let Some(oldest) = cutoff(absent.collect(), MAX_ABSENT) {
            self.controllers.retain(|_, evicted| evicted.last > oldest);
        }
    }
}

impl EvictedController {
    fn since(since: Timestamp) -> Self {
        Self { since, last: since }
    }
}

/// The event that pods of a maintenance turn out to be unschedulable.
pub(crate) fn note(maintenance: &NodeMaintenance, condition: &Condition) -> Option<EventDraft> {
    let was = is_condition_true(&maintenance.status.conditions, EVICTED_PODS_UNSCHEDULABLE);
    let message = condition.message.as_str();
    (condition.is_true() && !was)
        .then(|| EventDraft::of(maintenance, Severity::Warning, PODS_UNSCHEDULABLE, message))
}

/// Restores the controllers after a restart: if the condition is True, all controllers with unschedulable
/// pods, because the previous leader may have evicted their pods.
fn recall(view: &WorldView<'_>, maintenance: &NodeMaintenance) -> OfMaintenance {
    let drain = maintenance.status.started(NodeMaintenanceStage::Drain);
    let was = is_condition_true(&maintenance.status.conditions, EVICTED_PODS_UNSCHEDULABLE);
    let Some(since) = drain.filter(|_| was) else { return OfMaintenance::default() };
    let unscheduled = view.world.unscheduled.iter();
    let controllers =
        unscheduled.filter_map(|pod| Some((controller(pod)?, EvictedController::since(since)))).collect();
    OfMaintenance { controllers, last_message: None }
}

fn controller(pod: &Pod) -> Option<ControllerId> {
    pod.controller.as_ref().map(|owner| (pod.namespace.clone(), owner.uid.clone()))
}

/// Whether a pod was created after the eviction of its controller's pods began.
fn is_replacement(pod: &Pod, evicted: Option<&EvictedController>) -> bool {
    evicted.is_some_and(|evicted| pod.creation_timestamp.is_none_or(|made| made >= evicted.since))
}

/// The message. Controllers whose pods are unschedulable for the same reason stand together.
fn message(found: &BTreeMap<ControllerId, Unscheduled<'_>>) -> String {
    let pods: usize = found.values().map(|one| one.count).sum();
    let mut by_why: Vec<(String, Vec<String>)> = Vec::new();
    for unscheduled in found.values().take(MAX_NAMED) {
        let (who, why) = unscheduled.named();
        match by_why.iter_mut().find(|(known, _)| *known == why) {
            Some((_, whose)) => whose.push(who),
            None => by_why.push((why, vec![who])),
        }
    }
    let groups: Vec<String> =
        by_why.into_iter().map(|(why, whose)| format!("{} ({why})", whose.join(" and "))).collect();
    let rest = match found.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!("; and those of {}", counted(more, "more controller", "more controllers")),
    };
    let find = counted(pods, "pod that replaces an evicted one finds", "pods that replace evicted ones find");
    format!("{find} no node: {}{rest}", groups.join("; "))
}
