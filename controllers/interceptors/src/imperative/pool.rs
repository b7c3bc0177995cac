//! Who is evicted next: lanes take turns, so that a budget with many pods does not hold the slots of one with few.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use drydock_runtime::ObjectKey;
use tokio::time::Instant;

use super::limit::Limit;

/// Pods that the same budget covers; the pods of a namespace without one.
pub(crate) type Lane = ObjectKey;

#[derive(Default)]
pub(crate) struct Pool {
    lanes: HashMap<Lane, VecDeque<ObjectKey>>,
    /// Lanes with somebody in them, in the order of their turns.
    turns: VecDeque<Lane>,
    queued: HashSet<ObjectKey>,
    in_flight: usize,
    limit: Limit,
    /// After the host asked to wait.
    paused_until: Option<Instant>,
}

impl Pool {
    /// Takes in a request, unless it waits already.
    pub(crate) fn submit(&mut self, lane: Lane, key: ObjectKey) {
        if !self.queued.insert(key.clone()) {
            return;
        }
        let queue = self.lanes.entry(lane.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(lane);
        }
        queue.push_back(key);
    }

    /// The next one to evict, if a slot is free.
    pub(crate) fn take(&mut self, now: Instant) -> Option<ObjectKey> {
        if self.in_flight >= self.limit.get() || self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let lane = self.turns.pop_front()?;
        let queue = self.lanes.get_mut(&lane)?;
        let key = queue.pop_front()?;
        if queue.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        self.queued.remove(&key);
        self.in_flight += 1;
        Some(key)
    }

    /// Frees a slot, and learns from how the host answered.
    pub(crate) fn finish(&mut self, overload: bool, latency: Duration, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.limit.learn(overload, latency, now);
    }

    /// Holds everything back until then.
    pub(crate) fn pause(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// When the pause ends, if there is one.
    pub(crate) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.paused_until.filter(|until| *until > now)
    }

    /// Evictions in flight, those that wait, and the limit.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        (self.in_flight, self.queued.len(), self.limit.get())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    fn pool(lanes: &[(&str, usize)]) -> Pool {
        let mut pool = Pool::default();
        for (lane, count) in lanes {
            (0..*count).for_each(|i| pool.submit(key(lane), key(&format!("{lane}{i}"))));
        }
        pool
    }

    #[test]
    fn lanes_take_turns() {
        let mut pool = pool(&[("a", 3), ("b", 1)]);
        let order: Vec<String> =
            std::iter::from_fn(|| pool.take(Instant::now())).map(|key| key.name.to_string()).collect();
        assert_eq!(order, ["a0", "b0", "a1", "a2"]);
    }

    #[test]
    fn no_more_are_in_flight_than_the_limit() {
        let mut pool = pool(&[("a", 100)]);
        let now = Instant::now();
        assert_eq!(std::iter::from_fn(|| pool.take(now)).count(), 64);
        pool.finish(false, Duration::ZERO, now);
        assert_eq!(std::iter::from_fn(|| pool.take(now)).count(), 1);
        assert_eq!(pool.load(), (64, 35, 64));
    }

    #[test]
    fn request_that_waits_is_not_queued_twice() {
        let mut pool = pool(&[("a", 1)]);
        pool.submit(key("a"), key("a0"));
        pool.submit(key("b"), key("a0"));
        assert_eq!(std::iter::from_fn(|| pool.take(Instant::now())).count(), 1);
    }

    #[test]
    fn pause_holds_everything_until_its_end() {
        let mut pool = pool(&[("a", 1)]);
        let now = Instant::now();
        pool.pause(now + Duration::from_secs(3));
        pool.pause(now + Duration::from_secs(1));
        assert!(pool.take(now + Duration::from_secs(2)).is_none());
        assert!(pool.take(now + Duration::from_secs(3)).is_some());
    }
}
