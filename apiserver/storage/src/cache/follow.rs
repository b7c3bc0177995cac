//! The one task that fills the cache and follows the backend's watch.
//!
//! A watch of the backend keeps up with it, and so is not overtaken by compaction while it can be reached at all
//! (`etcd/watch.rs`). If it was parted from it for longer than history is kept, the cache is filled anew and its watchers
//! are told that their history is gone: none of them was told of more than the cache had seen, and what happened from
//! there to the oldest revision that is kept nobody can say. To compare the objects before and after would not do: one
//! that was created and deleted meanwhile has left no trace.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::objects::Objects;
use super::state::{Snapshot, State};
use crate::backend::{BackendError, BackendEvent, Revision, WatchItem};
use crate::storage::{StorageError, Stored};
use crate::store::{decode, readable};

/// Most deliveries taken in before the next state is published.
const BATCH: usize = 128;
/// Objects that are not packed: the newest, for the watchers who are about to send them and for whoever updates what he
/// has just written. More of them would push what is used more often out of the processor's caches.
const FRESH: usize = 32;

/// Fills, follows, and fills again when the watch cannot be resumed, until `over`; then the watchers are told.
pub(super) async fn run(shared: Arc<Shared>, over: CancellationToken) {
    let mut follower =
        Follower { shared, backoff: Backoff::default(), fresh: VecDeque::with_capacity(FRESH + 1) };
    over.run_until_cancelled(follower.fill_and_follow()).await;
    follower.abandon();
}

struct Follower {
    shared: Arc<Shared>,
    backoff: Backoff,
    /// The newest objects, oldest first.
    fresh: VecDeque<Arc<Stored>>,
}

impl Follower {
    /// Never returns.
    async fn fill_and_follow(&mut self) {
        loop {
            let ended = match self.fill().await {
                Ok(state) => self.follow(state).await,
                Err(error) => error,
            };
            self.tell(&ended);
            self.abandon();
            self.backoff.wait().await;
        }
    }

    async fn fill(&self) -> Result<State, StorageError> {
        let (items, revision, damaged) = readable(&self.shared.store).await?;
        // What was announced until now is in the list; events of these writes do not come.
        self.shared.store.own_writes().clear();
        if let Some(usage) = &self.shared.usage {
            usage.fill(&items, revision);
        }
        let Snapshot { epoch, taken_in, .. } = self.shared.state.load().snapshot;
        let taken_in = taken_in + items.iter().map(|stored| stored.json_len() as u64).sum::<u64>();
        let objects = Objects::from_sorted(items, damaged);
        let snapshot = Snapshot { epoch, revision, objects, taken_in };
        let state = State::filled(snapshot);
        self.shared.metrics.filled();
        self.shared.publish(state.clone(), self.shared.watcher_index.everyone());
        Ok(state)
    }

    /// A backend that does not answer says so itself; here that is one line, when the cache is lost.
    fn tell(&self, ended: &StorageError) {
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

    /// Follows the watch, resuming it as long as nothing was missed; returns why that is no longer possible.
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
            if let Err(lost) = self.wait_for_authority(state.snapshot.revision).await {
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
            self.show(state, known);
            if let Err(error) = taken {
                return error;
            }
            self.backoff = Backoff::default();
        }
        BackendError::Unavailable("the watch ended".to_owned()).into()
    }

    /// Publishes a state, which has more changes than the one of revision `known`.
    fn show(&self, state: &mut State, known: Revision) {
        let matched = self.shared.watcher_index.mark(state.changes(known), state.floor());
        state.settle(&self.shared.config);
        self.shared.publish(state.clone(), matched);
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

    /// Applies one delivery: whole revisions.
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
            // What is damaged has never counted.
            let previous = state.snapshot.objects.get(key).ok().flatten();
            usage.note(key, previous.map(|stored| &**stored), current, revision);
        }
    }

    /// The object that an event leaves: the writer's own, if it is one of ours.
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

    /// For as long as it is among the newest.
    fn keep_fresh(&mut self, stored: Arc<Stored>) {
        self.fresh.push_back(stored);
        if self.fresh.len() > FRESH
            && let Some(oldest) = self.fresh.pop_front()
        {
            oldest.pack(self.shared.store.interner());
        }
    }

    /// Waits until the backend answers again. A backend that is now behind what it told before was restored from a
    /// backup: what is cached never happened.
    async fn wait_for_authority(&mut self, known: Revision) -> Result<(), StorageError> {
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

/// Waits longer after each failure in a row.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(Duration::from_millis(20))
    }
}

impl Backoff {
    const LONGEST: Duration = Duration::from_secs(5);

    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Self::LONGEST);
    }
}
