//! Pods that are put back on a node that is being drained: they tolerate that it is cordoned, and the
//! scheduler prefers the emptiest node; or they name the node themselves. Each of them is a new pod, so that
//! the workload is remembered instead.
//!
//! The writer of a pod chooses its owner reference: a workload is therefore identified by namespace and UID,
//! on one node. Strays are pods that were created after we first saw the node, and whose workload had no pods
//! there. They are identified by their namespace.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use drydock_api::reasons::WORKLOAD_RETURNS;
use drydock_runtime::Pod;
use drydock_runtime::events::Severity;
use drydock_runtime::queue::ExponentialBackoff;
use jiff::{SignedDuration, Timestamp};

use crate::actions::{EventDraft, MaintenanceDecision};
use crate::observed::PodLocation;
use crate::remembered::cutoff;
use crate::world::WorldView;

/// How long after a return the new pods of a workload are asked to leave, by the number of returns in a row.
const RETURN_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(10), max: Duration::from_secs(15 * 60) };
/// How long a workload is remembered that has no pods on the node; returns further apart than this are not in
/// a row.
const ABSENT_REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// Most workloads that are remembered without pods on their node; those that were seen last stay.
const MAX_ABSENT: usize = 10_000;

/// Pods that workloads have put back, by node that is being drained.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodReturns(HashMap<String, NodeReturns>);

/// The workloads with pods on one node.
#[derive(Clone, Debug)]
struct NodeReturns {
    /// When the node was first seen: older pods were not put back.
    since: Timestamp,
    /// By namespace and UID of the workload. The UID of strays is empty.
    known: HashMap<(String, String), ReturningWorkload>,
}

/// The key of strays, in place of a UID.
const STRAYS_KEY: &str = "";

/// A workload on a node, or the strays of a namespace.
#[derive(Clone, Debug)]
struct ReturningWorkload {
    /// Whether these are strays.
    are_strays: bool,
    /// UIDs of its pods there.
    pods: HashMap<String, ReturnedPod>,
    /// Whether a pod that was to leave has begun to.
    left: bool,
    /// How often in a row it put pods back after that. Pods that come while others are held back are held
    /// back with them, and do not count again.
    times: u32,
    /// Pods that come now are not asked to leave before this time.
    again: Timestamp,
    /// When it was last seen to have pods.
    last: Timestamp,
}

#[derive(Clone, Copy, Debug, Default)]
struct ReturnedPod {
    /// Whether the pod was to leave.
    targeted: bool,
    /// Until when it is not asked to leave, if it was put back after another pod had begun to leave.
    returned: Option<Timestamp>,
}

impl PodReturns {
    /// Takes in the pods on the nodes that are being drained, and publishes which workloads have put pods
    /// back. Returns where each pod is that was put back since the last step.
    pub(crate) fn update(
        &mut self,
        view: &WorldView<'_>,
        decision: &mut MaintenanceDecision,
    ) -> Vec<PodLocation> {
        let mut returned = Vec::new();
        // While a node is schedulable, pods may come there, and none is asked to leave.
        let is_closed = |node: &str| {
            view.is_draining(node) && view.world.nodes.get(node).is_some_and(|node| node.unschedulable)
        };
        self.0.retain(|node, _| is_closed(node));
        for node in view.counted.keys().filter(|node| is_closed(node)) {
            let Some(last) = view.last_type_on(node) else { continue };
            let pods = view.pods_up_to(node, last);
            let new = || NodeReturns { since: view.now, known: HashMap::new() };
            let on_node = self.0.entry((*node).to_owned()).or_insert_with(new);
            returned.extend(on_node.update(view, pods, decision));
        }
        self.forget_absent();
        returned
    }

    /// Until when a pod is not to be asked to leave, because its workload would put another one there.
    pub(crate) fn hold_back(&self, pod: &Pod, now: Timestamp) -> Option<Timestamp> {
        self.of(pod).map(|(_, again)| again).filter(|again| now < *again)
    }

    /// While a pod is held back: which workload has put it back, in words, and when the pod is asked to
    /// leave.
    pub(crate) fn held_back(&self, pod: &Pod, now: Timestamp) -> Option<(String, Timestamp)> {
        let again = self.hold_back(pod, now)?;
        Some((message(pod, self.of(pod)?.0), again))
    }

    /// The workload of a pod that was put back, or the strays to which it belongs, and when the pod is asked
    /// to leave. DaemonSets are left out: their interceptor delays deletions itself, and reports that.
    fn of(&self, pod: &Pod) -> Option<(&ReturningWorkload, Timestamp)> {
        let on_node = self.0.get(&pod.node_name)?;
        let returned = |uid: &str| {
            let seen = on_node.of(pod, uid)?;
            Some((seen, seen.pods.get(&pod.uid)?.returned?))
        };
        let owner = pod.controller.as_ref().filter(|_| !pod.is_daemon_set_pod());
        owner
            .and_then(|owner| returned(&owner.uid))
            .or_else(|| if on_node.has_come(pod) { returned(STRAYS_KEY) } else { None })
    }

    /// Whether workloads have put pods back on this node, or, according to the stored status, on a node of a
    /// maintenance that drains it.
    pub(crate) fn may_come_back(&self, view: &WorldView<'_>, node: &str) -> bool {
        let has_returned = |on_node: &NodeReturns| on_node.known.values().any(|seen| seen.times > 0);
        self.0.get(node).is_some_and(has_returned)
            || view.drains_of(node).any(|maintenance| maintenance.status.outcomes.returned > 0)
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.values().map(|on_node| on_node.known.len()).sum()
    }

    fn forget_absent(&mut self) {
        let absent =
            self.0.values().flat_map(|on_node| on_node.known.values()).filter(|seen| seen.pods.is_empty());
        if let Some(oldest) = cutoff(absent.map(|seen| seen.last).collect(), MAX_ABSENT) {
            let stays = |seen: &ReturningWorkload| !seen.pods.is_empty() || seen.last > oldest;
            self.0.values_mut().for_each(|on_node| on_node.known.retain(|_, seen| stays(seen)));
        }
    }
}

impl NodeReturns {
    /// Takes in the pods of the node; returns where those are that were put back.
    fn update(
        &mut self,
        view: &WorldView<'_>,
        pods: &[&Arc<Pod>],
        decision: &mut MaintenanceDecision,
    ) -> Vec<PodLocation> {
        let mut present = self.by_workload(pods);
        let mut returned = Vec::new();
        for ((namespace, uid), seen) in &mut self.known {
            let pods = present.remove(&(namespace.as_str(), uid.as_str())).unwrap_or_default();
            let (again, new) = (seen.again, seen.update(view, self.since, &pods));
            if let Some(pod) = new.first().filter(|_| again != seen.again) {
                // The DaemonSet interceptor reports its own count, and ours would differ.
                if seen.are_strays || !pod.is_daemon_set_pod() {
                    publish(view, pod, seen, decision);
                }
            }
            returned.extend(new.into_iter().map(|pod| PodLocation::of(pod)));
        }
        let new = present.into_iter().map(|((namespace, uid), pods)| {
            (
                (namespace.to_owned(), uid.to_owned()),
                ReturningWorkload::new(view, self.since, uid == STRAYS_KEY, &pods),
            )
        });
        let new: Vec<((String, String), ReturningWorkload)> = new.collect();
        self.known.retain(|_, seen| view.now.duration_since(seen.last) < ABSENT_REMEMBERED_FOR);
        self.known.extend(new);
        returned
    }

    /// The pods of each workload, and strays by namespace. The owner of a mirror pod is its node.
    fn by_workload<'p>(&self, pods: &[&'p Arc<Pod>]) -> HashMap<(&'p str, &'p str), Vec<&'p Arc<Pod>>> {
        let mut present: HashMap<(&str, &str), Vec<&Arc<Pod>>> = HashMap::new();
        for pod in pods.iter().filter(|pod| !pod.is_mirror()) {
            if self.is_stray(pod) {
                present.entry((&pod.namespace, STRAYS_KEY)).or_default().push(pod);
            }
            if let Some(owner) = &pod.controller {
                present.entry((&pod.namespace, &owner.uid)).or_default().push(pod);
            }
        }
        present
    }

    /// Whether a pod is among the strays already, or has come later and its workload was not there.
    fn is_stray(&self, pod: &Pod) -> bool {
        let is_among = || self.of(pod, STRAYS_KEY).is_some_and(|strays| strays.pods.contains_key(&pod.uid));
        let is_explained = || pod.controller.as_ref().is_some_and(|owner| self.of(pod, &owner.uid).is_some());
        self.has_come(pod) && (!is_explained() || is_among())
    }

    /// Whether a pod was created after the node was first seen.
    fn has_come(&self, pod: &Pod) -> bool {
        is_made_after(self.since, pod)
    }

    /// The workload of this UID in the namespace of a pod.
    fn of(&self, pod: &Pod, uid: &str) -> Option<&ReturningWorkload> {
        self.known.get(&(pod.namespace.clone(), uid.to_owned()))
    }
}

impl ReturningWorkload {
    /// A workload that is seen for the first time, whose pods were there before, or the first strays.
    fn new(view: &WorldView<'_>, since: Timestamp, are_strays: bool, pods: &[&Arc<Pod>]) -> Self {
        let (again, last) = (Timestamp::MIN, view.now);
        let mut seen = Self { are_strays, pods: HashMap::new(), left: false, times: 0, again, last };
        seen.update(view, since, pods);
        seen
    }

    /// Takes in the pods that are there; returns those that were put back after another one had begun to
    /// leave. A pod that is older than `since` was not put back, however late the cache shows it.
    fn update<'p>(
        &mut self,
        view: &WorldView<'_>,
        since: Timestamp,
        pods: &[&'p Arc<Pod>],
    ) -> Vec<&'p Arc<Pod>> {
        let staying: HashSet<&str> =
            pods.iter().filter(|pod| !pod.is_terminating()).map(|pod| pod.uid.as_str()).collect();
        self.left |= self.pods.iter().any(|(uid, state)| state.targeted && !staying.contains(uid.as_str()));
        let is_new = |pod: &&&Arc<Pod>| {
            let is_unknown = staying.contains(pod.uid.as_str()) && !self.pods.contains_key(&pod.uid);
            is_unknown && is_made_after(since, pod)
        };
        let returned: Vec<_> = pods.iter().filter(is_new).filter(|_| self.left).copied().collect();
        if !returned.is_empty() && self.again <= view.now {
            let in_a_row = self.times > 0 && view.now.duration_since(self.again) <= ABSENT_REMEMBERED_FOR;
            self.times = if in_a_row { self.times.saturating_add(1) } else { 1 };
            self.again = view.now.checked_add(RETURN_BACKOFF.delay(self.times - 1)).unwrap_or(Timestamp::MAX);
        }
        let present: HashSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
        self.pods.retain(|uid, _| present.contains(uid.as_str()));
        for pod in pods {
            let targeted = view.planned.targeted.contains(pod.uid.as_str());
            match self.pods.get_mut(&pod.uid) {
                Some(state) => state.targeted |= targeted,
                None => {
                    let is_returned = returned.iter().any(|new| new.uid == pod.uid);
                    let returned = is_returned.then_some(self.again);
                    self.pods.insert(pod.uid.clone(), ReturnedPod { targeted, returned });
                }
            }
        }
        if !pods.is_empty() {
            self.last = view.now;
        }
        returned
    }
}

fn is_made_after(since: Timestamp, pod: &Pod) -> bool {
    pod.creation_timestamp.is_some_and(|made| since < made)
}

/// Publishes that a pod was put back, as events about the maintenances that drain it.
fn publish(view: &WorldView<'_>, pod: &Pod, seen: &ReturningWorkload, decision: &mut MaintenanceDecision) {
    let message =
        format!("{} (node {}, pod {}/{})", message(pod, seen), pod.node_name, pod.namespace, pod.name);
    for maintenance in view.drains_of_type(&pod.node_name, pod.pod_type()) {
        decision.events.push(EventDraft::of(
            maintenance,
            Severity::Warning,
            WORKLOAD_RETURNS,
            message.as_str(),
        ));
    }
}

/// Says which workload puts pods back, as in `ReplicaSet web has put a new pod on the node after its pod was
/// evicted`.
fn message(pod: &Pod, seen: &ReturningWorkload) -> String {
    let times = if seen.times == 1 { String::new() } else { format!(" {} times in a row", seen.times) };
    if seen.are_strays {
        let of = pod.controller.as_ref().map_or_else(String::new, |_| format!(" (of {})", name_of(pod)));
        let Pod { namespace, name, .. } = pod;
        return format!(
            "Pods are put on the node again and again in namespace {namespace}, {name} among them{of}{times}, by no workload that \
             was there before"
        );
    }
    format!("{} has put a new pod on the node{times} after its pod was evicted", name_of(pod))
}

/// Kind and name of a pod's workload. A ReplicaSet whose name ends as the Deployment controller makes it names the
/// Deployment too.
fn name_of(pod: &Pod) -> String {
    let Some(owner) = &pod.controller else { return String::new() };
    let name = format!("{} {}", owner.kind, owner.name);
    let hash = pod.labels.get("pod-template-hash").filter(|_| owner.kind == "ReplicaSet");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    deployment.map_or(name.clone(), |deployment| format!("{name} (Deployment {deployment})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_from_ten_seconds_to_a_quarter_of_an_hour() {
        let seconds = [0, 1, 2, 3, 4, 5, 6, 7, u32::MAX].map(|before| RETURN_BACKOFF.delay(before).as_secs());
        assert_eq!(seconds, [10, 20, 40, 80, 160, 320, 640, 900, 900]);
    }
}
