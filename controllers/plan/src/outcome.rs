//! What a planning says.

use std::collections::BTreeMap;

use drydock_api::node_maintenance::DrainPlanEntry;

/// The result of one planning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOutcome {
    /// One per maintenance, in the order in which they were given.
    pub maintenances: Vec<MaintenanceOutcome>,
    /// One per pod, in the order in which they were given: whether it is to leave now.
    pub targeted: Vec<bool>,
    /// Maintenances that go further than their own plan says. Each planning repeats them until it is given the status that
    /// this one led to.
    pub fast_forwards: Vec<FastForward>,
}

/// Where a maintenance stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOutcome {
    /// Index of its current entry.
    pub cursor: usize,
    /// The node of another maintenance for whose pods it waits.
    pub waits_for: Option<String>,
    /// Each of its nodes.
    pub nodes: BTreeMap<String, NodeOutcome>,
}

/// Where a node stands, as one maintenance shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    /// What is targeted, of the types of which the maintenance speaks; the same for every maintenance on the node that
    /// speaks of a type.
    pub drain_targets: Vec<DrainPlanEntry>,
    /// The state of the drain, in the words of KEP-4212.
    pub drain_message: String,
    /// Counted pods by index of the first entry of the maintenance's plan that covers them.
    pub by_entry: BTreeMap<usize, usize>,
}

/// A maintenance goes further than its own plan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastForward {
    /// Index of the maintenance.
    pub maintenance: usize,
    /// The node that it has come to and that is further along than the maintenance is. None: two plans contradict each
    /// other, and this one went on.
    pub node: Option<String>,
    /// The maintenance that it gives way to. None if that one has ended.
    pub other: Option<Other>,
}

/// Another maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Whether it is older than the one that it is compared with.
    pub is_older: bool,
}
