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
    /// How long an interceptor may be silent before it is passed over; as the controllers have it.
    pub heartbeat_deadline: Duration,
    /// A stream that has sent nothing for so long sends a heartbeat.
    pub heartbeat: Duration,
    /// How long the hub runs without subscribers.
    pub idle_timeout: Duration,
    /// How long a call waits for a hub that is being filled, or for this replica to catch up.
    pub attach_timeout: Duration,
    /// How often rates are told anew while nothing else changes; at most once a second.
    pub rate_interval: Duration,
    /// Removals that each kind, and each view, remembers for streams that are slow or resume.
    pub tombstones: TombstoneLimit,
    /// How many different filters may be followed.
    pub views: ViewLimits,
    /// Most changes from before its start that the hub reads at once for streams that resume.
    pub max_history_changes: usize,
    /// The time.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            heartbeat_deadline: DEFAULT_HEARTBEAT_DEADLINE,
            heartbeat: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(600),
            attach_timeout: Duration::from_secs(10),
            rate_interval: Duration::from_secs(15),
            tombstones: TombstoneLimit { count: 65_536, bytes: 32 << 20 },
            views: ViewLimits::default(),
            max_history_changes: 65_536,
            clock: Arc::new(Timestamp::now),
        }
    }
}
