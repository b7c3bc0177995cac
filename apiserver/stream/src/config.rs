//! Bounds and times of the stream.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::transitions::DEFAULT_HEARTBEAT_DEADLINE;
use jiff::Timestamp;

use crate::log::TombstoneLimit;
use crate::views::ViewLimits;

/// Bounds and times of the stream.
#[derive(Clone)]
pub struct Config {
    /// How long an interceptor may be silent before it is passed over; the same as in the controllers.
    pub heartbeat_deadline: Duration,
    /// After this time without a message, a stream sends a heartbeat.
    pub heartbeat: Duration,
    /// How long a hub without subscribers keeps running.
    pub idle_timeout: Duration,
    /// How long a call waits until the hub is filled, which takes seconds with many objects. Together with
    /// `attach_timeout` less than the server's request timeout, after which a client gets no answer that it may try again.
    pub fill_timeout: Duration,
    /// How long a call waits then until this replica has caught up.
    pub attach_timeout: Duration,
    /// How often rates are sent again while nothing else changes; less than a second counts as a second.
    pub rate_interval: Duration,
    /// Limits of the removals that each kind of entity, and each view, keeps for streams that are slow or resume.
    pub tombstones: TombstoneLimit,
    /// Limits of the different filters.
    pub views: ViewLimits,
    /// Maximum number of earlier changes that a hub reads at once for streams that resume.
    pub max_history_changes: usize,
    /// Returns the current time.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_deadline: DEFAULT_HEARTBEAT_DEADLINE,
            heartbeat: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(600),
            fill_timeout: Duration::from_secs(30),
            attach_timeout: Duration::from_secs(10),
            rate_interval: Duration::from_secs(15),
            tombstones: TombstoneLimit { count: 65_536, bytes: 32 << 20 },
            views: ViewLimits::default(),
            max_history_changes: 65_536,
            clock: Arc::new(Timestamp::now),
        }
    }
}
