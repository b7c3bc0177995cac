//! NodeMaintenance (KEP-4212): an intent to take a set of nodes out of service, and to drain them in a defined order.

mod status;
mod types;

pub mod defaults;
pub mod finalizer;
pub mod kubelet_labels;
pub mod limits;
pub mod node_selector;
pub mod transitions;

pub mod validation;

mod username;

pub mod columns;
mod strategy;

pub use status::{
    Blocker, MAX_BLOCKERS, NodeMaintenanceGoneNodes, NodeMaintenanceNodeStatus, NodeMaintenanceOutcomes,
    NodeMaintenanceStatus, NodeReference, PodEarlierTurns, PodReference, PodsLeft, StageStatus,
};
pub use status::{CORDONED, DRAINED, EVICTED_PODS_UNSCHEDULABLE, PODS_WILL_BE_LOST, WORKLOADS_DRAINED};
pub use strategy::{NAMES, NodeMaintenanceKind, NodeMaintenanceStrategy};
pub use types::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceSpec, NodeMaintenanceStage, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodType,
};
pub use types::{FINALIZER, RESOURCE};
