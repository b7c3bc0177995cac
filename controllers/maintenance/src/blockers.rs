//! Pods that do not leave, and why: from their requests, what their interceptors say, and the pods themselves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::eviction_request::interceptors::{IMPERATIVE_EVICTION, KUBELET};
use drydock_api::eviction_request::refusal::{self, RefusedBy};
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_api::node_maintenance::{Blocker, MAX_BLOCKERS, PodReference, PodType};
use drydock_api::time::{format_seconds, truncate_to_seconds};
use drydock_runtime::Pod;
use jiff::{SignedDuration, Timestamp};

use crate::actions::Decision;
use crate::failures::{Cause, Failures, is_astray};
use crate::obstacles::{why_astray, why_held};
use crate::own;
use crate::view::{View, pod_type};

/// How long after its grace period a terminating pod is shown as blocked.
const SLOW_TO_DIE: SignedDuration = SignedDuration::from_secs(10);
/// How long a pod that nothing else keeps may be there before it is shown as blocked, whatever its interceptors report.
const LONG: SignedDuration = SignedDuration::from_hours(1);
/// How long a pod may be terminating, before its grace period is over, until it is shown as blocked.
const LONG_GRACE: SignedDuration = SignedDuration::from_mins(5);
/// Longest message of a blocker.
const MAX_MESSAGE: usize = 256;

/// What blocks, with memory of since when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocked {
    /// By node, the longest blocked first.
    nodes: HashMap<String, Vec<Blocker>>,
    /// By UID of the pod.
    since: HashMap<String, (String, Timestamp)>,
    /// Since when nothing explains why pods are there, by UID.
    unexplained: HashMap<String, Timestamp>,
    /// Pods of a DaemonSet that were targeted, by node, and namespace and UID of the DaemonSet.
    returns: HashMap<(String, String), HashSet<String>>,
}

/// Why a pod does not leave.
struct Why {
    reason: &'static str,
    message: String,
}

impl Blocked {
    /// Works out what blocks at this moment.
    pub(crate) fn look(&mut self, view: &View<'_>, failures: &Failures, decision: &mut Decision) {
        self.recall(view);
        self.returns.retain(|(node, _), _| view.is_draining(node));
        let (mut since, mut silent) = (HashMap::new(), HashMap::new());
        self.nodes.clear();
        for (node, pods) in view.counted.iter().filter(|(node, _)| view.is_draining(node)) {
            let mut blockers = Vec::new();
            for pod in pods.iter().filter(|p| view.targeted.contains(p.uid.as_str())) {
                let why = self.why(view, pod, failures, decision).or_else(|| {
                    let since = self.unexplained_since(view, pod);
                    silent.insert(pod.uid.clone(), since);
                    why_at_all(view, pod, since, decision)
                });
                let Some(why) = why else { continue };
                let known = self.since.get(&pod.uid).filter(|(reason, _)| *reason == why.reason);
                let at = known.map_or_else(|| truncate_to_seconds(view.now), |(_, at)| *at);
                since.insert(pod.uid.clone(), (why.reason.to_owned(), at));
                blockers.push(blocker(pod, why, at));
            }
            blockers.sort_by(|a, b| (a.since_time, &a.pod).cmp(&(b.since_time, &b.pod)));
            self.nodes.insert((*node).to_owned(), blockers);
        }
        (self.since, self.unexplained) = (since, silent);
    }

    /// The longest blocked pods of a node, at most ten and at most a share, and how many there are.
    pub(crate) fn of_node(&self, node: &str, share: usize) -> (Vec<Blocker>, i32) {
        let all = self.nodes.get(node).map(Vec::as_slice).unwrap_or_default();
        let shown = all.iter().take(MAX_BLOCKERS.min(share)).cloned().collect();
        (shown, i32::try_from(all.len()).unwrap_or(i32::MAX))
    }

    /// How many pods are blocked in all.
    pub(crate) fn count(&self) -> usize {
        self.nodes.values().map(Vec::len).sum()
    }

    /// After a restart: since when, from what the statuses show.
    fn recall(&mut self, view: &View<'_>) {
        if !self.nodes.is_empty() {
            return;
        }
        let statuses = view.world.maintenances.iter().flat_map(|m| &m.status.node_statuses);
        for blocker in statuses.flat_map(|s| &s.blockers) {
            if let Some(at) = blocker.since_time {
                self.since.entry(blocker.pod.uid.clone()).or_insert((blocker.reason.clone(), at));
            }
        }
    }

    /// Since when a pod that is asked to leave is there without a reason. After a restart this begins anew, but for the turn
    /// of an interceptor.
    fn unexplained_since(&self, view: &View<'_>, pod: &Pod) -> Timestamp {
        if !view.is_cordoned_off(&pod.node_name) {
            return view.now;
        }
        let turn = || view.world.request(pod).and_then(|request| request.status.activation_time);
        let known = self.unexplained.get(&pod.uid).copied().or_else(turn);
        known.map_or(view.now, |at| truncate_to_seconds(at).min(view.now))
    }

    fn why(
        &mut self,
        view: &View<'_>,
        pod: &Arc<Pod>,
        failures: &Failures,
        decision: &mut Decision,
    ) -> Option<Why> {
        if let Some(why) = self.why_returned(pod) {
            return Some(why);
        }
        if let Some(ends) = pod.deletion_timestamp {
            return slow_to_die(view, pod, ends, decision);
        }
        if view.stays(&pod.uid) {
            return Some(Why { reason: "NoSchedulableNode", message: own::WHY.to_owned() });
        }
        let request = view.world.request(pod);
        if let Some(message) = request.and_then(|request| why_held(request)) {
            return Some(Why { reason: "Finalizer", message });
        }
        if let Some(request) = request.filter(|request| is_astray(request, pod)) {
            let later = failures.of(pod).map(|failure| failure.again).filter(|at| view.now < *at);
            return Some(Why { reason: "WrongTarget", message: why_astray(request, later) });
        }
        let failed = request.and_then(|request| request.validation_failure());
        if let Some(message) = failed.map(|failed| failed.message.as_str()) {
            return Some(why_failed(Cause::Validation, message));
        }
        if let Some(failure) = failures.of(pod).filter(|failure| failure.is_shown(view.now)) {
            return Some(why_failed(failure.cause, &failure.message));
        }
        let request = request?;
        why_refused(request)
            .or_else(|| no_agent(view, pod, request))
            .or_else(|| why_slow(view, request, decision))
    }

    /// A DaemonSet whose pod was targeted and which has put another one there.
    fn why_returned(&mut self, pod: &Pod) -> Option<Why> {
        let (daemon_set, owner) = pod.daemon_set().zip(pod.controller.as_ref())?;
        let seen = self.returns.entry((pod.node_name.clone(), daemon_set)).or_default();
        if seen.len() < 2 {
            seen.insert(pod.uid.clone());
        }
        let message =
            format!("DaemonSet {} has put a new pod on the node after its pod was evicted", owner.name);
        (seen.len() > 1).then_some(Why { reason: "DaemonSetReturns", message })
    }
}

fn slow_to_die(view: &View<'_>, pod: &Pod, ends: Timestamp, decision: &mut Decision) -> Option<Why> {
    let grace = SignedDuration::from_secs(pod.deletion_grace_period_seconds.unwrap_or_default().max(0));
    let over = ends.checked_add(SLOW_TO_DIE).unwrap_or(Timestamp::MAX);
    let long = ends.checked_sub(grace).and_then(|begun| begun.checked_add(LONG_GRACE)).unwrap_or(over);
    if view.now < over.min(long) {
        decision.wake_at(over.min(long));
        return None;
    }
    if view.now < over {
        decision.wake_at(over);
        let message =
            format!("The pod is terminating, and its grace period ends at {}", format_seconds(ends));
        return Some(Why { reason: "Terminating", message });
    }
    if pod.finalizers.is_empty() {
        let message = "The pod is still terminating after its grace period".to_owned();
        return Some(Why { reason: "Terminating", message });
    }
    let message = format!("The pod is kept by its finalizers: {}", pod.finalizers.join(", "));
    Some(Why { reason: "Finalizer", message })
}

/// The last request came to nothing.
fn why_failed(cause: Cause, message: &str) -> Why {
    let reason = match cause {
        Cause::Withdrawn | Cause::Deleted => "RequestWithdrawn",
        Cause::Validation if message.contains("Workload") => "WorkloadPod",
        Cause::Validation | Cause::Evicted => "Other",
        Cause::Astray => "WrongTarget",
    };
    Why { reason, message: message.to_owned() }
}

/// Imperative eviction is refused.
fn why_refused(request: &EvictionRequest) -> Option<Why> {
    let active = request.active_interceptor_status().filter(|a| a.name == IMPERATIVE_EVICTION)?;
    let reason = match refusal::read(&active.message)?.by {
        Some(RefusedBy::Admission) => "AdmissionWebhook",
        Some(RefusedBy::Budget) => "PodDisruptionBudget",
        Some(RefusedBy::ApiServer) | None => "Other",
    };
    Some(Why { reason, message: active.message.clone() })
}

/// A static pod whose node has no agent.
fn no_agent(view: &View<'_>, pod: &Pod, request: &EvictionRequest) -> Option<Why> {
    let active = request.active_interceptor_status()?;
    let passed_over = request.status.processed_interceptors.iter().any(|p| p == KUBELET);
    let is_silent = || {
        let begun = active.name == KUBELET && active.start_time.is_none();
        begun && silent_at(view, request, active).is_some_and(|at| at <= view.now)
    };
    if pod_type(pod) != PodType::Static || !(passed_over || is_silent()) {
        return None;
    }
    let message = format!("No node agent on {} responds to the eviction of static pods", pod.node_name);
    Some(Why { reason: "NoNodeAgent", message })
}

/// An interceptor that reports no progress, or is later than it expected.
fn why_slow(view: &View<'_>, request: &EvictionRequest, decision: &mut Decision) -> Option<Why> {
    let active = request.active_interceptor_status()?;
    let expected = active.expected_finish_time;
    let first = [silent_at(view, request, active), expected].into_iter().flatten().min()?;
    if view.now < first {
        decision.wake_at(first);
        return None;
    }
    let (late, later) = (expected.filter(|at| *at <= view.now), expected.filter(|at| view.now < *at));
    later.into_iter().for_each(|at| decision.wake_at(at));
    let late = late.map(|at| format!(", which expected to finish at {}", format_seconds(at)));
    Some(waiting_for(active, &late.unwrap_or_default()))
}

/// A pod that nothing explains and that is there for so long that people should look: its request may be made anew again and
/// again, or reported on for ever.
fn why_at_all(view: &View<'_>, pod: &Pod, since: Timestamp, decision: &mut Decision) -> Option<Why> {
    // Terminating pods are explained when they are late.
    if pod.is_terminating() {
        return None;
    }
    let request = view.world.request(pod);
    let active = request.and_then(|request| request.active_interceptor_status());
    let silent_after = SignedDuration::try_from(view.config.silent_after).unwrap_or(LONG);
    let late =
        since.checked_add(if active.is_some() { LONG } else { silent_after }).unwrap_or(Timestamp::MAX);
    if view.now < late {
        decision.wake_at(late);
        return None;
    }
    let since = format_seconds(since);
    let what = match (active, request) {
        (Some(active), _) => return Some(waiting_for(active, &format!(" since {since}"))),
        (None, Some(_)) => "The pod's EvictionRequest has no active interceptor",
        (None, None) => "The pod has no EvictionRequest",
    };
    Some(Why { reason: "Other", message: format!("{what}; the pod has been asked to leave since {since}") })
}

fn waiting_for(active: &InterceptorStatus, how: &str) -> Why {
    let said = if active.message.is_empty() { "it has not reported yet" } else { active.message.as_str() };
    Why { reason: "Interceptor", message: format!("Waiting for {}{how}: {said}", active.name) }
}

/// When an interceptor that reports nothing more is shown.
fn silent_at(view: &View<'_>, request: &EvictionRequest, active: &InterceptorStatus) -> Option<Timestamp> {
    let last = active.heartbeat_time.or(request.status.activation_time)?;
    Some(last.checked_add(view.config.silent_after).unwrap_or(Timestamp::MAX))
}

fn blocker(pod: &Pod, why: Why, since: Timestamp) -> Blocker {
    Blocker {
        pod: PodReference { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() },
        reason: why.reason.to_owned(),
        message: why.message.chars().take(MAX_MESSAGE).collect(),
        since_time: Some(since),
    }
}
