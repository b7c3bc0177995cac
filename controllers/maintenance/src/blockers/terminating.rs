//! Pods that terminate and do not end.

use drydock_api::reasons::{FINALIZER, NODE_UNREACHABLE, TERMINATING};
use drydock_api::time::format_seconds;
use drydock_runtime::Pod;
use jiff::{SignedDuration, Timestamp};

use super::cause::BlockCause;
use crate::actions::MaintenanceDecision;
use crate::world::WorldView;

/// How long a pod may terminate within a longer grace period before it is shown as blocked.
const LONG_GRACE: SignedDuration = SignedDuration::from_mins(5);

/// The end of a message about a node that is not ready, whose kubelet may be unable to stop the pod; empty if
/// the node is ready.
fn not_ready(view: &WorldView<'_>, node: &str) -> String {
    let ready = view.world.nodes.get(node).and_then(|node| node.condition("Ready"));
    ready.filter(|ready| ready.status != "True").map_or_else(String::new, |ready| {
        format!("; node {node} is not ready ({}: {})", ready.reason, ready.message)
    })
}

/// A terminating pod on a node whose kubelet does not answer: it stays, and the drain waits.
pub(super) fn unreachable(view: &WorldView<'_>, pod: &Pod) -> Option<BlockCause> {
    let node = &pod.node_name;
    // A kubelet that says itself that the node is not ready still stops its pods.
    let ready = view.world.nodes.get(node)?.condition("Ready").filter(|ready| ready.status == "Unknown")?;
    let message = format!(
        "The kubelet of node {node} does not answer (Ready=Unknown: {}), so that the pod cannot finish terminating",
        ready.reason
    );
    let taint =
        format!("kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute");
    Some(BlockCause::new(NODE_UNREACHABLE, message).with_command("Once the node is known to be off", taint))
}

/// A pod that takes longer to terminate than its grace period, or has a very long one.
pub(super) fn overdue_termination(
    view: &WorldView<'_>,
    pod: &Pod,
    ends: Timestamp,
    decision: &mut MaintenanceDecision,
) -> Option<BlockCause> {
    let grace = SignedDuration::from_secs(pod.deletion_grace_period_seconds.unwrap_or_default().max(0));
    let over = pod.overdue_at().unwrap_or(Timestamp::MAX);
    let long = ends.checked_sub(grace).and_then(|begun| begun.checked_add(LONG_GRACE)).unwrap_or(over);
    if view.now < over.min(long) {
        decision.wake_at(over.min(long));
        return None;
    }
    let ill = not_ready(view, &pod.node_name);
    if view.now < over {
        decision.wake_at(over);
        let message =
            format!("The pod is terminating, and its grace period ends at {}{ill}", format_seconds(ends));
        return Some(BlockCause::new(TERMINATING, message));
    }
    let Some(first) = pod.finalizers.first() else {
        let message = format!("The pod is still terminating after its grace period{ill}");
        return Some(BlockCause::new(TERMINATING, message));
    };
    let message = format!("The pod is kept by its finalizers: {}{ill}", pod.finalizers.join(", "));
    Some(BlockCause::new(FINALIZER, message).of(first))
}
