//! Chooses the state that answers a read, and waits for it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::state::{Snapshot, State};
use super::{Cache, Shared};
use crate::backend::{BackendError, Revision};
use crate::storage::{ReadAt, StorageError};

/// How often a waiting reader requests the backend's progress (Kubernetes: progressRequestPeriod).
const PROGRESS_REQUEST_PERIOD: Duration = Duration::from_millis(100);

/// The source that answers a read.
pub(super) enum ReadSource {
    /// A snapshot of the cache.
    Snapshot(Snapshot),
    /// The store: the cache is not filled, is behind, or no longer has the revision.
    Store,
}

impl Cache {
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
