//! Who may start a review: a lane for each payer, and the lane goes first that has had the fewest turns of late.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::lane::{Lane, Waiter};
use super::pace::{Pace, Starts};
use super::payer::Payer;

/// Turns count for so long when the next lane is chosen.
const OF_LATE: Duration = Duration::from_secs(10);

/// How many reviews there may be, and how many requests may wait for one.
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
    /// Requests that wait to start a review.
    pub waiting: usize,
    /// Those of one lane.
    pub waiting_per_lane: usize,
    /// Requests that wait for a review which another one started. No lane has more of them than it leaves free.
    pub joined: usize,
    /// Those of one lane.
    pub joined_per_lane: usize,
}

/// Who wants to start a review.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) payer: Payer,
    /// Connections of one payer take turns.
    pub(super) connection: u64,
}

/// All lanes. `W` wakes one that waits.
pub(super) struct Lanes<W> {
    bounds: Bounds,
    lanes: HashMap<Payer, Lane<W>>,
    /// The lanes in which somebody waits.
    queued: HashSet<Payer>,
    starts: Starts,
    in_flight: usize,
    waiting: usize,
    joined: usize,
    tickets: u64,
    since: Instant,
}

/// What comes next.
pub(super) enum Next<W> {
    /// This one's turn has begun.
    Turn(W, Wish),
    /// Nobody's turn begins before this moment, unless another one ends.
    Not { before: Instant },
    /// Nobody waits, or no turn begins before another one ends.
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
            joined: 0,
            tickets: 0,
            since: now,
        }
    }

    /// Enqueues `waker`; returns its ticket, or `None` if there is no room. When all places are taken, the newest waiter
    /// of the lane with the most makes room for a lane with fewer; when those of one lane are taken, that of the
    /// connection with the most for a connection with fewer ([`Lane::displaced_by`]).
    pub(super) fn wait(&mut self, wish: &Wish, waker: W) -> Option<u64> {
        self.make_room(wish)?;
        let lane = self.lanes.entry(wish.payer.clone()).or_default();
        self.tickets += 1;
        lane.push(Waiter { ticket: self.tickets, connection: wish.connection, waker });
        self.waiting += 1;
        self.queued.insert(wish.payer.clone());
        Some(self.tickets)
    }

    fn make_room(&mut self, wish: &Wish) -> Option<()> {
        let waiting = |payer: &Payer| self.lanes.get(payer).map_or(0, Lane::waiting);
        let own = waiting(&wish.payer);
        if own >= self.bounds.waiting_per_lane {
            let displaced = self.lanes.get(&wish.payer)?.displaced_by(wish.connection)?;
            self.leave(&wish.payer, displaced);
        } else if self.waiting >= self.bounds.waiting {
            let most = self.queued.iter().max_by_key(|payer| waiting(payer))?.clone();
            let displaced = self.lanes.get(&most).filter(|lane| lane.waiting() > own + 1)?.newest()?;
            self.leave(&most, displaced);
        }
        Some(())
    }

    /// Dequeues one, if it still waits.
    pub(super) fn leave(&mut self, payer: &Payer, ticket: u64) {
        let Some(lane) = self.lanes.get_mut(payer) else { return };
        if lane.remove(ticket) {
            self.waiting -= 1;
            self.tidy(payer);
        }
    }

    /// Counts a request of `payer` that waits for a review which another one started; returns whether it may.
    pub(super) fn join(&mut self, payer: &Payer) -> bool {
        let most = self.bounds.joined_per_lane.min(self.bounds.joined - self.joined);
        let own = self.lanes.get(payer).map_or(0, |lane| lane.joined);
        let may = own < most;
        if may {
            self.lanes.entry(payer.clone()).or_default().joined += 1;
            self.joined += 1;
        }
        may
    }

    /// A request that had joined waits no longer.
    pub(super) fn part(&mut self, payer: &Payer) {
        let Some(lane) = self.lanes.get_mut(payer) else { return };
        lane.joined -= 1;
        self.joined -= 1;
        self.tidy(payer);
    }

    /// Begins the next turn, if one may begin now.
    pub(super) fn next(&mut self, now: Instant) -> Next<W> {
        self.forget_turns(now);
        if self.in_flight >= self.bounds.in_flight {
            return Next::Nobody;
        }
        let from = self.starts.next(self.bounds.pace, now);
        let (mut first, mut before) = (None, None);
        for payer in &self.queued {
            let Some(lane) = self.lanes.get(payer) else { continue };
            if lane.in_flight >= self.bounds.in_flight_per_lane {
                continue;
            }
            let from = lane.starts.next(self.bounds.pace_per_lane, now).max(from);
            let rank = (lane.had, lane.oldest());
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
        let Waiter { connection, waker, .. } = lane.begin()?;
        lane.starts.start(self.bounds.pace_per_lane, now);
        self.starts.start(self.bounds.pace, now);
        self.in_flight += 1;
        self.waiting -= 1;
        self.tidy(&payer);
        Some((waker, Wish { payer, connection }))
    }

    /// Ends a turn that began at `start`. With `counts: false` it is as if it had not begun.
    pub(super) fn end(&mut self, wish: &Wish, start: Instant, counts: bool) {
        let Bounds { pace, pace_per_lane, .. } = self.bounds;
        self.in_flight -= 1;
        if !counts {
            self.starts.take_back(pace, start);
        }
        let Some(lane) = self.lanes.get_mut(&wish.payer) else { return };
        lane.in_flight -= 1;
        if !counts {
            lane.starts.take_back(pace_per_lane, start);
            lane.take_back(wish.connection);
        }
        self.tidy(&wish.payer);
    }

    /// Keeps a lane while it has something to remember.
    fn tidy(&mut self, payer: &Payer) {
        let Some(lane) = self.lanes.get(payer) else { return };
        if lane.waiting() == 0 {
            self.queued.remove(payer);
        }
        if lane.is_idle() {
            self.lanes.remove(payer);
        }
    }

    fn forget_turns(&mut self, now: Instant) {
        if now < self.since + OF_LATE {
            return;
        }
        self.since = now;
        self.starts.forget(now);
        self.lanes.retain(|_, lane| {
            lane.forget_turns();
            lane.starts.forget(now);
            !lane.is_idle()
        });
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
