//! How many evictions may be in flight: as many as help, fewer when the host shows that it has enough.

use std::time::Duration;

use tokio::time::Instant;

/// Measured on a 1.36 host: 64 evict the most under one budget and under many; 128 are slower again.
const MOST: f64 = 64.0;
const LEAST: f64 = 4.0;
/// An answer that takes longer says that the host is loaded.
const SLOW: Duration = Duration::from_secs(5);
/// The limit is cut at most once in this time: answers that were sent together tell the same story.
const CUT_INTERVAL: Duration = Duration::from_secs(1);

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
pub(crate) struct Limit {
    value: f64,
    last_cut: Option<Instant>,
}

impl Default for Limit {
    fn default() -> Self {
        Self { value: MOST, last_cut: None }
    }
}

impl Limit {
    /// The limit now.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn get(&self) -> usize {
        self.value as usize
    }

    /// Learns from an answer.
    pub(crate) fn learn(&mut self, overload: bool, latency: Duration, now: Instant) {
        if !overload && latency < SLOW {
            self.value = (self.value + 1.0 / self.value).min(MOST);
        } else if self.last_cut.is_none_or(|cut| now.saturating_duration_since(cut) >= CUT_INTERVAL) {
            self.value = (self.value * 0.7).max(LEAST);
            self.last_cut = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overload_cuts_once_a_second_and_success_grows_back() {
        let mut limit = Limit::default();
        let now = Instant::now();
        (0..64).for_each(|_| limit.learn(true, Duration::ZERO, now));
        assert_eq!(limit.get(), 44);
        (0..100).for_each(|i| limit.learn(true, Duration::ZERO, now + Duration::from_secs(i)));
        assert_eq!(limit.get(), 4);
        (0..5000).for_each(|_| limit.learn(false, Duration::from_millis(20), now));
        assert_eq!(limit.get(), 64);
    }

    #[test]
    fn slow_answers_count_as_overload() {
        let mut limit = Limit::default();
        limit.learn(false, Duration::from_secs(6), Instant::now());
        assert_eq!(limit.get(), 44);
    }
}
