//! The reviews that one payer waits for, and which of its connections is next: the one with the fewest recent
//! permits.

use std::collections::{HashMap, VecDeque};

use super::rate::RateMeter;

/// One payer's waiters, permits and joiners.
pub(super) struct FairQueue<W> {
    /// Oldest first.
    waiters: VecDeque<PermitWaiter<W>>,
    /// The connections that wait, or have had a recent permit.
    connections: HashMap<u64, Load>,
    /// Reviews in flight.
    pub(super) in_flight: usize,
    /// Requests that wait for a review that another one began.
    pub(super) joined: usize,
    pub(super) meter: RateMeter,
    /// Recent permits.
    pub(super) had: u32,
}

/// A request that waits for a permit. `W` wakes it.
pub(super) struct PermitWaiter<W> {
    pub(super) ticket: u64,
    pub(super) connection: u64,
    pub(super) waker: W,
}

/// What a connection takes of its queue. The connection with the greater load gives way to one with a smaller load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    waiting: usize,
    had: u32,
}

impl<W> Default for FairQueue<W> {
    fn default() -> Self {
        let (waiters, connections, meter) = (VecDeque::new(), HashMap::new(), RateMeter::default());
        Self { waiters, connections, in_flight: 0, joined: 0, meter, had: 0 }
    }
}

impl<W> FairQueue<W> {
    /// How many wait for a permit.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The ticket of the one that has waited longest.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.waiters.front().map(|waiter| waiter.ticket)
    }

    /// The ticket of the one that came last.
    pub(super) fn newest(&self) -> Option<u64> {
        self.waiters.back().map(|waiter| waiter.ticket)
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.in_flight + self.joined == 0 && self.had == 0 && self.meter.is_empty()
    }

    /// Enqueues one.
    pub(super) fn push(&mut self, waiter: PermitWaiter<W>) {
        self.connections.entry(waiter.connection).or_default().waiting += 1;
        self.waiters.push_back(waiter);
    }

    /// Dequeues the one with this ticket; returns whether it waited.
    pub(super) fn remove(&mut self, ticket: u64) -> bool {
        let at = self.waiters.iter().position(|waiter| waiter.ticket == ticket);
        at.and_then(|at| self.take(at)).is_some()
    }

    /// Dequeues the next one, and counts its permit.
    pub(super) fn begin(&mut self) -> Option<PermitWaiter<W>> {
        let had =
            |waiter: &PermitWaiter<W>| self.connections.get(&waiter.connection).map_or(0, |load| load.had);
        let at = match self.connections.len() {
            0 | 1 => 0,
            _ => self.waiters.iter().enumerate().min_by_key(|(_, waiter)| had(waiter))?.0,
        };
        let waiter = self.take(at)?;
        self.connections.entry(waiter.connection).or_default().had += 1;
        self.had += 1;
        self.in_flight += 1;
        Some(waiter)
    }

    /// Stops counting a permit of `connection`.
    pub(super) fn take_back(&mut self, connection: u64) {
        self.had = self.had.saturating_sub(1);
        if let Some(load) = self.connections.get_mut(&connection) {
            load.had = load.had.saturating_sub(1);
        }
        self.forget_if_idle(connection);
    }

    /// Forgets all recent permits.
    pub(super) fn forget_turns(&mut self) {
        self.had = 0;
        self.connections.values_mut().for_each(|load| load.had = 0);
        self.connections.retain(|_, load| load.waiting > 0);
    }

    /// Returns the newest waiter of the waiting connection with the greatest [`Load`], if that is greater than the
    /// load of `connection` with one more waiter.
    pub(super) fn displaced_by(&self, connection: u64) -> Option<u64> {
        let Load { waiting, had } = self.connections.get(&connection).copied().unwrap_or_default();
        let waits = self.connections.iter().filter(|(_, load)| load.waiting > 0);
        let (most, load) = waits.max_by_key(|(_, load)| **load)?;
        let newest = self.waiters.iter().rfind(|waiter| waiter.connection == *most)?;
        (*load > Load { waiting: waiting + 1, had }).then_some(newest.ticket)
    }

    fn take(&mut self, at: usize) -> Option<PermitWaiter<W>> {
        let waiter = self.waiters.remove(at)?;
        if let Some(load) = self.connections.get_mut(&waiter.connection) {
            load.waiting -= 1;
        }
        self.forget_if_idle(waiter.connection);
        Some(waiter)
    }

    fn forget_if_idle(&mut self, connection: u64) {
        if self.connections.get(&connection) == Some(&Load::default()) {
            self.connections.remove(&connection);
        }
    }
}
