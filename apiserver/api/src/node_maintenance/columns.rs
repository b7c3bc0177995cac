//! What kubectl shows of a NodeMaintenance.

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::status::{DRAINED, NodeMaintenanceNodeStatus};
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
    column("Reason", "string", "Reason for the maintenance", 0),
    column("Age", "string", "Time since the maintenance was made", 0),
    column("Blocked", "integer", "Pods that something keeps from leaving", 1),
    column("Message", "string", "State of the drain", 1),
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
        maintenance.spec.reason.as_str().into(),
        age(maintenance.metadata.creation_timestamp, now).into(),
        sum(|n| n.blocked_pods).into(),
        drained.map_or("", |c| c.message.as_str()).into(),
    ]
}
