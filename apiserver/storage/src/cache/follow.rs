//! The task that fills the cache and follows the backend's watch.
//!
//! As long as the backend can be reached, its watch keeps up with it, so that compaction does not overtake it
//! (`storage-etcd/src/watch.rs`). If the backend was unreachable for longer than history is kept, the cache is filled
//! again and its watchers get an error that their history is gone. No watcher has seen more than the cache, and the
//! events after the cache's last revision and before the oldest kept one are lost. A comparison of the objects before
//! and after would not find them: an object that was created and deleted in between leaves no trace.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::objects::ObjectMap;
use super::state::{Snapshot, State};
use crate::backend::{BackendError, BackendEvent, Revision, WatchItem};
use crate::storage::{StorageError, Stored};
use crate::store::{decode, readable};

/// Maximum number of items of the watch that are applied before the next state is published.
const BATCH: usize = 128;
/// Number of newest objects that stay unpacked, for the watchers that are about to send them and for callers that
/// update what they have just written. More of them would displace data that is used more often from the processor's
/// caches.
const FRESH: usize = 32;

/// Fills the cache, follows the watch, and fills the cache again if the watch cannot be resumed, until `over`; then
/// ends all watchers.
pub(super) async fn run(shared: Arc<Shared>, over: CancellationToken) {
    let mut follower = CacheFollower {
        shared,
        backoff: FollowBackoff::default(),
        fresh: VecDeque::with_capacity(FRESH + 1),
    };
    over.run_until_cancelled(follower.fill_and_follow()).await;
    follower.abandon();
}

struct CacheFollower {
    shared: Arc<Shared>,
    backoff: FollowBackoff,
    /// The newest objects, unpacked, oldest first.
    fresh: VecDeque<Arc<Stored>>,
}

impl CacheFollower {
    /// Never returns.
    async fn fill_and_follow(&mut self) {
        loop {
            let ended = match self.fill().await {
                Ok(state) => self.follow(state).await,
                Err(error) => error,
            };
            self.log_end(&ended);
            self.abandon();
            self.backoff.wait().await;
        }
    }

    async fn fill(&self) -> Result<State, StorageError> {
        let (items, revision, damaged) = readable(&self.shared.store).await?;
        // The list contains every write announced until now; their events will not arrive.
        self.shared.store.own_writes().clear();
        if let Some(usage) = &self.shared.usage {
            usage.fill(&items, revision);
        }
        let Snapshot { epoch, bytes_received, .. } = self.shared.state.load().snapshot;
        let bytes_received =
            bytes_received + items.iter().map(|stored| stored.json_len() as u64).sum::<u64>();
        let objects = ObjectMap::from_sorted(items, damaged);
        let snapshot = Snapshot { epoch, revision, objects, bytes_received };
        let state = State::filled(snapshot);
        self.shared.metrics.filled();
        self.shared.publish(state.clone(), self.shared.watcher_index.everyone());
        Ok(state)
    }

    /// Logs why the cache was lost. A backend that is unavailable logs that itself, so a failed attempt to fill the
    /// cache is only logged at debug level.
    fn log_end(&self, ended: &StorageError) {
        let keys = self.shared.store.keys();
        let is_silence = matches!(ended, StorageError::Backend(BackendError::Unavailable(_)));
        match is_silence && !self.shared.state.load().ready {
            true => tracing::debug!(%ended, ?keys, "watch cache cannot be filled yet"),
            false => tracing::warn!(%ended, ?keys, "watch cache has to be filled anew"),
        }
    }

    fn abandon(&self) {
        let state = State::clone(&self.shared.state.load());
        if let Some(usage) = &self.shared.usage {
            usage.abandon();
        }
        if state.ready {
            self.shared.publish(state.abandoned(), self.shared.watcher_index.everyone());
        }
    }

    /// Follows the watch, and resumes it as long as no event was missed. Returns the error that made this impossible.
    async fn follow(&mut self, mut state: State) -> StorageError {
        loop {
            let ended = self.follow_once(&mut state).await;
            if !matches!(
                ended,
                StorageError::Backend(BackendError::Unavailable(_) | BackendError::Overloaded)
            ) {
                return ended;
            }
            tracing::info!(%ended, "watch cache resumes its watch");
            if let Err(lost) = self.wait_for_current_revision(state.snapshot.revision).await {
                return lost;
            }
        }
    }

    async fn follow_once(&mut self, state: &mut State) -> StorageError {
        let store = &self.shared.store;
        let mut items = match store.backend().watch(store.keys(), state.snapshot.revision).await {
            Ok(items) => items,
            Err(error) => return error.into(),
        };
        let mut batch = Vec::with_capacity(BATCH);
        while items.recv_many(&mut batch, BATCH).await > 0 {
            let known = state.snapshot.revision;
            let taken = self.take(state, &mut batch);
            self.publish(state, known);
            if let Err(error) = taken {
                return error;
            }
            self.backoff = FollowBackoff::default();
        }
        BackendError::Unavailable("the watch ended".to_owned()).into()
    }

    /// Publishes a state. Its changes after the revision `known` are new.
    fn publish(&self, state: &mut State, known: Revision) {
        let marked = self.shared.watcher_index.mark(state.changes(known), state.floor());
        state.prepare(&self.shared.config);
        self.shared.publish(state.clone(), marked);
    }

    fn take(&mut self, state: &mut State, batch: &mut Vec<WatchItem>) -> Result<(), StorageError> {
        for item in batch.drain(..) {
            match item {
                WatchItem::Events(events) => self.apply(state, events)?,
                WatchItem::Progress(revision) => state.advance(revision),
                WatchItem::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Applies the events of one delivery, which are whole revisions.
    fn apply(&mut self, state: &mut State, events: Vec<BackendEvent>) -> Result<(), StorageError> {
        let known = state.snapshot.revision;
        for event in events.into_iter().filter(|event| event.revision > known) {
            let key = self.shared.store.relative(&event.key)?.to_owned();
            let bytes = event.value.as_ref().map_or(0, Bytes::len);
            match self.object(&key, &event) {
                Err(StorageError::Backend(BackendError::Corrupt(why))) => {
                    tracing::error!(why, revision = event.revision.0, "an object is damaged");
                    self.count(state, &key, None, event.revision);
                    state.apply_damaged(event.revision, &key, why);
                }
                object => {
                    let object = object?;
                    self.count(state, &key, object.as_deref(), event.revision);
                    state.apply(event.revision, &key, object, bytes);
                }
            }
        }
        Ok(())
    }

    fn count(&self, state: &State, key: &str, current: Option<&Stored>, revision: Revision) {
        if let Some(usage) = &self.shared.usage {
            // A damaged object was never counted.
            let previous = state.snapshot.objects.get(key).ok().flatten();
            usage.note(key, previous.map(|stored| &**stored), current, revision);
        }
    }

    /// Returns the object after an event; if the event is of a write through this server, the object that the writer
    /// made.
    fn object(&mut self, key: &str, event: &BackendEvent) -> Result<Option<Arc<Stored>>, StorageError> {
        let Some(value) = &event.value else { return Ok(None) };
        let stored = match self.shared.store.own_writes().take(key, value, event.revision) {
            Some(stored) => {
                self.shared.metrics.took_over();
                stored
            }
            None => decode(key, value, event.revision)?,
        };
        self.keep_fresh(stored.clone());
        Ok(Some(stored))
    }

    /// Keeps an object unpacked while it is among the newest.
    fn keep_fresh(&mut self, stored: Arc<Stored>) {
        self.fresh.push_back(stored);
        if self.fresh.len() > FRESH
            && let Some(oldest) = self.fresh.pop_front()
        {
            oldest.pack(self.shared.store.interner());
        }
    }

    /// Waits until the backend answers again. Fails if the backend's revision is below `known`: then it was restored
    /// from a backup, and the cached events no longer exist.
    async fn wait_for_current_revision(&mut self, known: Revision) -> Result<(), StorageError> {
        loop {
            self.backoff.wait().await;
            match self.shared.store.backend().current_revision().await {
                Ok(current) if current >= known => return Ok(()),
                Ok(current) => return Err(BackendError::FutureRevision { requested: known, current }.into()),
                Err(error) => tracing::debug!(%error, "the backend does not answer yet"),
            }
        }
    }
}

/// Waits longer after each consecutive failure.
pub(super) struct FollowBackoff(Duration);

impl Default for FollowBackoff {
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl FollowBackoff {
    const LONGEST: Duration = Duration::from_secs(5);

    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Self::LONGEST);
    }
}
