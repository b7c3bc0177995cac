//! Which request gets a seat, and which waits: a state machine without clock or I/O.
//!
//! Invariant: the seats that are held, plus the seats that each level never lends and does not hold itself, are
//! never more than all seats.

use super::level::{FlowKey, LevelQueues, Ticket};
use super::share::{LEVELS, Share, shares};

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its priority level, as an index into [`super::priority_level::LIMITED`].
    pub level: usize,
    /// Its flow.
    pub flow: FlowKey,
    /// Seats.
    pub seats: u32,
}

/// What becomes of a request that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has its seats.
    Granted,
    /// It waits, or was served just now: then it is among the served.
    Waits(Ticket),
    /// Too many requests of its flow, or of its level, wait already.
    QueueFull,
}

/// The seats of all levels, and the requests that wait for them; the caller wakes a `W` when its request has been
/// served.
pub struct Scheduler<W> {
    levels: [LevelQueues<W>; LEVELS],
    seats: u32,
    /// Requests that wait.
    waiting: usize,
    tickets: Ticket,
    scarce: Scarce,
}

/// The seats of which there are too few for the request that is next. Until it has been served, no other request
/// takes such seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scarce {
    Nothing,
    /// Seats to borrow.
    Borrowed,
    /// Seats of a level's own share, which others have borrowed.
    Owed,
}

/// A request that has waited and has its seats now.
pub type Served<W> = (W, Claim);

impl<W> Scheduler<W> {
    /// All of `total` seats are free.
    pub fn new(total: u32) -> Self {
        let shares = shares(total);
        let seats = shares.iter().map(|share| share.nominal).sum();
        Self { levels: shares.map(LevelQueues::new), seats, waiting: 0, tickets: 0, scarce: Scarce::Nothing }
    }

    /// The level of this index.
    pub fn level(&self, level: usize) -> Option<&LevelQueues<W>> {
        self.levels.get(level)
    }

    /// Whether one more request of a flow may wait.
    pub fn has_room(&self, level: usize, flow: FlowKey) -> bool {
        self.levels.get(level).is_some_and(|level| level.has_room(flow))
    }

    /// A request comes. It waits with `waiter` if it cannot be served at once.
    pub fn arrive(
        &mut self,
        claim: Claim,
        waiter: impl FnOnce() -> W,
        served: &mut Vec<Served<W>>,
    ) -> Arrival {
        let free = self.free(claim.level);
        let Some(level) = self.levels.get_mut(claim.level) else { return Arrival::Granted };
        let is_next = level.waiting == 0 && level.used + claim.seats <= self.scarce.leaves(level.share);
        if is_next && level.may_take(claim.flow, claim.seats, free) {
            level.take(claim.flow, claim.seats);
            return Arrival::Granted;
        }
        if !level.has_room(claim.flow) {
            return Arrival::QueueFull;
        }
        self.tickets += 1;
        level.enqueue(claim.flow, claim.seats, self.tickets, waiter());
        self.waiting += 1;
        let ticket = self.tickets;
        self.dispatch(served);
        Arrival::Waits(ticket)
    }

    /// A request gives its seats back.
    pub fn release(&mut self, claim: Claim, served: &mut Vec<Served<W>>) {
        if let Some(level) = self.levels.get_mut(claim.level) {
            level.give_back(claim.flow, claim.seats);
        }
        self.dispatch(served);
    }

    /// A request waits no longer; `false` if it did not wait.
    pub fn leave(&mut self, claim: Claim, ticket: Ticket, served: &mut Vec<Served<W>>) -> bool {
        let left = self.levels.get_mut(claim.level).is_some_and(|level| level.leave(claim.flow, ticket));
        self.waiting -= usize::from(left);
        if left {
            self.dispatch(served);
        }
        left
    }

    /// Serves every request that is next: first within the levels' shares, then with borrowed seats. Both times
    /// higher levels come before lower ones.
    fn dispatch(&mut self, served: &mut Vec<Served<W>>) {
        self.scarce = Scarce::Nothing;
        if self.waiting == 0 {
            return;
        }
        for level in 0..LEVELS {
            self.grant(level, Scarce::Owed, served);
        }
        for level in 0..LEVELS {
            if self.scarce == Scarce::Nothing {
                self.grant(level, Scarce::Borrowed, served);
            }
        }
    }

    /// Serves the requests of a level in order, with seats of its own share or with borrowed ones as well, while there
    /// are such seats for the next one.
    fn grant(&mut self, index: usize, seats: Scarce, served: &mut Vec<Served<W>>) {
        loop {
            let free = self.free(index);
            let Some(level) = self.levels.get_mut(index) else { return };
            let Some(head) = level.next(free) else { return };
            let after = level.used + head.seats;
            if after > if seats == Scarce::Owed { level.share.nominal } else { level.share.upper } {
                return;
            }
            if head.seats > free || after > self.scarce.leaves(level.share) {
                self.scarce = self.scarce.max(seats);
                return;
            }
            let Some((waiter, seats)) = level.grant_next(head.flow) else { return };
            self.waiting -= 1;
            served.push((waiter, Claim { level: index, flow: head.flow, seats }));
        }
    }

    /// Returns how many seats a level may take: those that no other level holds or keeps for itself.
    fn free(&self, index: usize) -> u32 {
        let Some(level) = self.levels.get(index) else { return 0 };
        let others = self.levels.iter().enumerate().filter(|(other, _)| *other != index);
        let gone: u32 = others.map(|(_, other)| other.used.max(other.share.lower)).sum();
        let free = self.seats.saturating_sub(gone + level.used);
        free.min(level.share.upper.saturating_sub(level.used))
    }
}

impl Scarce {
    /// Returns how many seats a level may hold at most until the request that is next has been served.
    fn leaves(self, share: Share) -> u32 {
        match self {
            Self::Nothing => share.upper,
            Self::Borrowed => share.nominal,
            Self::Owed => share.lower,
        }
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
