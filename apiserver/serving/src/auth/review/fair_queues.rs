//! The order of reviews: a queue for each payer, and the queue with the fewest recent permits goes first.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::fair_queue::{FairQueue, PermitWaiter};
use super::payer::Payer;
use super::rate::{Rate, RateMeter};

/// How often the recent permits are forgotten. Until then they count when the next queue is chosen.
const OF_LATE: Duration = Duration::from_secs(10);

/// How many reviews there may be, and how many requests may wait for one.
#[derive(Clone, Copy, Debug)]
pub struct ReviewBounds {
    /// Reviews in flight.
    pub in_flight: usize,
    /// Reviews of one queue in flight.
    pub in_flight_per_payer: usize,
    /// Starts of reviews.
    pub rate: Rate,
    /// Starts of reviews of one queue.
    pub rate_per_payer: Rate,
    /// Requests that wait to start a review.
    pub waiting: usize,
    /// Those of one queue.
    pub waiting_per_payer: usize,
    /// Requests that wait for a review which another one started. No queue has more of them than it leaves free.
    pub joined: usize,
    /// Those of one queue.
    pub joined_per_payer: usize,
}

/// A request for a permit.
#[derive(Clone, Debug)]
pub(super) struct PermitRequest {
    pub(super) payer: Payer,
    /// Its connection: those of one payer take turns.
    pub(super) connection: u64,
}

/// All queues. A `W` wakes a request that waits.
pub(super) struct FairQueues<W> {
    bounds: ReviewBounds,
    queues: HashMap<Payer, FairQueue<W>>,
    /// The queues in which requests wait.
    queued: HashSet<Payer>,
    meter: RateMeter,
    in_flight: usize,
    waiting: usize,
    joined: usize,
    tickets: u64,
    since: Instant,
}

/// What comes next.
pub(super) enum NextPermit<W> {
    /// This one has its permit.
    Permit(W, PermitRequest),
    /// No permit is free before this moment, unless one is given back.
    Not { before: Instant },
    /// No request waits, or no permit is free until one is given back.
    Nobody,
}

impl<W> FairQueues<W> {
    pub(super) fn new(bounds: ReviewBounds, now: Instant) -> Self {
        Self {
            bounds,
            queues: HashMap::new(),
            queued: HashSet::new(),
            meter: RateMeter::default(),
            in_flight: 0,
            waiting: 0,
            joined: 0,
            tickets: 0,
            since: now,
        }
    }

    /// Enqueues `waker`; returns its ticket, or `None` if there is no room. If all queues together are full, the
    /// newest waiter of the longest queue gives way to a queue that is at least two shorter. If the payer's own queue
    /// is full, a waiter of its busiest connection may give way ([`FairQueue::displaced_by`]).
    pub(super) fn wait(&mut self, request: &PermitRequest, waker: W) -> Option<u64> {
        self.make_room(request)?;
        let queue = self.queues.entry(request.payer.clone()).or_default();
        self.tickets += 1;
        queue.push(PermitWaiter { ticket: self.tickets, connection: request.connection, waker });
        self.waiting += 1;
        self.queued.insert(request.payer.clone());
        Some(self.tickets)
    }

    fn make_room(&mut self, request: &PermitRequest) -> Option<()> {
        let waiting = |payer: &Payer| self.queues.get(payer).map_or(0, FairQueue::waiting);
        let own = waiting(&request.payer);
        if own >= self.bounds.waiting_per_payer {
            let displaced = self.queues.get(&request.payer)?.displaced_by(request.connection)?;
            self.leave(&request.payer, displaced);
        } else if self.waiting >= self.bounds.waiting {
            let most = self.queued.iter().max_by_key(|payer| waiting(payer))?.clone();
            let displaced = self.queues.get(&most).filter(|queue| queue.waiting() > own + 1)?.newest()?;
            self.leave(&most, displaced);
        }
        Some(())
    }

    /// Dequeues one, if it still waits.
    pub(super) fn leave(&mut self, payer: &Payer, ticket: u64) {
        let Some(queue) = self.queues.get_mut(payer) else { return };
        if queue.remove(ticket) {
            self.waiting -= 1;
            self.tidy(payer);
        }
    }

    /// Counts a request of `payer` that waits for a review which another one started; returns `false` if there is no
    /// room.
    pub(super) fn join(&mut self, payer: &Payer) -> bool {
        let most = self.bounds.joined_per_payer.min(self.bounds.joined - self.joined);
        let own = self.queues.get(payer).map_or(0, |queue| queue.joined);
        let may = own < most;
        if may {
            self.queues.entry(payer.clone()).or_default().joined += 1;
            self.joined += 1;
        }
        may
    }

    /// A request that had joined waits no longer.
    pub(super) fn part(&mut self, payer: &Payer) {
        let Some(queue) = self.queues.get_mut(payer) else { return };
        queue.joined -= 1;
        self.joined -= 1;
        self.tidy(payer);
    }

    /// Takes the next permit, if one is free now.
    pub(super) fn next(&mut self, now: Instant) -> NextPermit<W> {
        self.forget_turns(now);
        if self.in_flight >= self.bounds.in_flight {
            return NextPermit::Nobody;
        }
        let from = self.meter.next(self.bounds.rate, now);
        let (mut first, mut before) = (None, None);
        for payer in &self.queued {
            let Some(queue) = self.queues.get(payer) else { continue };
            if queue.in_flight >= self.bounds.in_flight_per_payer {
                continue;
            }
            let from = queue.meter.next(self.bounds.rate_per_payer, now).max(from);
            let rank = (queue.had, queue.oldest());
            if from > now {
                before = Some(before.map_or(from, |known: Instant| known.min(from)));
            } else if first.as_ref().is_none_or(|(least, _)| rank < *least) {
                first = Some((rank, payer.clone()));
            }
        }
        match (first.and_then(|(_, payer)| self.begin(payer, now)), before) {
            (Some((waker, request)), _) => NextPermit::Permit(waker, request),
            (None, Some(before)) => NextPermit::Not { before },
            (None, None) => NextPermit::Nobody,
        }
    }

    fn begin(&mut self, payer: Payer, now: Instant) -> Option<(W, PermitRequest)> {
        let queue = self.queues.get_mut(&payer)?;
        let PermitWaiter { connection, waker, .. } = queue.begin()?;
        queue.meter.start(self.bounds.rate_per_payer, now);
        self.meter.start(self.bounds.rate, now);
        self.in_flight += 1;
        self.waiting -= 1;
        self.tidy(&payer);
        Some((waker, PermitRequest { payer, connection }))
    }

    /// Gives back a permit that was taken at `start`. With `counts: false` it is as if it had not been taken.
    pub(super) fn end(&mut self, request: &PermitRequest, start: Instant, counts: bool) {
        let ReviewBounds { rate, rate_per_payer, .. } = self.bounds;
        self.in_flight -= 1;
        if !counts {
            self.meter.take_back(rate, start);
        }
        let Some(queue) = self.queues.get_mut(&request.payer) else { return };
        queue.in_flight -= 1;
        if !counts {
            queue.meter.take_back(rate_per_payer, start);
            queue.take_back(request.connection);
        }
        self.tidy(&request.payer);
    }

    /// Keeps a queue while it has something to remember.
    fn tidy(&mut self, payer: &Payer) {
        let Some(queue) = self.queues.get(payer) else { return };
        if queue.waiting() == 0 {
            self.queued.remove(payer);
        }
        if queue.is_idle() {
            self.queues.remove(payer);
        }
    }

    fn forget_turns(&mut self, now: Instant) {
        if now < self.since + OF_LATE {
            return;
        }
        self.since = now;
        self.meter.forget(now);
        self.queues.retain(|_, queue| {
            queue.forget_turns();
            queue.meter.forget(now);
            !queue.is_idle()
        });
    }
}

#[cfg(test)]
#[path = "fair_queues_tests.rs"]
mod tests;
