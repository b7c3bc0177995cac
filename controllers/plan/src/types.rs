//! The input of a planning, and its result.

use std::collections::{BTreeMap, BTreeSet};

use drydock_api::metav1::KnownLabels;
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

/// The result of one planning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOutcome {
    /// One per maintenance, in the order in which they were given.
    pub maintenances: Vec<MaintenanceOutcome>,
    /// One per pod, in the order in which they were given: whether it is to leave now.
    pub targeted: Vec<bool>,
    /// Maintenances that go further than their own plan says. Each planning repeats them until it is given
    /// the status that this one led to.
    pub fast_forwards: Vec<FastForward>,
}

/// The state of the drain of a maintenance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MaintenanceOutcome {
    /// Index of its current entry.
    pub cursor: usize,
    /// The node of another maintenance for whose pods it waits.
    pub waits_for: Option<String>,
    /// Each of its nodes.
    pub nodes: BTreeMap<String, NodeOutcome>,
}

/// The state of the drain of a node, as one maintenance shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeOutcome {
    /// The drain targets of the types that the maintenance drains. Those of a type are the same for every
    /// maintenance on the node that drains it.
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
    /// The node that it has come to and that is further along than the maintenance is. None if plans
    /// contradict each other and this maintenance was forced to go on.
    pub node: Option<String>,
    /// The maintenance on the node that is further along; without a node, the one that it waited for. None if
    /// the former has left or ended.
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

/// Drain targets by the name of the node that shows them.
pub type TargetsByNode = BTreeMap<String, Vec<DrainPlanEntry>>;

/// A maintenance in Drain. The older one of two is the one whose Drain stage started first, then the one that
/// was created first, then the one whose name sorts first.
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
    /// The last pod type that it drains.
    pub last_pod_type: PodType,
    /// The nodes that it selects.
    pub nodes: BTreeSet<String>,
    /// The index of its current entry as its status has it. None: the Drain stage has not been planned yet.
    pub position: Option<usize>,
    /// The drain targets of its status. A selected node that is missing has joined since; one that is no
    /// longer selected has left.
    pub recorded: TargetsByNode,
}

/// A pod that counts: it is bound to a node, is not terminal, and is not one of the node agent's own.
#[derive(Clone, Copy, Debug)]
pub struct CountedPod<'a> {
    /// The node that it is bound to.
    pub node: &'a str,
    /// Its type.
    pub pod_type: PodType,
    /// Its priority.
    pub priority: i32,
    /// Its labels, as far as they are known.
    pub labels: KnownLabels<'a>,
}
