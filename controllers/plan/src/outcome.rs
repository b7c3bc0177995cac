//! What a planning says.

use std::collections::BTreeMap;

use drydock_api::node_maintenance::DrainPlanEntry;

/// The result of one planning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One per maintenance, in the order in which they were given.
    pub maintenances: Vec<MaintenanceOutcome>,
    /// One per pod, in the order in which they were given: whether it is to leave now.
    pub targeted: Vec<bool>,
    /// Maintenances that are further than their plan says, each told once.
    pub fast_forwards: Vec<FastForward>,
}

/// Where a maintenance stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOutcome {
    /// Index of its current entry.
    pub cursor: usize,
    /// Whether no targeted pod is left on any of its nodes.
    pub finished: bool,
    /// Whether no counted pod at all is left on any of its nodes.
    pub drained: bool,
    /// Each of its nodes.
    pub nodes: BTreeMap<String, NodeOutcome>,
}

/// Where a node stands, as one maintenance shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    /// What is targeted; the same for every maintenance on the node.
    pub drain_targets: Vec<DrainPlanEntry>,
    /// The state of the drain, in the seed's words.
    pub drain_message: String,
    /// Counted pods on the node.
    pub left: usize,
    /// Those of them that are targeted.
    pub targeted: usize,
}

/// A maintenance's plan was overtaken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastForward {
    /// Index of the maintenance.
    pub maintenance: usize,
    /// The node on which it was, if it joined one that is further along; none if two plans contradict each other.
    pub node: Option<String>,
    /// Name of the older maintenance that it gives way to.
    pub older: String,
}
