//! Waits for the permit to start a review. The queue is examined when a permit is asked for, when one is given back,
//! and when the rate allows the next one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::fair_queues::{FairQueues, NextPermit, PermitRequest, ReviewBounds};
use super::payer::Payer;
use crate::clock;

/// Longest wait for a permit, and the part of a request's time that it may take.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const PART: u32 = 4;

/// Reviews of one class of payers.
pub(super) struct Queue(Mutex<State>);

struct State {
    queues: FairQueues<oneshot::Sender<ReviewPermit>>,
    /// When a timer looks at the queue.
    timer: Option<Instant>,
}

/// The right to make one review.
pub(crate) struct ReviewPermit {
    queue: Arc<Queue>,
    request: PermitRequest,
    start: Instant,
    counts: bool,
    has_ended: bool,
}

/// A request that waits for a review which another one started, until this is dropped.
pub(super) struct Joined {
    queue: Arc<Queue>,
    payer: Payer,
}

/// A request that waits for its permit, until this is dropped.
struct WaitingReview<'a> {
    queue: &'a Arc<Queue>,
    payer: &'a Payer,
    ticket: u64,
}

impl Queue {
    pub(super) fn new(bounds: ReviewBounds) -> Self {
        Self(Mutex::new(State { queues: FairQueues::new(bounds, clock::now()), timer: None }))
    }

    /// A permit for a request with this deadline; 429 when there is no room to wait or the wait is over.
    pub(super) async fn permit(
        self: &Arc<Self>,
        request: PermitRequest,
        deadline: Instant,
    ) -> Result<ReviewPermit, ApiError> {
        let (waker, permit) = oneshot::channel();
        let ticket = self.0.lock().queues.wait(&request, waker).ok_or_else(too_many)?;
        let waiting = WaitingReview { queue: self, payer: &request.payer, ticket };
        self.grant_waiting();
        let now = clock::now();
        let until = now + (deadline.saturating_duration_since(now) / PART).min(LONGEST_WAIT);
        let permit = tokio::time::timeout_at(until.into(), permit).await;
        drop(waiting);
        permit.ok().and_then(Result::ok).ok_or_else(too_many)
    }

    /// Counts a request that waits for a review which another one started; 429 if there is no room.
    pub(super) fn join(self: &Arc<Self>, payer: &Payer) -> Result<Joined, ApiError> {
        let may = self.0.lock().queues.join(payer);
        may.then(|| Joined { queue: self.clone(), payer: payer.clone() }).ok_or_else(too_many)
    }

    /// Gives permits to all requests that may have one now.
    fn grant_waiting(self: &Arc<Self>) {
        while let Some(wake) = self.next() {
            // If the request no longer waits, the permit comes back.
            if let Err(mut permit) = wake() {
                permit.counts = false;
                permit.end();
            }
        }
    }

    fn next(self: &Arc<Self>) -> Option<impl FnOnce() -> Result<(), ReviewPermit> + use<>> {
        let state = &mut *self.0.lock();
        let start = clock::now();
        match state.queues.next(start) {
            NextPermit::Permit(waker, request) => {
                let permit =
                    ReviewPermit { queue: self.clone(), request, start, counts: true, has_ended: false };
                Some(move || waker.send(permit))
            }
            NextPermit::Not { before } => {
                if state.timer.is_none_or(|at| before < at) {
                    state.timer = Some(before);
                    tokio::spawn(self.clone().look_at(before));
                }
                None
            }
            NextPermit::Nobody => None,
        }
    }

    async fn look_at(self: Arc<Self>, moment: Instant) {
        tokio::time::sleep_until(moment.into()).await;
        {
            let state = &mut *self.0.lock();
            state.timer.take_if(|at| *at <= moment);
        }
        self.grant_waiting();
    }
}

impl ReviewPermit {
    /// Gives the permit back; no review was made with it.
    pub(crate) fn end_uncounted(mut self) {
        self.counts = false;
    }

    /// Gives the permit back; the review has found a user, so it does not count as a stranger's.
    pub(crate) fn end_known(mut self) {
        self.counts = !matches!(self.request.payer, Payer::Stranger(_));
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.queue.0.lock().queues.end(&self.request, self.start, self.counts);
        }
    }
}

impl Drop for ReviewPermit {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end();
            self.queue.grant_waiting();
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.queue.0.lock().queues.part(&self.payer);
    }
}

impl Drop for WaitingReview<'_> {
    fn drop(&mut self) {
        self.queue.0.lock().queues.leave(self.payer, self.ticket);
    }
}

fn too_many() -> ApiError {
    let why =
        "too many requests of this caller wait to be authenticated or authorized, please try again later";
    ApiError::too_many_requests(why, 1)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
