//! Pods that do not leave, and why: from their requests, what their interceptors say, and the pods themselves.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::columns::BLOCKED_MESSAGE;
use drydock_api::eviction_request::interceptors::{IMPERATIVE_EVICTION, KUBELET};
use drydock_api::node_maintenance::{Blocker, MAX_BLOCKERS, PodReference, PodType};
use drydock_api::time::truncate_to_seconds;
use drydock_runtime::Pod;
use jiff::{SignedDuration, Timestamp};

use crate::actions::Decision;
use crate::failures::{Cause, Failures};
use crate::obstacles::why_held;
use crate::view::{View, pod_type};

/// How long after its grace period a terminating pod is shown as blocked.
const SLOW_TO_DIE: SignedDuration = SignedDuration::from_secs(10);
/// Longest message of a blocker.
const MAX_MESSAGE: usize = 256;

/// What blocks, with memory of since when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocked {
    /// By node, the longest blocked first.
    nodes: HashMap<String, Vec<Blocker>>,
    /// By UID of the pod.
    since: HashMap<String, (String, Timestamp)>,
    /// Pods of a DaemonSet that were targeted, by node and UID of the DaemonSet.
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
        let mut since = HashMap::new();
        self.nodes.clear();
        for (node, pods) in view.counted.iter().filter(|(node, _)| view.is_draining(node)) {
            let mut blockers = Vec::new();
            for pod in pods.iter().filter(|p| view.targeted.contains(p.uid.as_str())) {
                let Some(why) = self.why(view, pod, failures, decision) else { continue };
                let known = self.since.get(&pod.uid).filter(|(reason, _)| *reason == why.reason);
                let at = known.map_or_else(|| truncate_to_seconds(view.now), |(_, at)| *at);
                since.insert(pod.uid.clone(), (why.reason.to_owned(), at));
                blockers.push(blocker(pod, why, at));
            }
            blockers.sort_by(|a, b| (a.since_time, &a.pod).cmp(&(b.since_time, &b.pod)));
            self.nodes.insert((*node).to_owned(), blockers);
        }
        self.since = since;
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
        let request = view.world.request(pod);
        if let Some(message) = request.and_then(|request| why_held(request)) {
            return Some(Why { reason: "Finalizer", message });
        }
        let failed = request.and_then(|request| request.validation_failure());
        if let Some(message) = failed.map(|failed| failed.message.as_str()) {
            return Some(why_failed(Cause::Validation, message));
        }
        if let Some(failure) = failures.of(pod).filter(|failure| failure.is_shown(view.now)) {
            return Some(why_failed(failure.cause, &failure.message));
        }
        let request = request?;
        why_refused(request).or_else(|| why_silent(view, pod, request, decision))
    }

    /// A DaemonSet whose pod was targeted and which has put another one there.
    fn why_returned(&mut self, pod: &Pod) -> Option<Why> {
        let owner = pod.controller.as_ref().filter(|_| pod.is_daemon_set_pod())?;
        let seen = self.returns.entry((pod.node_name.clone(), owner.uid.clone())).or_default();
        if seen.len() < 2 {
            seen.insert(pod.uid.clone());
        }
        let message =
            format!("DaemonSet {} has put a new pod on the node after its pod was evicted", owner.name);
        (seen.len() > 1).then_some(Why { reason: "DaemonSetReturns", message })
    }
}

fn slow_to_die(view: &View<'_>, pod: &Pod, ends: Timestamp, decision: &mut Decision) -> Option<Why> {
    let late = ends.checked_add(SLOW_TO_DIE).unwrap_or(Timestamp::MAX);
    if view.now < late {
        decision.wake_at(late);
        return None;
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
        Cause::Validation => "Other",
    };
    Why { reason, message: message.to_owned() }
}

/// Imperative eviction is refused.
fn why_refused(request: &EvictionRequest) -> Option<Why> {
    let active = request.active_interceptor_status().filter(|a| a.name == IMPERATIVE_EVICTION)?;
    let cause = active.message.strip_prefix(BLOCKED_MESSAGE)?;
    let reason = if cause.contains("webhook") || cause.contains("AdmissionPolicy") {
        "AdmissionWebhook"
    } else if cause.contains("PodDisruptionBudget") || cause.contains("disruption budget") {
        "PodDisruptionBudget"
    } else {
        "Other"
    };
    Some(Why { reason, message: active.message.clone() })
}

/// Nobody reports progress.
fn why_silent(view: &View<'_>, pod: &Pod, request: &EvictionRequest, decision: &mut Decision) -> Option<Why> {
    let active = request.active_interceptor_status()?;
    let last = active.heartbeat_time.or(request.status.activation_time)?;
    let silent_at = last.checked_add(view.config.silent_after).unwrap_or(Timestamp::MAX);
    let passed_over = request.status.processed_interceptors.iter().any(|p| p == KUBELET);
    let no_agent = pod_type(pod) == PodType::Static
        && (passed_over || (active.name == KUBELET && active.start_time.is_none() && silent_at <= view.now));
    if no_agent {
        let message = format!("No node agent on {} responds to the eviction of static pods", pod.node_name);
        return Some(Why { reason: "NoNodeAgent", message });
    }
    if view.now < silent_at {
        decision.wake_at(silent_at);
        return None;
    }
    let said = if active.message.is_empty() { "it has not reported yet" } else { active.message.as_str() };
    Some(Why { reason: "Interceptor", message: format!("Waiting for {}: {said}", active.name) })
}

fn blocker(pod: &Pod, why: Why, since: Timestamp) -> Blocker {
    Blocker {
        pod: PodReference { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() },
        reason: why.reason.to_owned(),
        message: why.message.chars().take(MAX_MESSAGE).collect(),
        since_time: Some(since),
    }
}
