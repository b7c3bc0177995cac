//! What kubectl shows of a NodeMaintenance.

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::blocker::Blocker;
use super::status::{DRAINED, NodeMaintenanceNodeStatus, NodeMaintenanceStatus};
use super::types::NodeMaintenance;
use crate::cells::{NONE, age};
use crate::meta::find_condition;

const fn column(name: &'static str, type_: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, type_, format: "", description, priority }
}

/// Headers.
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
    column("Message", "string", "What blocks, or the state of the drain", 1),
];

/// One cell per column.
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
        message(status, now).into(),
    ]
}

/// What blocks, with how long it has done so; else the message of the condition Drained.
fn message(status: &NodeMaintenanceStatus, now: Timestamp) -> String {
    let nodes = &status.node_statuses;
    let blockers = nodes.iter().flat_map(|node| node.blockers.iter().map(move |blocker| (node, blocker)));
    let Some((node, oldest)) = blockers.min_by_key(|(_, blocker)| blocker.since_time) else {
        let drained = find_condition(&status.conditions, DRAINED);
        return drained.map_or_else(String::new, |drained| drained.message.clone());
    };
    let blocked: i64 = nodes.iter().map(|node| i64::from(node.blocked_pods)).sum();
    let pods: i64 = nodes.iter().map(left).sum();
    let what = match oldest.pod.name.as_str() {
        "" => format!("node {}", node.node_ref.name),
        pod => format!("{}/{pod}", oldest.pod.namespace),
    };
    let (since, Blocker { reason, message, .. }) = (age(oldest.since_time, now), oldest);
    format!("{blocked} of {pods} pods are blocked; oldest: {what} by {reason} ({since}): {message}")
}

fn left(node: &NodeMaintenanceNodeStatus) -> i64 {
    i64::from(node.pods_pending_evacuation) + i64::from(node.pods_evacuating)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_message_tells_how_many_pods_are_blocked_and_the_oldest() {
        let blocker = |pod: &str, second: i64| {
            json!({ "pod": { "namespace": "block", "name": pod, "uid": pod }, "reason": "PodDisruptionBudget",
                "message": "b allows 0", "sinceTime": Timestamp::from_second(second).unwrap() })
        };
        let node = |name: &str, blockers: Value| {
            json!({ "nodeRef": { "name": name }, "podsPendingEvacuation": 1, "podsEvacuating": 4, "blockedPods": 3,
                "blockers": blockers })
        };
        let drained = json!({ "type": "Drained", "status": "False", "reason": "Draining", "message": "10 pods are left" });
        let nodes =
            json!([node("a", json!([blocker("later", 30)])), node("b", json!([blocker("zero", 10)]))]);
        let mut status: NodeMaintenanceStatus =
            serde_json::from_value(json!({ "nodeStatuses": nodes, "conditions": [drained] })).unwrap();
        let now = Timestamp::from_second(44).unwrap();
        let wanted = "6 of 10 pods are blocked; oldest: block/zero by PodDisruptionBudget (34s): b allows 0";
        assert_eq!(message(&status, now), wanted);
        status.node_statuses.iter_mut().for_each(|node| node.blockers.clear());
        assert_eq!(message(&status, now), "10 pods are left");
    }
}
