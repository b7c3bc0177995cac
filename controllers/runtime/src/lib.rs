//! What every controller is built on: the client, host caches, work queues, the lease, events and metrics.
//!
//! ```text
//! API server ──watch──> cache::Store ──ObjectChange──> handler ──key──> queue::WorkQueue ──> worker ──write──> API server
//!                                                                             ^ delayed adds, retries │
//!                                                                             └───────────────────────┘
//! ```
//!
//! A controller takes a [`ControllerContext`], subscribes to the stores it reads, maps each change to keys of
//! its queue, and runs workers over the queue. Nothing polls: a wake-up is a change, a delayed add or a
//! retry.

pub mod cache;
pub mod clock;
pub mod context;
pub mod error;
pub mod events;
#[cfg(any(test, feature = "test-util"))]
pub mod exploration;
pub mod guide;
pub mod leading;
pub mod lease;
pub mod metrics;
mod node_write_refusals;
pub mod ownership;
pub mod patch;
pub mod queue;
pub mod refusal;
pub mod round_robin;
pub mod skew;
pub mod surge_record;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
mod undone_by_others;
mod worker;

pub use cache::{
    Cacheable, HostCaches, Node, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, SharedParts, Store,
};
pub use context::ControllerContext;
pub use error::{ApiErrorKind, CallError, classify, find};
pub use node_write_refusals::NodeWriteRefusals;
pub use undone_by_others::UndoneByOthers;
pub use worker::{Requeue, after_failed_write, pass_on_panic, run_workers};
