//! How many evictions may be in flight: additive increase, multiplicative decrease.

use std::time::Duration;

use tokio::time::Instant;

/// Measured with a host of version 1.36: with 64 in flight, the most pods are evicted under one budget and
/// under many; 128 are slower.
const MAX_IN_FLIGHT: f64 = 64.0;
const MIN_IN_FLIGHT: f64 = 4.0;
/// The limit is lowered at most once in this time, because evictions that were sent together meet the same
/// overload.
const CUT_INTERVAL: Duration = Duration::from_secs(1);

/// A limit between 4 and 64, at first 64.
#[derive(Debug)]
pub(crate) struct InFlightLimit {
    value: f64,
    last_cut: Option<Instant>,
}

impl Default for InFlightLimit {
    fn default() -> Self {
        Self { value: MAX_IN_FLIGHT, last_cut: None }
    }
}

impl InFlightLimit {
    /// The limit now.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn get(&self) -> usize {
        self.value as usize
    }

    /// Whether it is as high as it can be.
    pub(crate) fn is_full(&self) -> bool {
        self.value >= MAX_IN_FLIGHT
    }

    /// Adjusts the limit after an answer: one that shows overload lowers it, any other raises it.
    pub(crate) fn learn(&mut self, too_much: bool, now: Instant) {
        if !too_much {
            self.value = (self.value + 1.0 / self.value).min(MAX_IN_FLIGHT);
        } else if self.last_cut.is_none_or(|cut| now.saturating_duration_since(cut) >= CUT_INTERVAL) {
            self.value = (self.value * 0.7).max(MIN_IN_FLIGHT);
            self.last_cut = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_lowers_it_once_a_second_and_success_raises_it_again() {
        let mut limit = InFlightLimit::default();
        let now = Instant::now();
        (0..64).for_each(|_| limit.learn(true, now));
        assert_eq!(limit.get(), 44);
        (0..100).for_each(|i| limit.learn(true, now + Duration::from_secs(i)));
        assert_eq!(limit.get(), 4);
        (0..5000).for_each(|_| limit.learn(false, now));
        assert!(limit.is_full());
    }
}
