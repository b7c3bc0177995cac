//! Seats that a request holds, and its waiting for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::control::{FlowControl, TooManyRequests};
use super::level::Ticket;
use super::scheduler::Claim;

/// The seats of a request in flight, which are given back when this is dropped.
pub struct Seats {
    control: Arc<FlowControl>,
    /// `None` for a request that is counted but takes no seats.
    claim: Option<Claim>,
    mutating: bool,
}

impl Seats {
    pub(super) fn new(control: Arc<FlowControl>, claim: Option<Claim>, mutating: bool) -> Self {
        control.in_flight().begun(mutating);
        Self { control, claim, mutating }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        self.control.in_flight().ended(self.mutating);
        if let Some(claim) = self.claim {
            self.control.release(claim);
        }
    }
}

/// A request that waits; it leaves its queue when it is dropped.
pub(super) struct Queued<'a> {
    control: &'a Arc<FlowControl>,
    claim: Claim,
    ticket: Ticket,
    since: Instant,
    out_of_time: bool,
}

impl<'a> Queued<'a> {
    pub(super) fn new(control: &'a Arc<FlowControl>, claim: Claim, ticket: Ticket) -> Self {
        Self { control, claim, ticket, since: Instant::now(), out_of_time: false }
    }

    /// Waits for the seats.
    pub(super) async fn wait(
        mut self,
        seats: Option<oneshot::Receiver<Seats>>,
        longest: Duration,
    ) -> Result<Seats, TooManyRequests> {
        let Some(seats) = seats else { return Err(TooManyRequests) };
        if let Ok(Ok(seats)) = tokio::time::timeout(longest, seats).await {
            self.control.waited(self.claim, true, self.since.elapsed());
            return Ok(seats);
        }
        self.out_of_time = true;
        Err(TooManyRequests)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.control.leave(self.claim, self.ticket, self.out_of_time) {
            self.control.waited(self.claim, false, self.since.elapsed());
        }
    }
}
