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
//! All maintenances are planned together, because they share nodes. [`step`] decides, purely, what should be
//! written; [`run`] looks and hands the difference to workers. Every write follows from what is seen, so that a
//! lost one is decided again.
//!
//! The modules are layers: none uses, over others, one that uses it. Within each group below that order is open; no group
//! uses a later one. conformance/architecture keeps the modules free of cycles.

// What is seen, in the caches and between two looks at them.
mod config;
mod observed;
mod world;

// What decisions are made of.
mod actions;
mod remembered;

// Which pods leave now, in the order of the drain plans.
mod planning;

// What is decided: of nodes and requests, of what keeps pods, and which events say so.
mod blockers;
mod milestones;
mod nodes;
mod release;
mod requests;
mod status;

// One step through all of it.
mod machine;

// How it is read and written.
mod io;

pub use actions::{Action, RequestChange, Task};
pub(crate) use config::{CORDONED_BY, OTHERS, OURS};
pub use config::{Config, REQUESTER};
pub use io::controller::{Options, run};
pub use machine::{MachineMemory, step};
pub use observed::PodLocation;
pub use world::World;
