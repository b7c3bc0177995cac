//! Whether etcd answers: when the last linearizable answer came, and since when none comes.
//!
//! Only what needs the quorum tells: a member that is cut off from the others goes on to answer pings, keep-alives and,
//! for some seconds, requests for progress. Requests of callers tell as they are answered. While there are none, a read
//! of one key is made every few seconds, so that a server that nobody asks knows as much.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::members::Members;
use crate::backend::{BackendError, Result};

/// After so long without a linearizable answer no reads should be sent here.
const LOST: Duration = Duration::from_secs(10);
/// After so long without one, one is asked for. The rest of the time until [`LOST`] is for the answer to come.
const QUIET: Duration = Duration::from_secs(5);
/// The pause after one that did not come in time.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known; all clones know the same.
#[derive(Clone)]
pub(super) struct Contact(Arc<Mutex<Known>>);

struct Known {
    /// When the last linearizable answer came.
    answered: Instant,
    /// Why the request before the present ones was not answered, if none has been since.
    silence: Option<String>,
    /// Whether the log says that etcd does not answer.
    told: bool,
    /// Whether another member has been turned to since the last answer.
    turned: bool,
    /// Whether the log says that etcd has no space.
    full: bool,
}

impl Contact {
    /// Begins as if an answer had just come.
    pub fn new() -> Self {
        let answered = Instant::now();
        let known = Known { answered, silence: None, told: false, turned: false, full: false };
        Self(Arc::new(Mutex::new(known)))
    }

    /// One try failed; the request may still be answered.
    pub fn failed(&self, error: &BackendError) {
        if let BackendError::Unavailable(why) = error {
            self.0.lock().silence.get_or_insert_with(|| why.clone());
        }
    }

    /// A linearizable request has ended. The log tells when etcd ceases and when it begins to answer, not of each.
    pub fn ended<T>(&self, outcome: &Result<T>) {
        let mut known = self.0.lock();
        match outcome {
            Ok(_) | Err(BackendError::Compacted { .. } | BackendError::FutureRevision { .. }) => {
                let silent = known.answered.elapsed();
                (known.answered, known.silence, known.turned) = (Instant::now(), None, false);
                if std::mem::take(&mut known.told) {
                    tracing::info!(?silent, "etcd answers again");
                }
            }
            Err(BackendError::Unavailable(why)) => {
                known.silence = Some(why.clone());
                if !std::mem::replace(&mut known.told, true) {
                    tracing::warn!(why, "etcd does not answer; it is told when it does");
                }
            }
            Err(_) => {}
        }
    }

    /// A write has ended: the log tells when space runs out and when there is space again.
    pub fn wrote<T>(&self, outcome: &Result<T>) {
        self.ended(outcome);
        let full = match outcome {
            Ok(_) => false,
            Err(BackendError::NoSpace(_)) => true,
            Err(_) => return,
        };
        let mut known = self.0.lock();
        match (std::mem::replace(&mut known.full, full), outcome) {
            (false, Err(why)) => tracing::error!(%why, "writes are refused, reads go on"),
            (true, Ok(_)) => tracing::info!("etcd has space again: writes are taken"),
            _ => {}
        }
    }

    /// Why what was asked last was not answered, if it was not.
    pub fn silence(&self) -> Option<String> {
        self.0.lock().silence.clone()
    }

    /// Why no linearizable answer has come for 10 s, if none has.
    pub fn lost(&self) -> Option<String> {
        let known = self.0.lock();
        let silent = known.answered.elapsed();
        let why = known.silence.as_deref().unwrap_or("no answer yet to what was asked");
        (silent >= LOST).then(|| format!("etcd has given no answer for {} s: {why}", silent.as_secs()))
    }

    /// Whether this is the first time since the last answer that another member is turned to.
    pub fn turns(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().turned, true)
    }

    /// Asks when nobody else has for a while; for ever.
    pub async fn keep(self, members: Members, key: String) {
        loop {
            let quiet = self.0.lock().answered + QUIET;
            if quiet > Instant::now() {
                tokio::time::sleep_until(quiet).await;
                continue;
            }
            if members.revision(key.clone()).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
