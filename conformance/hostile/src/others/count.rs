//! How many requests were made, how many failed, and how long the slowest took.

use std::time::{Duration, Instant};

/// Requests of one kind.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// All.
    pub asked: usize,
    /// Those that were refused, broken off or never answered.
    pub failed: usize,
    /// The longest time until an answer was complete.
    pub slowest: Duration,
    /// What the first failure was.
    pub first: Option<String>,
}

impl Count {
    /// Counts one that began then.
    pub fn note(&mut self, began: Instant, failure: Option<String>) {
        self.asked += 1;
        self.slowest = self.slowest.max(began.elapsed());
        self.failed += usize::from(failure.is_some());
        self.first = self.first.take().or(failure);
    }

    /// Adds others.
    pub fn join(&mut self, other: Count) {
        self.asked += other.asked;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
        self.first = self.first.take().or(other.first);
    }
}
