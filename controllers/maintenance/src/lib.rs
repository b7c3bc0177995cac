//! The node maintenance controller (KEP-4212): cordons nodes, asks for the eviction of their pods in the
//! order of the plans, and reports the progress.
//!
//! ```text
//!   caches ──▶ world ──▶ machine::step ──▶ actions ──▶ writer ──▶ API servers
//!     ▲        (view)        │ ▲                                      │
//!     │                      ▼ │                                      │
//!     │                     memory                                    │
//!     └────────────────────────── watches ────────────────────────────┘
//! ```
//!
//! All maintenances are planned together, because they share nodes. [`step`] decides what should be written,
//! and does no I/O; [`run`] reads the caches and hands the writes to workers. Every write follows from what
//! the caches show, so that a lost one is decided again.
//!
//! The modules below are layers in groups. No group uses a later one; the order within a group is open.
//! conformance/architecture keeps the modules free of cycles.

// The input: the caches, and the changes between two plannings.
mod config;
mod observed;
mod world;

// The parts of decisions and memories.
mod actions;
mod remembered;

// Which pods leave now, in the order of the drain plans.
mod planning;

// The decisions about nodes, requests, blockers, events and statuses.
mod blockers;
mod milestones;
mod nodes;
mod release;
mod requests;
mod status;

// One step, which calls all of these.
mod machine;

// The I/O around the machine.
mod io;

pub use actions::{Action, RequestChange, Task};
pub use config::{Config, REQUESTER};
pub use io::controller::{Options, run};
pub use machine::{MachineMemory, step};
pub use observed::PodLocation;
pub use world::World;
