//! Who may do what, asked of the host by us: RBAC on our kinds, and the rights on pods and nodes that come with them.

mod eviction_requests;
mod interceptors;
mod kubelets;
mod node_maintenances;
mod protected_pods;
mod status;
pub mod users;
