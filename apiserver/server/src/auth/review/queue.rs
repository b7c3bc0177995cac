//! Waits for the turn to start a review. The queue is examined when a turn is asked for, when one ends (it is dropped),
//! and when the pace allows the next one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use drydock_machinery::ApiError;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::lanes::{Bounds, Lanes, Next, Wish};
use super::payer::Payer;

/// Longest wait for a turn, and the part of a request's time that it may take.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const PART: u32 = 4;

/// Reviews of one class of payers.
pub(super) struct Queue(Mutex<State>);

struct State {
    lanes: Lanes<oneshot::Sender<Turn>>,
    /// When a timer looks at the queue.
    timer: Option<Instant>,
}

/// The right to make one review.
pub(crate) struct Turn {
    queue: Arc<Queue>,
    wish: Wish,
    start: Instant,
    counts: bool,
    has_ended: bool,
}

/// A request that waits for a review which another one started, until this is dropped.
pub(super) struct Joined {
    queue: Arc<Queue>,
    payer: Payer,
}

/// A request that waits for its turn, until this is dropped.
struct Waiting<'a> {
    queue: &'a Arc<Queue>,
    payer: &'a Payer,
    ticket: u64,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self(Mutex::new(State { lanes: Lanes::new(bounds, Instant::now()), timer: None }))
    }

    /// A turn for a request with this deadline; 429 when there is no room to wait or the wait is over.
    pub(super) async fn turn(self: &Arc<Self>, wish: Wish, deadline: Instant) -> Result<Turn, ApiError> {
        let (waker, turn) = oneshot::channel();
        let ticket = self.0.lock().lanes.wait(&wish, waker).ok_or_else(too_many)?;
        let waiting = Waiting { queue: self, payer: &wish.payer, ticket };
        self.look();
        let now = Instant::now();
        let until = now + (deadline.saturating_duration_since(now) / PART).min(LONGEST_WAIT);
        let turn = tokio::time::timeout_at(until.into(), turn).await;
        drop(waiting);
        turn.ok().and_then(Result::ok).ok_or_else(too_many)
    }

    /// A place among the requests that wait for a review which another one started; 429 if there is none.
    pub(super) fn join(self: &Arc<Self>, payer: &Payer) -> Result<Joined, ApiError> {
        let may = self.0.lock().lanes.join(payer);
        may.then(|| Joined { queue: self.clone(), payer: payer.clone() }).ok_or_else(too_many)
    }

    /// Gives turns to all who may have one now.
    fn look(self: &Arc<Self>) {
        while let Some(wake) = self.next() {
            // Whoever does not wait any longer, returns it.
            if let Err(mut turn) = wake() {
                turn.counts = false;
                turn.end();
            }
        }
    }

    fn next(self: &Arc<Self>) -> Option<impl FnOnce() -> Result<(), Turn> + use<>> {
        let state = &mut *self.0.lock();
        let start = Instant::now();
        match state.lanes.next(start) {
            Next::Turn(waker, wish) => {
                let turn = Turn { queue: self.clone(), wish, start, counts: true, has_ended: false };
                Some(move || waker.send(turn))
            }
            Next::Not { before } => {
                if state.timer.is_none_or(|at| before < at) {
                    state.timer = Some(before);
                    tokio::spawn(self.clone().look_at(before));
                }
                None
            }
            Next::Nobody => None,
        }
    }

    async fn look_at(self: Arc<Self>, moment: Instant) {
        tokio::time::sleep_until(moment.into()).await;
        {
            let state = &mut *self.0.lock();
            state.timer.take_if(|at| *at <= moment);
        }
        self.look();
    }
}

impl Turn {
    /// Ends a turn in which no review was made.
    pub(crate) fn end_uncounted(mut self) {
        self.counts = false;
    }

    /// Ends a turn in which somebody proved to be no stranger: it does not count as a stranger's.
    pub(crate) fn end_known(mut self) {
        self.counts = !matches!(self.wish.payer, Payer::Stranger(_));
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.queue.0.lock().lanes.end(&self.wish, self.start, self.counts);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end();
            self.queue.look();
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.queue.0.lock().lanes.part(&self.payer);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queue.0.lock().lanes.leave(self.payer, self.ticket);
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
