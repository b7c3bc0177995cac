//! What is planned over: maintenances in Drain, and the counted pods of their nodes.

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

/// Drain targets by the name of the node that shows them.
pub type TargetsByNode = BTreeMap<String, Vec<DrainPlanEntry>>;

/// A maintenance in Drain. The older one of two is the one whose Drain stage started first, then the one that was created
/// first, then the one with the lesser name.
#[derive(Clone, Debug)]
pub struct DrainingMaintenance {
    /// Its name, which no other has.
    pub name: String,
    /// When its Drain stage started, in any unit.
    pub started: i64,
    /// When it was created, in any unit.
    pub created: i64,
    /// Its plan, in order.
    pub plan: Vec<DrainPlanEntry>,
    /// The last pod type of which it speaks.
    pub last_pod_type: PodType,
    /// The nodes that it selects.
    pub nodes: BTreeSet<String>,
    /// The index of its current entry as its status has it. None: the Drain stage has not been planned yet.
    pub position: Option<usize>,
    /// The drain targets of its status. A selected node that is missing has joined since; one that is no longer selected
    /// has left.
    pub recorded: TargetsByNode,
}

/// A pod that counts: on a node, not terminal, not of the node agent's own.
#[derive(Clone, Copy, Debug)]
pub struct CountedPod<'a> {
    /// The node that it is bound to.
    pub node: &'a str,
    /// Its type.
    pub pod_type: PodType,
    /// Its priority.
    pub priority: i32,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}
