//! NodeMaintenance (KEP-4212): an intent to take a set of nodes out of service and to drain them in an order.

mod types;

pub mod defaults;
pub mod finalizer;
pub mod node_selector;
pub mod selector_size;
pub mod transitions;

mod enumerations;
pub mod validation;

pub mod columns;
mod schema;
mod strategy;

pub use strategy::{NAMES, NodeMaintenanceKind};
pub use types::{
    Blocker, DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceSpec,
    NodeMaintenanceStatus, NodeReference, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodReference, PodType, Stage, StageStatus,
};
pub use types::{DRAINED, FINALIZER, MAX_BLOCKERS, RESOURCE};
