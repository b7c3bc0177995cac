//! How far the authority is: asked once for all readers that came before the asking.
//!
//! Readers that arrive while a check is on its way cannot use it (it may have been answered before they came); they
//! share the next one.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Shared;
use crate::backend::{BackendError, Revision};

/// Most readers that wait for a check; the next ones wait for room.
const QUEUE: usize = 1_024;

type Answer = oneshot::Sender<Result<Revision, BackendError>>;

/// Asks for the backend's current revision.
pub(super) struct RevisionCheck {
    shared: Arc<Shared>,
    ask: mpsc::Sender<Answer>,
}

impl RevisionCheck {
    pub(super) fn new(shared: Arc<Shared>) -> (Self, JoinHandle<()>) {
        let (ask, asked) = mpsc::channel(QUEUE);
        let checking = tokio::spawn(check(shared.clone(), asked));
        (Self { shared, ask }, checking)
    }

    /// A revision that the backend had reached after this call was made.
    pub(super) async fn revision(&self) -> Result<Revision, BackendError> {
        if let Some(revision) = self.shared.store.backend().local_revision() {
            return Ok(revision);
        }
        let (answer, answered) = oneshot::channel();
        self.ask.send(answer).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

async fn check(shared: Arc<Shared>, mut asked: mpsc::Receiver<Answer>) {
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
