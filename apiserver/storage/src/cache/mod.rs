//! The watch cache: [`Storage`] over a [`Store`], answering reads and watches from memory.
//!
//! ```text
//!   backend watch ──> follow (one task) ──> State: snapshot, ring of recent changes, revision
//!                                             │ published atomically, read without locks
//!                        ┌────────────────────┼─────────────────────┐
//!                      get, list            watchers: cursors      Exact reads, pages:
//!                      (newest snapshot)    into the ring          snapshots in the ring
//! ```
//!
//! Writes go to the store. A slow reader delays no other client: a watcher owns only a revision, reads the ring at its
//! own pace, and gets `Expired` if the changes after its revision have left the ring. A watcher that resumes at a
//! revision from before the cache was filled reads the changes before the ring from `past_changes`, which reads them
//! once for all such watchers: no watcher opens a watch of the backend.
//! (Kubernetes: storage/cacher. It has one queue per watcher, where this cache has one cursor per watcher.)

mod bucket;
mod follow;
mod initial;
mod metrics;
mod objects;
mod page;
mod past_changes;
mod read;
mod ring;
mod state;
mod usage;
mod wake_flag;
mod wake_queue;
mod watcher;
mod watcher_group;
mod watcher_index;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use drydock_machinery::Object;
use drydock_machinery::kind::Quota;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::backend::{Revision, Shortage, WriteContext};
use crate::pinned::StateAge;
use crate::storage::{
    MemoryBudget, NextState, Page, PageOptions, ReadAt, Replaced, Scope, Storage, StorageError, Stored,
    WatchFrom, Watcher,
};
use crate::store::{Store, everything};

pub use metrics::Metrics;
pub use usage::{QuotaUsage, Reservation, ReservationError};

use objects::ObjectMap;
use past_changes::PastChangesCache;
use read::{ReadSource, RevisionCheck};
use state::{Snapshot, State};
use watcher::Cursor;
use watcher_index::{MarkedGroups, WatcherIndex};

/// Limits of a cache.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum number of changes kept for watchers and exact reads.
    pub ring_events: usize,
    /// Maximum number of bytes kept for them: the stored values and the cost of keeping their snapshots.
    pub ring_bytes: usize,
    /// How long a read waits for the cache to become fresh enough (Kubernetes: blockTimeout, 3 s).
    pub freshness: Duration,
    /// How long a read waits in total for a backend that does not answer.
    pub patience: Duration,
    /// The quota of the kind; its use is counted for each namespace.
    pub quota: Option<Quota>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ring_events: 8_192,
            ring_bytes: 32 << 20,
            freshness: Duration::from_secs(3),
            patience: Duration::from_secs(10),
            quota: None,
        }
    }
}

/// A cache of one resource.
pub struct WatchCache {
    shared: Arc<Shared>,
    revision_check: RevisionCheck,
    following: JoinHandle<()>,
    checking: AbortOnDropHandle<()>,
    /// Ends the task that follows the backend, and with it the watchers, which nothing would wake any more.
    _over: DropGuard,
}

/// What the following task, the readers and the watchers share.
struct Shared {
    store: Store,
    config: Config,
    state: ArcSwap<State>,
    /// Notifies readers of a new state.
    changed: tokio::sync::watch::Sender<()>,
    /// Finds and wakes the watchers that a change concerns.
    watcher_index: Arc<WatcherIndex>,
    metrics: Arc<Metrics>,
    usage: Option<Arc<QuotaUsage>>,
    /// The changes before the ring, for watchers that resume there.
    past_changes: PastChangesCache,
}

impl WatchCache {
    /// Starts to fill the cache and to follow the backend; must be called within a Tokio runtime. The cache serves
    /// reads once [`Storage::ready`] returns `true`.
    pub fn start(store: Store, config: Config) -> Self {
        store.own_writes().follow();
        let usage = config.quota.map(|quota| Arc::new(QuotaUsage::new(quota)));
        let shared = Arc::new(Shared {
            store,
            usage,
            config,
            state: ArcSwap::from_pointee(State::default()),
            changed: tokio::sync::watch::Sender::new(()),
            watcher_index: Arc::default(),
            metrics: Arc::default(),
            past_changes: PastChangesCache::default(),
        });
        let (revision_check, checking) = RevisionCheck::new(shared.clone());
        let over = CancellationToken::new();
        let following = tokio::spawn(follow::run(shared.clone(), over.clone()));
        let checking = AbortOnDropHandle::new(checking);
        Self { shared, revision_check, following, checking, _over: over.drop_guard() }
    }

    /// Waits until the cache is filled.
    pub async fn wait_until_ready(&self) {
        self.shared.wait_for(|state| state.ready).await;
    }

    /// Whether the tasks of the cache run. One that has ended did so by a fault, and only a restart of the process
    /// brings it back.
    pub fn is_alive(&self) -> bool {
        !self.following.is_finished() && !self.checking.is_finished()
    }

    /// Returns the quota's use by namespace; `None` for a kind without a quota.
    pub fn usage(&self) -> Option<Arc<QuotaUsage>> {
        self.shared.usage.clone()
    }

    /// Returns the metrics of the cache.
    pub fn metrics(&self) -> Arc<Metrics> {
        self.shared.metrics.clone()
    }
}

impl Shared {
    /// Publishes a state, then wakes the watchers in `marked`, which were marked before. Only the following task
    /// calls this.
    fn publish(&self, state: State, marked: MarkedGroups<'_>) {
        self.metrics.published(&state);
        self.state.store(Arc::new(state));
        self.changed.send_replace(());
        marked.wake();
    }
}

#[async_trait]
impl Storage for WatchCache {
    async fn create(
        &self,
        key: &str,
        object: Object,
        context: WriteContext<'_>,
    ) -> Result<Arc<Stored>, StorageError> {
        let created = self.shared.store.create(key, object, context).await;
        self.shared.metrics.written(&created);
        created
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Arc<Stored>, StorageError> {
        self.in_time(async {
            match self.read_source(at).await? {
                ReadSource::Snapshot(snapshot) => {
                    snapshot.objects.get(key)?.cloned().ok_or(StorageError::NotFound)
                }
                ReadSource::Store => self.shared.store.get(key, at).await,
            }
        })
        .await
    }

    async fn list(
        &self,
        scope: &Scope,
        options: &PageOptions,
        memory: &mut dyn MemoryBudget,
    ) -> Result<Page, StorageError> {
        self.wait_until_filled().await?;
        match self.in_time(self.read_source(options.at)).await? {
            ReadSource::Snapshot(snapshot) => {
                snapshot.objects.whole(scope)?;
                let mut page = page::page(&snapshot, scope, options).await;
                page.items = page.items.aged(StateAge::new(self.metrics(), snapshot.bytes_received));
                Ok(page)
            }
            ReadSource::Store => self.shared.store.list(scope, options, memory).await,
        }
    }

    async fn replace(
        &self,
        key: &str,
        present: &Arc<Stored>,
        next: NextState,
        context: WriteContext<'_>,
    ) -> Result<Replaced, StorageError> {
        let replaced = self.shared.store.replace(key, present, next, context).await;
        self.shared.metrics.written(&replaced);
        replaced
    }

    async fn watch(&self, scope: Scope, from: WatchFrom) -> Result<Box<dyn Watcher>, StorageError> {
        self.wait_until_filled().await?;
        match from {
            WatchFrom::After(after) => Ok(Box::new(self.watch_after(scope, after))),
            WatchFrom::InitialEvents(at) => {
                let snapshot = match self.in_time(self.read_source(at)).await? {
                    ReadSource::Snapshot(snapshot) => snapshot,
                    ReadSource::Store => self.fetched(&scope, at).await?,
                };
                snapshot.objects.whole(&scope)?;
                Ok(Box::new(Cursor::with_initial_events(self.shared.clone(), scope, snapshot)))
            }
        }
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.in_time(async { Ok(self.revision_check.revision().await?) }).await
    }

    fn listed_bytes(&self, scope: &Scope, options: &PageOptions, enough: usize) -> usize {
        let state = self.shared.state.load();
        if state.ready { page::bytes(&state.snapshot, scope, options, enough) } else { enough }
    }

    fn shortage(&self) -> Option<Shortage> {
        self.shared.store.shortage()
    }

    fn ready(&self) -> bool {
        self.shared.state.load().ready
    }
}

impl WatchCache {
    /// Opens a watcher after a revision. After a restart all clients resume at revisions from before it, and should
    /// not have to list again: they read the changes in between from [`past_changes`].
    fn watch_after(&self, scope: Scope, after: Revision) -> Cursor {
        Cursor::after(self.shared.clone(), scope, after, &self.shared.state.load_full())
    }

    /// Reads the objects of a scope from the store, for a watcher that must not wait until the cache has reached the
    /// revision. The events after them come from the ring.
    async fn fetched(&self, scope: &Scope, at: ReadAt) -> Result<Snapshot, StorageError> {
        let (items, revision) = everything(&self.shared.store, scope, at).await?;
        let state = self.shared.state.load();
        // No other reader shares these objects, so all their bytes count from the start: `Age` counts the bytes
        // received after `taken_in`, less those in the ring.
        let apart =
            items.iter().map(|stored| stored.json_len() as u64).sum::<u64>() + state.ring.bytes() as u64;
        let bytes_received = state.snapshot.bytes_received.saturating_sub(apart);
        let objects = ObjectMap::from_sorted(items, Vec::new());
        Ok(Snapshot { filling: state.snapshot.filling, revision, objects, bytes_received })
    }
}
