//! Delays that double.

use std::time::Duration;

/// Delays from `first`, doubling, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBackoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// Longest delay.
    pub max: Duration,
}

impl ExponentialBackoff {
    /// What controllers use for failed writes: 5 ms to 30 s (client-go begins at 5 ms too, and ends at 1000 s; a drain
    /// that waits a quarter of an hour after an outage helps nobody).
    pub const WRITES: Self = Self { first: Duration::from_millis(5), max: Duration::from_secs(30) };

    /// The delay after `failures` earlier failures.
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.min(31)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}
