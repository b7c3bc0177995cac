//! The node maintenance controller (KEP-4212): cordons nodes, asks for the eviction of their pods in the order of the
//! plans, and says how far it is.
//!
//! ```text
//!   caches ──▶ world ──▶ machine::step ──▶ actions ──▶ writer ──▶ API servers
//!     ▲        (view)        │ ▲                                      │
//!     │                      ▼ │                                      │
//!     │                     memory                                    │
//!     └────────────────────────── watches ────────────────────────────┘
//! ```
//!
//! All maintenances are planned together, because they share nodes. [`machine`] decides, purely, what should be
//! written; [`controller`] looks and hands the difference to workers. Every write follows from what is seen, so that a
//! lost one is decided again.

pub mod actions;
pub mod machine;
pub mod world;

mod blockers;
mod conditions;
mod cordon;
mod failures;
mod fit;
mod lost;
mod obstacles;
mod own;
mod release;
mod requests;
mod status;
mod view;

pub mod controller;
mod metrics;
mod pending;
mod writer;

pub use actions::{Action, Decision, Note, Task};
pub use controller::{Options, run};
pub use lost::Lost;
pub use machine::{Config, Memory, step};
pub use world::World;

/// Our entry in the requesters of an EvictionRequest, and the field manager that applies it.
pub const REQUESTER: &str = "nodemaintenance.k8s.io";
/// Annotation on a node under maintenance: who made it unschedulable, [`OURS`] or [`OTHERS`].
pub const CORDONED_BY: &str = "nodemaintenance.k8s.io/cordoned-by";
/// The node was schedulable when its maintenance began: it becomes schedulable again.
pub const OURS: &str = "nodemaintenance.k8s.io";
/// The node was already unschedulable: it stays so.
pub const OTHERS: &str = "other";
