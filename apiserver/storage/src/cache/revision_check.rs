//! Checks the backend's current revision, once for all readers that arrived before the request.
//!
//! Readers that arrive while a check is in flight cannot use its result, because it may have been answered before
//! they arrived; they share the next check.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Shared;
use crate::backend::{BackendError, Revision};

/// Maximum number of readers queued for a check; further readers wait for a place.
const QUEUE: usize = 1_024;

type RevisionSender = oneshot::Sender<Result<Revision, BackendError>>;

/// Requests the backend's current revision on behalf of readers.
pub(super) struct RevisionCheck {
    shared: Arc<Shared>,
    ask: mpsc::Sender<RevisionSender>,
}

impl RevisionCheck {
    pub(super) fn new(shared: Arc<Shared>) -> (Self, JoinHandle<()>) {
        let (ask, asked) = mpsc::channel(QUEUE);
        let checking = tokio::spawn(check(shared.clone(), asked));
        (Self { shared, ask }, checking)
    }

    /// Returns a revision that the backend had reached after this call was made.
    pub(super) async fn revision(&self) -> Result<Revision, BackendError> {
        if let Some(revision) = self.shared.store.backend().local_revision() {
            return Ok(revision);
        }
        let (answer, answered) = oneshot::channel();
        self.ask.send(answer).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

async fn check(shared: Arc<Shared>, mut asked: mpsc::Receiver<RevisionSender>) {
    let mut waiting = Vec::new();
    while asked.recv_many(&mut waiting, QUEUE).await > 0 {
        let backend = shared.store.backend();
        let revision = backend.current_revision().await;
        shared.metrics.checked(&revision, shared.state.load().snapshot.revision);
        for answer in waiting.drain(..) {
            // A reader that has gone away needs no answer.
            let _ = answer.send(revision.clone());
        }
    }
}

fn gone() -> BackendError {
    BackendError::Unavailable("the cache is shutting down".to_owned())
}
