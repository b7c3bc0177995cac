//! Whose turn it is to cause a review: a lane for each payer, and the lane goes first that has had the fewest turns of
//! late. Within a lane that holds for its connections.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::caller::Payer;
use super::pace::{Pace, Starts};

/// Turns count for so long when the next lane is chosen.
const OF_LATE: Duration = Duration::from_secs(10);

/// How many reviews there may be, and how many may wait for a turn.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Reviews in flight.
    pub in_flight: usize,
    /// Reviews of one lane in flight.
    pub in_flight_per_lane: usize,
    /// Starts of reviews.
    pub pace: Pace,
    /// Starts of reviews of one lane.
    pub pace_per_lane: Pace,
    /// Reviews that wait for a turn.
    pub waiting: usize,
    /// Reviews of one lane that wait for a turn.
    pub waiting_per_lane: usize,
}

/// Who wants a turn.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) payer: Payer,
    pub(super) connection: u64,
}

/// What waits. `W` is how its owner is told.
struct Waiter<W> {
    ticket: u64,
    connection: u64,
    waker: W,
}

struct Lane<W> {
    waiters: VecDeque<Waiter<W>>,
    in_flight: usize,
    starts: Starts,
    /// Turns of late, and those of each connection.
    had: u32,
    had_by_connection: HashMap<u64, u32>,
}

impl<W> Default for Lane<W> {
    fn default() -> Self {
        let (starts, had_by_connection) = (Starts::default(), HashMap::new());
        Self { waiters: VecDeque::new(), in_flight: 0, starts, had: 0, had_by_connection }
    }
}

/// All lanes.
pub(super) struct Lanes<W> {
    bounds: Bounds,
    lanes: HashMap<Payer, Lane<W>>,
    /// The lanes in which somebody waits.
    queued: HashSet<Payer>,
    starts: Starts,
    in_flight: usize,
    waiting: usize,
    tickets: u64,
    since: Instant,
}

/// What comes next.
pub(super) enum Next<W> {
    /// This one's turn.
    Turn(W, Wish),
    /// Nobody's before this moment, unless a turn ends.
    Not { before: Instant },
    /// Nobody waits who could have a turn before another one ends.
    Nobody,
}

impl<W> Lanes<W> {
    pub(super) fn new(bounds: Bounds, now: Instant) -> Self {
        Self {
            bounds,
            lanes: HashMap::new(),
            queued: HashSet::new(),
            starts: Starts::default(),
            in_flight: 0,
            waiting: 0,
            tickets: 0,
            since: now,
        }
    }

    /// Lets `waker` wait; returns its ticket, or nothing if there is no room. Where there is none, whoever has the most
    /// waiting makes room for who has less, by the one that came last.
    pub(super) fn wait(&mut self, wish: &Wish, waker: W) -> Option<u64> {
        self.make_room(wish)?;
        let lane = self.lanes.entry(wish.payer.clone()).or_default();
        self.tickets += 1;
        lane.waiters.push_back(Waiter { ticket: self.tickets, connection: wish.connection, waker });
        self.waiting += 1;
        self.queued.insert(wish.payer.clone());
        Some(self.tickets)
    }

    fn make_room(&mut self, wish: &Wish) -> Option<()> {
        let own = self.lanes.get(&wish.payer).map_or(0, |lane| lane.waiters.len());
        if own >= self.bounds.waiting_per_lane {
            let lane = self.lanes.get(&wish.payer)?;
            let ticket = lane.last_of_most(wish.connection)?;
            self.leave(&wish.payer, ticket);
        } else if self.waiting >= self.bounds.waiting {
            let waiting = |payer: &Payer| self.lanes.get(payer).map_or(0, |lane| lane.waiters.len());
            let most = self.queued.iter().max_by_key(|payer| waiting(payer))?;
            let ticket =
                self.lanes.get(most).filter(|lane| lane.waiters.len() > own + 1)?.waiters.back()?.ticket;
            self.leave(&most.clone(), ticket);
        }
        Some(())
    }

    /// Waits no longer, if it still does.
    pub(super) fn leave(&mut self, payer: &Payer, ticket: u64) {
        let Some(lane) = self.lanes.get_mut(payer) else { return };
        let Some(at) = lane.waiters.iter().position(|waiter| waiter.ticket == ticket) else { return };
        lane.waiters.remove(at);
        self.waiting -= 1;
        self.tidy(payer);
    }

    /// Whose turn it is now, which has begun then.
    pub(super) fn next(&mut self, now: Instant) -> Next<W> {
        self.forget_turns(now);
        if self.in_flight >= self.bounds.in_flight {
            return Next::Nobody;
        }
        let from = self.starts.next(self.bounds.pace, now);
        let (mut first, mut before) = (None, None);
        for payer in &self.queued {
            let Some(lane) = self.lanes.get_mut(payer) else { continue };
            if lane.in_flight >= self.bounds.in_flight_per_lane {
                continue;
            }
            let from = lane.starts.next(self.bounds.pace_per_lane, now).max(from);
            let rank = (lane.had, lane.waiters.front().map(|waiter| waiter.ticket));
            if from > now {
                before = Some(before.map_or(from, |known: Instant| known.min(from)));
            } else if first.as_ref().is_none_or(|(least, _)| rank < *least) {
                first = Some((rank, payer.clone()));
            }
        }
        match (first.and_then(|(_, payer)| self.begin(payer, now)), before) {
            (Some((waker, wish)), _) => Next::Turn(waker, wish),
            (None, Some(before)) => Next::Not { before },
            (None, None) => Next::Nobody,
        }
    }

    fn begin(&mut self, payer: Payer, now: Instant) -> Option<(W, Wish)> {
        let lane = self.lanes.get_mut(&payer)?;
        let waiter = lane.take_next()?;
        let connection = waiter.connection;
        lane.in_flight += 1;
        lane.starts.start(now);
        lane.had += 1;
        *lane.had_by_connection.entry(connection).or_default() += 1;
        self.starts.start(now);
        self.in_flight += 1;
        self.waiting -= 1;
        self.tidy(&payer);
        Some((waiter.waker, Wish { payer, connection }))
    }

    /// A turn that began at `start` is over; one that counts for nothing is as if it had not been.
    pub(super) fn end(&mut self, wish: &Wish, start: Instant, counts: bool) {
        self.in_flight -= 1;
        if !counts {
            self.starts.take_back(start);
        }
        let Some(lane) = self.lanes.get_mut(&wish.payer) else { return };
        lane.in_flight -= 1;
        if !counts {
            lane.starts.take_back(start);
            lane.had = lane.had.saturating_sub(1);
            if let Some(had) = lane.had_by_connection.get_mut(&wish.connection) {
                *had = had.saturating_sub(1);
            }
        }
        self.tidy(&wish.payer);
    }

    /// Keeps a lane while it has something to remember.
    fn tidy(&mut self, payer: &Payer) {
        let Some(lane) = self.lanes.get(payer) else { return };
        if lane.waiters.is_empty() {
            self.queued.remove(payer);
            if lane.in_flight == 0 && lane.had == 0 && lane.starts.is_empty() {
                self.lanes.remove(payer);
            }
        }
    }

    fn forget_turns(&mut self, now: Instant) {
        if now < self.since + OF_LATE {
            return;
        }
        self.since = now;
        let pace = self.bounds.pace_per_lane;
        self.lanes.retain(|_, lane| {
            lane.had = 0;
            lane.had_by_connection.clear();
            lane.starts.next(pace, now);
            lane.in_flight > 0 || !lane.waiters.is_empty() || !lane.starts.is_empty()
        });
    }
}

impl<W> Lane<W> {
    /// Takes the waiter whose connection has had the fewest turns of late.
    fn take_next(&mut self) -> Option<Waiter<W>> {
        let had = |waiter: &Waiter<W>| self.had_by_connection.get(&waiter.connection).copied().unwrap_or(0);
        let (at, _) = self.waiters.iter().enumerate().min_by_key(|(_, waiter)| had(waiter))?;
        self.waiters.remove(at)
    }

    /// The newest waiter of the connection with the most, if that one has more than `connection` would have.
    fn last_of_most(&self, connection: u64) -> Option<u64> {
        let mut waiting: HashMap<u64, (usize, u64)> = HashMap::new();
        for waiter in &self.waiters {
            let (number, last) = waiting.entry(waiter.connection).or_default();
            (*number, *last) = (*number + 1, waiter.ticket);
        }
        let own = waiting.get(&connection).map_or(0, |(number, _)| *number);
        let (number, last) = waiting.into_values().max()?;
        (number > own + 1).then_some(last)
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
