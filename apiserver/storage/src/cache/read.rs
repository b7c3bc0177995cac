//! Chooses the state that answers a read, and waits for it. A consistent read checks the backend's current revision,
//! once for all readers that arrived before the request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::state::{Snapshot, State};
use super::{Shared, WatchCache};
use crate::backend::{BackendError, Revision};
use crate::storage::{ReadAt, StorageError};

/// How often a waiting reader requests the backend's progress (Kubernetes: progressRequestPeriod).
const PROGRESS_REQUEST_PERIOD: Duration = Duration::from_millis(100);

/// Maximum number of readers queued for a check; further readers wait for a place.
const QUEUE: usize = 1_024;

/// The source that answers a read.
pub(super) enum ReadSource {
    /// A snapshot of the cache.
    Snapshot(Snapshot),
    /// The store: the cache is not filled, is behind, or no longer has the revision.
    Store,
}

impl WatchCache {
    /// Runs a read, which waits for the backend no longer than `patience` in total: it may make several requests one
    /// after the other, each with a deadline of its own. A backend that knows its current revision without a request
    /// never makes a reader wait.
    pub(super) async fn in_time<T>(
        &self,
        read: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        if self.shared.store.backend().local_revision().is_some() {
            return read.await;
        }
        let patience = self.shared.config.patience;
        let late = |_| BackendError::Unavailable(format!("no answer within {} s", patience.as_secs()));
        timeout(patience, read).await.map_err(late)?
    }

    pub(super) async fn read_source(&self, at: ReadAt) -> Result<ReadSource, StorageError> {
        if !self.shared.state.load().ready {
            return Ok(ReadSource::Store);
        }
        match at {
            ReadAt::Latest => self.latest().await,
            ReadAt::NotOlderThan(revision) => {
                self.reached(revision, |state| Some(state.snapshot.clone())).await
            }
            ReadAt::Exact(revision) => self.reached(revision, |state| state.exactly(revision)).await,
        }
    }

    /// Waits for a cache that is being filled, at most `freshness`. Fails with `NotReady` if it is not filled by
    /// then.
    pub(super) async fn wait_until_filled(&self) -> Result<(), StorageError> {
        if self.shared.state.load().ready {
            return Ok(());
        }
        let filled = self.shared.wait_for(|state| state.ready);
        let in_time = tokio::time::timeout(self.shared.config.freshness, filled).await;
        in_time.map(drop).map_err(|_| StorageError::NotReady)
    }

    /// A consistent read: at least as new as every write that was acknowledged before the read began.
    async fn latest(&self) -> Result<ReadSource, StorageError> {
        let revision = self.revision_check.revision().await?;
        match self.shared.reach(revision).await {
            Ok(state) => Ok(ReadSource::Snapshot(state.snapshot.clone())),
            Err(_) => {
                self.shared.metrics.answered_by_store();
                Ok(ReadSource::Store)
            }
        }
    }

    /// Waits until the cache has reached a revision that the client named, and returns what `find` takes from that
    /// state. If the cache stays behind, the store answers: only a revision above that of the backend is too large.
    async fn reached(
        &self,
        revision: Revision,
        find: impl FnOnce(&State) -> Option<Snapshot>,
    ) -> Result<ReadSource, StorageError> {
        match self.shared.reach(revision).await {
            Ok(state) => return Ok(find(&state).map_or(ReadSource::Store, ReadSource::Snapshot)),
            Err(state) if !state.ready => return Err(StorageError::NotReady),
            Err(_) => {}
        }
        let current = self.revision_check.revision().await?;
        if current < revision {
            return Err(StorageError::TooLarge { requested: revision.0, current: current.0 });
        }
        self.shared.metrics.answered_by_store();
        Ok(ReadSource::Store)
    }
}

impl Shared {
    /// Returns the first published state that is ready and has reached `revision`; at the deadline, fails with the
    /// last state.
    async fn reach(&self, revision: Revision) -> Result<Arc<State>, Arc<State>> {
        let reached = |state: &State| state.ready && state.snapshot.revision >= revision;
        let state = self.state.load_full();
        if reached(&state) {
            return Ok(state);
        }
        let deadline = Instant::now() + self.config.freshness;
        while Instant::now() < deadline {
            // Writes to other resources are not in our watch: without a progress report it may never reach the
            // revision. An error of the request also ends the watch, and is handled there.
            let _ = self.store.backend().request_progress().await;
            let next = deadline.min(Instant::now() + PROGRESS_REQUEST_PERIOD);
            if let Ok(state) = timeout_at(next, self.wait_for(reached)).await {
                return Ok(state);
            }
        }
        Err(self.state.load_full())
    }

    /// Waits for the first published state that `accepts`.
    pub(super) async fn wait_for(&self, accepts: impl Fn(&State) -> bool) -> Arc<State> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let state = self.state.load_full();
            if accepts(&state) {
                return state;
            }
            // The sender lives in `self`.
            let _ = changed.changed().await;
        }
    }
}

type RevisionSender = oneshot::Sender<Result<Revision, BackendError>>;

/// Requests the backend's current revision on behalf of readers. Readers that arrive while a check is in flight cannot
/// use its result, because it may have been answered before they arrived; they share the next check.
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
