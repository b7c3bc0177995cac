//! Where pods are: a request outlives its pod.

use drydock_api::node_maintenance::PodType;
use drydock_runtime::Pod;

/// Where a pod is, and of which type it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLocation {
    /// Its node.
    pub node: String,
    /// Its type.
    pub pod_type: PodType,
}

impl PodLocation {
    /// Of a pod.
    pub fn of(pod: &Pod) -> Self {
        Self { node: pod.node_name.clone(), pod_type: pod.pod_type() }
    }
}
