//! How many requests were made, how many failed, and how long the slowest took.

use std::time::{Duration, Instant};

/// Requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct RequestCount {
    /// Requests that were sent.
    pub asked: usize,
    /// Requests that were refused, broken off or never answered.
    pub failed: usize,
    /// The longest time until an answer was complete.
    pub slowest: Duration,
    /// The time of each, in the order in which they were answered.
    pub times: Vec<Duration>,
    /// What the first failure was.
    pub first: Option<String>,
}

impl RequestCount {
    /// Counts a request that began at `began`.
    pub fn note(&mut self, began: Instant, failure: Option<String>) {
        let took = began.elapsed();
        self.asked += 1;
        self.slowest = self.slowest.max(took);
        self.times.push(took);
        self.failed += usize::from(failure.is_some());
        self.first = self.first.take().or(failure);
    }

    /// The time within which 99 of 100 were answered; zero of none.
    pub fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let at = (times.len() * 99).div_ceil(100);
        times.get(at.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Adds those of another count.
    pub fn join(&mut self, other: RequestCount) {
        self.asked += other.asked;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
        self.times.extend(other.times);
        self.first = self.first.take().or(other.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_hundred_may_take_longer() {
        let of = |millis: &[u64]| {
            let times = millis.iter().map(|millis| Duration::from_millis(*millis)).collect();
            RequestCount { times, ..RequestCount::default() }.p99().as_millis()
        };
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!([of(&[]), of(&[7]), of(&[7, 9]), of(&hundred)], [0, 7, 9, 99]);
    }
}
