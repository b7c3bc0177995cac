//! Decides whether a node needs the taint, and makes the patch that adds or removes it. Pure.

use std::sync::Arc;

use drydock_api::node_maintenance::PodType;
use drydock_runtime::cache::Taint;
use drydock_runtime::{Node, ObjectChange, Pod};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{EFFECT, TAINT};
use crate::daemonset::deletions::Deletions;
use crate::daemonset::targets::NodeTargets;

/// Whether the taint stands, as the host's controllers see it.
pub(crate) fn stands(node: &Node) -> bool {
    node.taints.iter().any(|t| t.key == TAINT && t.effect == EFFECT)
}

/// Whether the taint is to stand on a node.
///
/// It keeps away every DaemonSet that does not tolerate it, whatever its priority, and one whose turn has not come may
/// have to put its pod back (it crashed, or is rolled out). So the taint comes when a pod that it keeps away is to leave,
/// and the drain targets cover all others on the node that it keeps away. Pods that tolerate it play no part.
///
/// Until then a pod that is deleted comes back, its tier does not end, and the higher tiers are never reached. Where one has
/// come back, the taint therefore comes before its time: the drain goes on, and the higher DaemonSets do not get their
/// pods back on this node until it ends. Once it stands it stays: what it keeps away does not show any more.
pub(super) fn is_wanted(
    node: &Node,
    pods: &[Arc<Pod>],
    on_node: &NodeTargets,
    deletions: &Deletions,
    now: Timestamp,
) -> bool {
    if on_node.is_empty() {
        return false;
    }
    let kept_away = pods.iter().filter(|pod| is_of_daemon_set(pod) && !pod.tolerates_drain_taint);
    let (leaving, staying): (Vec<_>, Vec<_>) = kept_away.partition(|pod| on_node.covers(pod));
    let comes_back = || leaving.iter().any(|pod| deletions.has_returned(pod, now));
    node.taints.iter().any(|t| t.key == TAINT) || !leaving.is_empty() && (staying.is_empty() || comes_back())
}

/// Whether the pod counts, as one of a DaemonSet.
fn is_of_daemon_set(pod: &Pod) -> bool {
    pod.pod_type() == PodType::DaemonSet && !pod.is_terminal()
}

/// The node that a change took the taint from. We take it away only when DaemonSet pods are drained from the node no longer.
pub(super) fn taken_from(change: &ObjectChange<Node>) -> Option<&Arc<Node>> {
    let old = change.old.as_ref().filter(|old| stands(old))?;
    change.new.as_ref().filter(|new| !stands(new) && new.uid == old.uid)
}

/// Returns the nodes on which the change adds or removes a DaemonSet pod, or changes which drain targets cover one.
pub(crate) fn nodes_of(change: &ObjectChange<Pod>) -> impl Iterator<Item = &str> {
    let matters = |pod: &Pod| {
        let of_node = (pod.node_name.clone(), pod.uid.clone(), pod.daemon_set());
        (is_of_daemon_set(pod), of_node, pod.labels.clone(), pod.tolerates_drain_taint)
    };
    let [old, new] = [&change.old, &change.new].map(|pod| pod.as_deref().map(matters));
    let both = change.both().filter(move |pod| old != new && is_of_daemon_set(pod));
    both.map(|pod| pod.node_name.as_str()).filter(|node| !node.is_empty())
}

/// The patch that adds or removes our taint alone, if it is to change. The list is atomic for the host, also for a
/// strategic merge patch: the whole of it is written, and only onto the node that was seen.
pub(super) fn patch(node: &Node, wanted: bool) -> Option<Value> {
    let (ours, mut taints): (Vec<_>, Vec<_>) = node.taints.iter().cloned().partition(|t| t.key == TAINT);
    let right = match wanted {
        true => matches!(ours.as_slice(), [taint] if taint.effect == EFFECT),
        false => ours.is_empty(),
    };
    if right {
        return None;
    }
    if wanted {
        taints.push(Taint { key: TAINT.to_owned(), effect: EFFECT.to_owned(), ..Taint::default() });
    }
    let seen = json!({"uid": node.uid, "resourceVersion": node.resource_version});
    Some(json!({"metadata": seen, "spec": {"taints": taints}}))
}

#[cfg(test)]
#[path = "wanted_tests.rs"]
mod tests;
