//! Admission that needs the host or other objects: who may request a pod's eviction or a maintenance of nodes, how many
//! nodes a maintenance may select, whether the maintenance that requests an eviction drains, and who may write which part
//! of a request's status.

#[cfg(test)]
mod asked;
mod ended_maintenance;
mod node_delete;
mod node_selection;
mod pod_delete;
mod status_permission;

pub use ended_maintenance::EndedMaintenance;
pub use node_delete::NodeDelete;
pub use node_selection::{HostNodes, NodeSelection};
pub use pod_delete::{PodDelete, UnnamedReviewUsers};
pub use status_permission::StatusPermission;
