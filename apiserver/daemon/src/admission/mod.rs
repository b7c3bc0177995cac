//! Checks that need the host: who may ask for a pod's eviction or a node's maintenance, and of how many nodes.

#[cfg(test)]
mod asked;
mod node_count;
mod node_delete;
mod pod_delete;

pub use node_count::NodeCount;
pub use node_delete::NodeDelete;
pub use pod_delete::{PodDelete, UnnamedReviewUsers};
