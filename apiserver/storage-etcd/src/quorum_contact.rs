//! Tracks whether etcd answers: when the last linearizable answer arrived, and why later requests failed.
//!
//! Only requests that need the quorum count: a member that is cut off from the others still answers pings,
//! keep-alives and, for some seconds, progress requests. Every request of a caller reports its outcome here. While
//! there are none, one key is read every few seconds, so that an idle server notices a failure too.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::{BackendError, Result};
use parking_lot::Mutex;
use tokio::time::Instant;

/// After this long without a linearizable answer, reads should be sent to another replica.
const UNREADY_AFTER: Duration = Duration::from_secs(10);
/// After this long without an answer, a probe read is sent. The rest of the time until
/// [`UNREADY_AFTER`] is for its answer.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// What is known of etcd's answers; clones share it.
#[derive(Clone)]
pub(super) struct QuorumContact(Arc<Mutex<ContactState>>);

struct ContactState {
    /// When the last linearizable answer came.
    answered: Instant,
    /// Why the last request failed; `None` once a request has been answered.
    silence: Option<String>,
    /// Whether the log has reported that etcd does not answer.
    logged: bool,
    /// Whether requests have switched to another member since the last answer.
    switched: bool,
    /// Whether the log has reported that etcd has no space.
    full: bool,
}

impl QuorumContact {
    /// Starts as if an answer had just arrived.
    pub fn new() -> Self {
        let answered = Instant::now();
        let state = ContactState { answered, silence: None, logged: false, switched: false, full: false };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Records a failed attempt at a request that is still being retried.
    pub fn failed(&self, error: &BackendError) {
        if let BackendError::Unavailable(why) = error {
            self.0.lock().silence.get_or_insert_with(|| why.clone());
        }
    }

    /// Records the outcome of a linearizable request. Logs only when etcd stops answering and when it answers again.
    pub fn ended<T>(&self, outcome: &Result<T>) {
        let mut state = self.0.lock();
        match outcome {
            Ok(_) | Err(BackendError::Compacted { .. } | BackendError::FutureRevision { .. }) => {
                let silent = state.answered.elapsed();
                (state.answered, state.silence, state.switched) = (Instant::now(), None, false);
                if std::mem::take(&mut state.logged) {
                    tracing::info!(?silent, "etcd answers again");
                }
            }
            Err(BackendError::Unavailable(why)) => {
                state.silence = Some(why.clone());
                if !std::mem::replace(&mut state.logged, true) {
                    tracing::warn!(why, "etcd does not answer; its recovery will be logged");
                }
            }
            Err(_) => {}
        }
    }

    /// Records the outcome of a write. Logs when space runs out and when there is space again.
    pub fn wrote<T>(&self, outcome: &Result<T>) {
        self.ended(outcome);
        let full = match outcome {
            Ok(_) => false,
            Err(BackendError::NoSpace(_)) => true,
            Err(_) => return,
        };
        let mut state = self.0.lock();
        match (std::mem::replace(&mut state.full, full), outcome) {
            (false, Err(why)) => tracing::error!(%why, "etcd has no space: refusing writes, serving reads"),
            (true, Ok(_)) => tracing::info!("etcd has space again: accepting writes"),
            _ => {}
        }
    }

    /// Returns why etcd does not answer; `None` if it answered the last request.
    pub fn silence(&self) -> Option<String> {
        self.0.lock().silence.clone()
    }

    /// Returns why no linearizable answer has arrived for 10 s; `None` if one has.
    pub fn lost(&self) -> Option<String> {
        let state = self.0.lock();
        let silent = state.answered.elapsed();
        let why = state.silence.as_deref().unwrap_or("no answer yet to what was asked");
        (silent >= UNREADY_AFTER)
            .then(|| format!("etcd has given no answer for {} s: {why}", silent.as_secs()))
    }

    /// Records a switch to another member. Returns whether it is the first since the last answer.
    pub fn record_switch(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().switched, true)
    }

    /// When a probe read is due, unless an answer arrives before.
    pub fn probe_due(&self) -> Instant {
        self.0.lock().answered + PROBE_AFTER
    }
}
