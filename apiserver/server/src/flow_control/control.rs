//! Grants, queues or refuses requests as they come, and hands over seats as they are given back.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use drydock_serving::request::user::User;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::figures::{Figures, InFlight, LevelFigures, RequestCounts};
use super::level::{FlowKey, Ticket};
use super::priority_level::{LIMITED, PriorityLevel, PriorityLevels};
use super::scheduler::{Arrival, Claim, Scheduler, Served};
use super::seats::{Queued, Seats};
use super::share::{LEVELS, Share, shares};
use super::work_estimate::{self, Listed, RequestWork};

/// Longest wait (k8s.io/apiserver pkg/server/filters/priority-and-fairness.go, getRequestWaitContext).
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// A request waits at most for its time divided by this (same source).
const PART_OF_TIME: u32 = 4;
/// Maximum seats: more than any machine has use for.
const MOST_SEATS: usize = 1_000_000;

/// --max-requests-inflight and --max-mutating-requests-inflight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightLimits {
    /// Maximum reading requests.
    pub reading: usize,
    /// Maximum mutating requests.
    pub mutating: usize,
}

impl InFlightLimits {
    /// Returns the number of seats: both limits together. `None` means no limit, if either is 0.
    fn seats(self) -> Option<u32> {
        if self.reading == 0 || self.mutating == 0 {
            return None;
        }
        u32::try_from(self.reading.saturating_add(self.mutating).min(MOST_SEATS)).ok()
    }
}

/// Decides which requests are served when not all can be.
pub struct FlowControl {
    levels: PriorityLevels,
    shares: [Share; LEVELS],
    /// Absent where there is no limit.
    queues: Option<Mutex<Queues>>,
    /// Hashes the names of flows: to keep the names would cost every request an allocation.
    flows: RandomState,
    figures: Figures,
}

/// The state behind the lock. Dropping [`Seats`] takes the lock, so they are never sent or dropped while it is held.
struct Queues {
    scheduler: Scheduler<SeatWaiter>,
    counts: [RequestCounts; LEVELS],
}

/// Wakes a request with its seats. If the request no longer waits, they are dropped, and so given back.
struct SeatWaiter {
    seats: oneshot::Sender<Seats>,
    mutating: bool,
}

/// Too many requests are in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRequests;

impl FlowControl {
    /// Flow control with all seats free.
    pub fn new(levels: PriorityLevels, limits: InFlightLimits) -> Self {
        let seats = limits.seats();
        let queues = |seats| Queues { scheduler: Scheduler::new(seats), counts: Default::default() };
        Self {
            levels,
            shares: shares(seats.unwrap_or_default()),
            queues: seats.map(|seats| Mutex::new(queues(seats))),
            flows: RandomState::new(),
            figures: Figures::default(),
        }
    }

    /// The level of a user.
    pub fn level_of(&self, user: &User) -> PriorityLevel {
        self.levels.of(user)
    }

    /// Takes the seats of a user's request, and waits for them if necessary: at most a quarter of `time`, and 15 s.
    /// `listed_bytes` returns about how many bytes a list reads, counted no further than its second argument. Cancel
    /// safe.
    pub async fn acquire(
        self: &Arc<Self>,
        of: PriorityLevel,
        user: &User,
        work: RequestWork<'_>,
        time: Duration,
        listed_bytes: impl FnOnce(&Listed, usize) -> usize,
    ) -> Result<Seats, TooManyRequests> {
        let mutating = work.info.verb.is_mutating();
        let level = LIMITED.iter().position(|level| *level == of);
        let (Some(level), Some(queues)) = (level, &self.queues) else {
            return Ok(Seats::new(self.clone(), None, mutating));
        };
        let flow = self.flows.hash_one(user.flow());
        let widest = self.shares.get(level).map_or(1, |share| share.widest());
        let listed = work.listed();
        // Looking at the objects of a list costs more than the refusal.
        if listed.is_some() && !queues.lock().has_room(level, flow) {
            return Err(TooManyRequests);
        }
        let listed_bytes = listed.map(|listed| listed_bytes(&listed, work_estimate::most_bytes(widest)));
        let seats = work.seats(widest, listed_bytes);
        let claim = Claim { level, flow, seats };
        let mut receiver = None;
        match self.arrive(queues, claim, mutating, &mut receiver) {
            Arrival::Granted => {
                self.figures.waited(level, true, Duration::ZERO);
                Ok(Seats::new(self.clone(), Some(claim), mutating))
            }
            Arrival::QueueFull => Err(TooManyRequests),
            Arrival::Waits(ticket) => {
                let longest = LONGEST_WAIT.min(time / PART_OF_TIME);
                Queued::new(self, claim, ticket).wait(receiver, longest).await
            }
        }
    }

    /// Requests that have their seats.
    pub fn in_flight(&self) -> &InFlight {
        &self.figures.in_flight
    }

    /// The figures of each level; none where there is no limit.
    pub fn figures(&self) -> Vec<(PriorityLevel, LevelFigures)> {
        let Some(queues) = &self.queues else { return Vec::new() };
        let queues = queues.lock();
        let all = LIMITED.iter().zip(&queues.counts).enumerate();
        let figures = all.filter_map(|(index, (of, counts))| {
            let level = queues.scheduler.level(index)?;
            let waits = self.figures.waits(index)?;
            Some((*of, LevelFigures::of(level, *counts, waits)))
        });
        figures.collect()
    }

    fn arrive(
        self: &Arc<Self>,
        queues: &Mutex<Queues>,
        claim: Claim,
        mutating: bool,
        receiver: &mut Option<oneshot::Receiver<Seats>>,
    ) -> Arrival {
        let waiter = || {
            let (seats, waits) = oneshot::channel();
            *receiver = Some(waits);
            SeatWaiter { seats, mutating }
        };
        let mut served = Vec::new();
        let arrival = {
            let queues = &mut *queues.lock();
            let arrival = queues.scheduler.arrive(claim, waiter, &mut served);
            match arrival {
                Arrival::Granted => queues.count(claim, |counts| counts.dispatched += 1),
                Arrival::QueueFull => queues.count(claim, |counts| counts.queue_full += 1),
                Arrival::Waits(_) => queues.count_served(&served),
            }
            arrival
        };
        self.hand_over(served);
        arrival
    }

    /// Gives back the seats of a request.
    pub(super) fn release(self: &Arc<Self>, claim: Claim) {
        self.change(|queues, served| queues.scheduler.release(claim, served));
    }

    /// Removes a request that no longer waits, because it is out of time or its client is gone. Returns `false` if it
    /// did not wait.
    pub(super) fn leave(self: &Arc<Self>, claim: Claim, ticket: Ticket, out_of_time: bool) -> bool {
        let mut left = false;
        self.change(|queues, served| {
            left = queues.scheduler.leave(claim, ticket, served);
            if left {
                queues.count(claim, |counts| match out_of_time {
                    true => counts.timed_out += 1,
                    false => counts.cancelled += 1,
                });
            }
        });
        left
    }

    /// Records how long a request has waited, and whether it was served then.
    pub(super) fn waited(&self, claim: Claim, served: bool, time: Duration) {
        self.figures.waited(claim.level, served, time);
    }

    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Queues, &mut Vec<Served<SeatWaiter>>)) {
        let Some(queues) = &self.queues else { return };
        let mut served = Vec::new();
        {
            let queues = &mut *queues.lock();
            change(queues, &mut served);
            queues.count_served(&served);
        }
        self.hand_over(served);
    }

    fn hand_over(self: &Arc<Self>, served: Vec<Served<SeatWaiter>>) {
        for (waiter, claim) in served {
            let seats = Seats::new(self.clone(), Some(claim), waiter.mutating);
            let _given_back = waiter.seats.send(seats);
        }
    }
}

impl Queues {
    /// Whether one more request of a flow may wait; counts a refusal if not. In that case other requests of its level
    /// wait already, so that it could not be served at once either.
    fn has_room(&mut self, level: usize, flow: FlowKey) -> bool {
        let has_room = self.scheduler.has_room(level, flow);
        if !has_room {
            self.count(Claim { level, flow, seats: 0 }, |counts| counts.queue_full += 1);
        }
        has_room
    }

    fn count(&mut self, claim: Claim, count: impl FnOnce(&mut RequestCounts)) {
        self.counts.get_mut(claim.level).map(count);
    }

    fn count_served(&mut self, served: &[Served<SeatWaiter>]) {
        for (_, claim) in served {
            self.count(*claim, |counts| counts.dispatched += 1);
        }
    }
}
