//! The eviction request controller (KEP-4563): validates requests, gives interceptors their turns, and
//! records how each request ended.
//!
//! `machine` decides and does no I/O; `controller` reads the caches, lets it decide, and writes.

mod machine;

mod decision;
mod deleted_pods;
mod ending;
mod held;
mod past_turns;
mod surplus;

mod controller;
#[cfg(test)]
mod exploration_tests;
mod metrics;
mod removal;
mod request_events;

pub use controller::{Options, run};
pub use decision::Config;
pub use past_turns::PastTurns;

use std::time::Duration;

/// How long after a 409 a write is decided again, if the cache does not show a newer version before.
const STALE_RETRY_AFTER: Duration = Duration::from_secs(30);
