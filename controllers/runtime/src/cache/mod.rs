//! Local copies of what the API servers hold: trimmed objects, kept current by watches, indexed by key, UID and node.
//!
//! Readers take `Arc`s out of a [`Store`]; the writer half is owned by the reflector that feeds it. Changes are pushed
//! to handlers, which turn them into keys of a deduplicating queue, so that nothing can pile up.

mod bounded_map;
mod bounded_pages;
mod budget;
mod budget_selector;
mod cacheable;
mod caches;
mod daemon_set;
mod key_index;
mod kube_object;
pub mod node;
mod own_kinds;
mod pod;
mod pod_owners;
mod pod_wire;
mod reflector;
mod shared_parts;
mod store;
mod uid_index;

pub use bounded_pages::{bounded, metadata_alone};
pub use budget::{PodDisruptionBudget, UnhealthyPolicy, short_amount};
pub use budget_selector::BudgetSelector;
pub use cacheable::{Cacheable, ObjectKey};
pub use caches::{HostCaches, Select, start_reflector};
pub use daemon_set::DaemonSet;
pub use kube_object::{KubeObject, api, api_all, resource};
pub use node::{Node, NodeCondition, Taint};
pub use own_kinds::is_of_own_kinds;
pub use pod::{DRAIN_TAINT, DaemonSetOwner, MIRROR_ANNOTATION, OwnerRef, Pod, PodPhase, Responder};
pub use pod_owners::{NamedDaemonSet, PodOwners};
pub use reflector::reflect;
pub use shared_parts::SharedParts;
pub use store::{ObjectChange, Store};

#[cfg(test)]
mod tests;
