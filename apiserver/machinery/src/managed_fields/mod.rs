//! Managed fields: who owns which field, and server-side apply.
//!
//! ```text
//! FieldManager --> updater --> versioned, prune --> typed (to_set, compare, merge, remove) --> set --> path
//!      |
//!   managed (metadata.managedFields, FieldsV1)
//! ```
//!
//! The behaviour is that of sigs.k8s.io/structured-merge-diff/v6 under k8s.io/apimachinery/pkg/util/managedfields for
//! a compiled-in kind; the test vectors were generated with those libraries.

mod conflict;
mod element;
mod fields_v1;
mod last_applied;
mod managed;
mod manager;
mod newly_applied;
mod path;
mod prune;
mod set;
mod set_operations;
mod typed;
mod updater;
mod value;
mod versioned;

pub use managed::{check, ignore_timestamps};
pub use manager::FieldManager;
pub use newly_applied::newly_applied;
pub use path::PathElement;
pub use set::Set;
pub use typed::{Comparison, compare, remove_items, to_set};
