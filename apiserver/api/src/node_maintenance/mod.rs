//! NodeMaintenance (KEP-4212): an intent to take a set of nodes out of service and to drain them in an order.

mod types;

pub use types::{
    Blocker, DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceSpec,
    NodeMaintenanceStatus, NodeReference, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodReference, PodType, Stage, StageStatus,
};
pub use types::{DRAINED, FINALIZER, MAX_BLOCKERS, RESOURCE};
