//! A pace: how many reviews may start within a span of time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// At most so many starts within a span.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Starts.
    pub starts: usize,
    /// The span.
    pub within: Duration,
}

/// The starts of the last span.
#[derive(Debug, Default)]
pub(super) struct Starts(VecDeque<Instant>);

impl Starts {
    /// When the next start may be: now or later.
    pub(super) fn next(&mut self, pace: Pace, now: Instant) -> Instant {
        while self.0.front().is_some_and(|start| *start + pace.within <= now) {
            self.0.pop_front();
        }
        match self.0.len().checked_sub(pace.starts) {
            Some(over) => self.0.get(over).map_or(now, |start| *start + pace.within),
            None => now,
        }
    }

    /// Counts a start.
    pub(super) fn start(&mut self, now: Instant) {
        self.0.push_back(now);
    }

    /// Counts a start no more.
    pub(super) fn take_back(&mut self, start: Instant) {
        if let Ok(at) = self.0.binary_search(&start) {
            self.0.remove(at);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_span_has_more_starts_than_the_pace_allows() {
        let (mut starts, now) = (Starts::default(), Instant::now());
        let pace = Pace { starts: 2, within: Duration::from_millis(100) };
        let at = |millis| now + Duration::from_millis(millis);
        starts.start(at(0));
        assert_eq!(starts.next(pace, at(10)), at(10));
        starts.start(at(10));
        assert_eq!(starts.next(pace, at(20)), at(100));
        assert_eq!(starts.next(pace, at(100)), at(100));
        starts.start(at(100));
        assert_eq!(starts.next(pace, at(101)), at(110));
    }

    #[test]
    fn a_start_that_is_taken_back_leaves_its_place() {
        let (mut starts, now) = (Starts::default(), Instant::now());
        let pace = Pace { starts: 1, within: Duration::from_secs(1) };
        starts.start(now);
        assert_eq!(starts.next(pace, now), now + pace.within);
        starts.take_back(now);
        assert!(starts.next(pace, now) == now && starts.is_empty());
    }
}
