//! Decides whether a node needs the taint, and makes the patch that adds or removes it. Pure.

use std::sync::Arc;

use drydock_api::node_maintenance::PodType;
use drydock_runtime::cache::Taint;
use drydock_runtime::{Node, ObjectChange, Pod};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{EFFECT, TAINT};
use crate::daemonset::deletions::Deletions;
use crate::node_targets::NodeTargets;

/// Whether the node has the taint, as the host's controllers see it.
pub(crate) fn has_taint(node: &Node) -> bool {
    node.taints.iter().any(|t| t.key == TAINT && t.effect == EFFECT)
}

/// Whether a node needs the taint.
///
/// It keeps away every DaemonSet that does not tolerate it, whatever its priority. But a DaemonSet whose pods
/// are not to leave yet may have to put its pod back (after a crash, or in a rollout). So a node needs the
/// taint when a pod is to leave that does not tolerate it, and the drain targets cover all pods of DaemonSets
/// there that do not tolerate it. Pods that tolerate it do not count.
///
/// Until then a deleted pod can come back, so that its tier does not end and the later tiers are never
/// reached. If one has come back, the node therefore needs the taint earlier: the drain goes on, and
/// DaemonSets of later tiers do not get their pods back on this node until the drain ends. A node that has
/// the taint keeps it: the pods that it keeps away are no longer there to be counted.
pub(super) fn needs_taint(
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

/// Whether a pod belongs to a DaemonSet and has not ended.
fn is_of_daemon_set(pod: &Pod) -> bool {
    pod.pod_type() == PodType::DaemonSet && !pod.is_terminal()
}

/// The node from which a change removed the taint. We remove it only when DaemonSet pods are no longer
/// drained from the node.
pub(super) fn taken_from(change: &ObjectChange<Node>) -> Option<&Arc<Node>> {
    let old = change.old.as_ref().filter(|old| has_taint(old))?;
    change.new.as_ref().filter(|new| !has_taint(new) && new.uid == old.uid)
}

/// Returns the nodes on which the change adds or removes a DaemonSet pod, or changes which drain targets cover one.
pub(crate) fn nodes_of(change: &ObjectChange<Pod>) -> impl Iterator<Item = &str> {
    let matters = |pod: &Pod| {
        let of_node = (pod.node_name.clone(), pod.uid.clone(), pod.daemon_set());
        let labels = (pod.labels.clone(), pod.labels_cut_from.clone());
        (is_of_daemon_set(pod), of_node, labels, pod.tolerates_drain_taint)
    };
    let [old, new] = [&change.old, &change.new].map(|pod| pod.as_deref().map(matters));
    let both = change.both().filter(move |pod| old != new && is_of_daemon_set(pod));
    both.map(|pod| pod.node_name.as_str()).filter(|node| !node.is_empty())
}

/// The patch that adds or removes our taint alone, if it is to change. The list is atomic for the host, even
/// in a strategic merge patch: the patch contains all of it, and applies only to the version of the node that
/// was read.
pub(super) fn patch(node: &Node, needed: bool) -> Option<Value> {
    let (ours, mut taints): (Vec<_>, Vec<_>) = node.taints.iter().cloned().partition(|t| t.key == TAINT);
    let right = match needed {
        true => matches!(ours.as_slice(), [taint] if taint.effect == EFFECT),
        false => ours.is_empty(),
    };
    if right {
        return None;
    }
    if needed {
        taints.push(Taint { key: TAINT.to_owned(), effect: EFFECT.to_owned(), ..Taint::default() });
    }
    let seen = json!({"uid": node.uid, "resourceVersion": node.resource_version});
    Some(json!({"metadata": seen, "spec": {"taints": taints}}))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
