//! What is planned over: maintenances in Drain, and the counted pods of their nodes.

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

/// A maintenance in Drain.
#[derive(Clone, Debug, Default)]
pub struct Maintenance {
    /// Identity over time.
    pub uid: String,
    /// Name, for messages; orders maintenances of one age.
    pub name: String,
    /// When it was made, in any unit.
    pub created: i64,
    /// Its plan, in order.
    pub plan: Vec<DrainPlanEntry>,
    /// The nodes that it selects.
    pub nodes: BTreeSet<String>,
    /// The drain targets that its status shows, per node: the memory that survives restarts.
    pub recorded: BTreeMap<String, Vec<DrainPlanEntry>>,
}

/// A pod that counts: on a node, not terminal, not of the node agent's own.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// The node that it is bound to.
    pub node: &'a str,
    /// Its type.
    pub pod_type: PodType,
    /// Its priority.
    pub priority: i32,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}
