//! The table columns of NodeMaintenance, as kubectl shows them.

use drydock_machinery::kind::Column;
use drydock_machinery::names::dns1123_subdomain;
use jiff::Timestamp;
use serde_json::Value;

use super::status::{
    Blocker, CORDONED, DRAINED, NodeMaintenanceNodeStatus, NodeMaintenanceStatus, PODS_WILL_BE_LOST,
    PodReference,
};
use super::types::NodeMaintenance;
use crate::reasons::POD_DISRUPTION_BUDGET;
use drydock_machinery::cells::{NONE, age};
use drydock_machinery::metav1::find_condition;
use drydock_machinery::text::{are, counted};

const fn column(name: &'static str, type_: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, type_, format: "", description, priority }
}

/// The columns, without their cells.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "Name",
        type_: "string",
        format: "name",
        description: "Name of the maintenance",
        priority: 0,
    },
    column("Stage", "string", "How far the maintenance shall go", 0),
    column("Nodes", "integer", "Number of selected nodes", 0),
    column("Drained", "string", "Whether all pods have left all selected nodes", 0),
    column("Pending", "integer", "Pods that have not started evacuation", 0),
    column("Evacuating", "integer", "Pods that have started evacuation", 0),
    column("Blocked", "integer", "Pods that something keeps from leaving", 0),
    column("Reason", "string", "Reason for the maintenance", 0),
    column("Age", "string", "Time since the maintenance was made", 0),
    column(
        "Message",
        "string",
        "What has blocked for the longest time, or else the state of the drain, or what is to be known before it",
        1,
    ),
];

/// Returns one cell for each column.
pub fn cells(maintenance: &NodeMaintenance, now: Timestamp) -> Vec<Value> {
    let status = &maintenance.status;
    let sum = |count: fn(&NodeMaintenanceNodeStatus) -> i32| -> i64 {
        status.node_statuses.iter().map(|n| i64::from(count(n))).sum()
    };
    let drained = find_condition(&status.conditions, DRAINED);
    vec![
        maintenance.metadata.name.as_str().into(),
        maintenance.spec.stage.as_str().into(),
        status.node_statuses.len().into(),
        drained.map_or(NONE, |c| c.status.as_str()).into(),
        sum(|n| n.pods_pending_evacuation).into(),
        sum(|n| n.pods_evacuating).into(),
        sum(|n| n.blocked_pods).into(),
        maintenance.spec.reason.as_str().into(),
        age(maintenance.metadata.creation_timestamp, now).into(),
        blocked(status, now)
            .or_else(|| drained.map(|drained| drained.message.clone()))
            .unwrap_or_else(|| message_before_drain(status))
            .into(),
    ]
}

/// What people should know before they start the drain: that nodes are not cordoned, otherwise which pods will be
/// lost.
fn message_before_drain(status: &NodeMaintenanceStatus) -> String {
    let says = |type_, is| {
        let condition = find_condition(&status.conditions, type_);
        condition.filter(|condition| condition.is_true() == is).map(|condition| condition.message.clone())
    };
    let open = says(CORDONED, false).or_else(|| says(PODS_WILL_BE_LOST, true));
    open.or_else(|| says(CORDONED, true)).unwrap_or_default()
}

/// How many pods are blocked, and the cause that has existed for the longest time. The status has the time since when
/// and not the duration, which is computed here.
fn blocked(status: &NodeMaintenanceStatus, now: Timestamp) -> Option<String> {
    let nodes = &status.node_statuses;
    let of_pod = |blocker: &&Blocker| !blocker.pod.name.is_empty() && blocker.since_time.is_some();
    let oldest = nodes.iter().flat_map(|n| &n.blockers).filter(of_pod).min_by_key(|b| b.since_time)?;
    let sum =
        |count: fn(&NodeMaintenanceNodeStatus) -> i32| nodes.iter().map(|n| i64::from(count(n))).sum::<i64>();
    let count = sum(blocked_pods);
    let left = sum(|n| n.pods_pending_evacuation) + sum(|n| n.pods_evacuating);
    let left = counted(left, "pod", "pods");
    let PodReference { namespace, name, .. } = &oldest.pod;
    let (cause, age) = (cause(oldest), age(oldest.since_time, now));
    Some(format!("{count} of {left} {} blocked; oldest: {namespace}/{name} by {cause} ({age})", are(count)))
}

/// Number of blocked pods. The node itself is not counted; if it blocks, it is the first blocker.
fn blocked_pods(node: &NodeMaintenanceNodeStatus) -> i32 {
    let is_node = node.blockers.first().is_some_and(|first| first.pod.name.is_empty());
    node.blocked_pods.saturating_sub(i32::from(is_node))
}

/// The cause; for a budget with its name, which only the message has.
fn cause(blocker: &Blocker) -> String {
    let reason = &blocker.reason;
    let name = budget_of(&blocker.message).filter(|_| reason == POD_DISRUPTION_BUDGET);
    match name.filter(|name| dns1123_subdomain(name).is_empty()) {
        Some(name) => format!("{reason} {name}"),
        None => reason.clone(),
    }
}

/// The budget's name in a message about one budget; `None` in one about several. The controllers write
/// `PodDisruptionBudget "NAME"` about one (`controllers/runtime/src/refusal.rs`).
fn budget_of(message: &str) -> Option<&str> {
    if message.contains("more than one PodDisruptionBudget") {
        return None;
    }
    message.split_once("PodDisruptionBudget \"")?.1.split_once('"').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-01-01T00:01:00Z";

    fn message(status: Value) -> String {
        let status = serde_json::from_value(status).unwrap();
        let maintenance = NodeMaintenance { status, ..Default::default() };
        let shown = cells(&maintenance, NOW.parse().unwrap());
        assert_eq!(shown.len(), COLUMNS.len());
        shown.last().unwrap().as_str().unwrap().to_owned()
    }

    fn blocker(name: &str, reason: &str, message: &str, since: &str) -> Value {
        json!({"pod": {"namespace": "block", "name": name, "uid": "u"}, "reason": reason, "message": message,
            "sinceTime": format!("2026-01-01T00:00:{since}Z")})
    }

    #[test]
    fn the_message_names_what_has_blocked_for_the_longest_time() {
        let budget = blocker(
            "zero-1",
            POD_DISRUPTION_BUDGET,
            "PodDisruptionBudget \"zero\" allows 0 disruptions",
            "26",
        );
        let nodes = json!([
            {"podsPendingEvacuation": 1, "podsEvacuating": 9, "blockedPods": 5,
                "blockers": [blocker("a", "Interceptor", "PodDisruptionBudget \"x\"", "30")]},
            {"podsEvacuating": 7, "blockedPods": 1, "blockers": [budget]},
        ]);
        let words = "6 of 17 pods are blocked; oldest: block/zero-1 by PodDisruptionBudget zero (34s)";
        assert_eq!(message(json!({"nodeStatuses": nodes})), words);
    }

    #[test]
    fn a_cause_without_a_name_is_told_by_its_reason() {
        for (reason, said) in [
            ("Interceptor", "PodDisruptionBudget \"x\" allows 0"),
            (POD_DISRUPTION_BUDGET, "PodDisruptionBudget \"\u{1b}[1m\" allows 0"),
            (
                POD_DISRUPTION_BUDGET,
                "The pod is covered by more than one PodDisruptionBudget (\"one\" and \"two\")",
            ),
            (POD_DISRUPTION_BUDGET, "The disruption budget b needs 2"),
        ] {
            let nodes = json!([{"podsEvacuating": 1, "blockedPods": 1, "blockers": [blocker("p", reason, said, "59")]}]);
            let words = format!("1 of 1 pod is blocked; oldest: block/p by {reason} (1s)");
            assert_eq!(message(json!({"nodeStatuses": nodes})), words);
        }
    }

    /// Regression: the message was `2 of 1 pods are blocked`.
    #[test]
    fn a_node_that_blocks_is_no_blocked_pod() {
        let node = json!({"pod": {"namespace": "", "name": "", "uid": ""}, "reason": "NodeUpdateRefused",
            "sinceTime": "2026-01-01T00:00:00Z"});
        let blockers = json!([node, blocker("p", "Terminating", "late", "59")]);
        let nodes = json!([{"podsEvacuating": 1, "blockedPods": 2, "blockers": blockers}]);
        let words = "1 of 1 pod is blocked; oldest: block/p by Terminating (1s)";
        assert_eq!(message(json!({"nodeStatuses": nodes})), words);
    }

    #[test]
    fn the_message_is_that_of_drained_while_no_pod_is_blocked() {
        let drained =
            json!({"type": DRAINED, "status": "False", "reason": "Draining", "message": "2 pods are left"});
        assert_eq!(message(json!({"conditions": [drained]})), "2 pods are left");
        assert_eq!(message(json!({})), "");
    }

    /// Regression: the message was empty at the time when people decide whether to drain.
    #[test]
    fn the_message_before_the_drain_is_what_is_to_be_known() {
        let condition =
            |type_: &str, is: &str, words: &str| json!({"type": type_, "status": is, "message": words});
        let cordoned = condition(CORDONED, "True", "The selected node is unschedulable");
        let lost = condition(PODS_WILL_BE_LOST, "True", "1 pod has no controller");
        let not_lost = condition(PODS_WILL_BE_LOST, "False", "nothing is lost");
        let no_nodes = condition(CORDONED, "False", "The node selector selects no node");
        for (conditions, words) in [
            (json!([cordoned, lost]), "1 pod has no controller"),
            (json!([cordoned, not_lost]), "The selected node is unschedulable"),
            (json!([no_nodes, lost]), "The node selector selects no node"),
        ] {
            assert_eq!(message(json!({"conditions": conditions})), words);
        }
    }
}
