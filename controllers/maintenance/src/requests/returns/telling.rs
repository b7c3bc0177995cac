//! What is told of a workload that puts pods back.

use drydock_api::node_maintenance::blocker::WORKLOAD_RETURNS;
use drydock_runtime::Pod;
use drydock_runtime::events::Severity;

use super::ReturningWorkload;
use crate::actions::{EventDraft, MaintenanceDecision};
use crate::world::WorldView;

/// Tells the maintenances that drain the pod, one that was put there again.
pub(super) fn tell(
    view: &WorldView<'_>,
    pod: &Pod,
    seen: &ReturningWorkload,
    decision: &mut MaintenanceDecision,
) {
    let message =
        format!("{} (node {}, pod {}/{})", message(pod, seen), pod.node_name, pod.namespace, pod.name);
    for maintenance in view.drains_of_type(&pod.node_name, pod.pod_type()) {
        decision.notes.push(EventDraft::of(
            maintenance,
            Severity::Warning,
            WORKLOAD_RETURNS,
            message.as_str(),
        ));
    }
}

/// Who puts pods there again, as in `ReplicaSet web has put a new pod on the node after its pod was evicted`.
pub(super) fn message(pod: &Pod, seen: &ReturningWorkload) -> String {
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
