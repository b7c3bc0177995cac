//! The changes before the cache was filled, read once for all watches that resume there.
//!
//! After a restart all clients resume at revisions that the ring does not have yet. The first watch that needs those
//! changes starts a task that reads them from the backend and keeps as many of the newest as a ring may hold.
//! Meanwhile each watch only holds its revision; then it reads the changes as it reads the ring.
//!
//! If the ring has been trimmed since it was filled, it is long enough by itself: a client that resumes below it gets
//! `Expired`, as with the watch cache of Kubernetes (storage/cacher/watch_cache.go, getAllEventsSinceLocked), and
//! lists again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::follow::FollowBackoff;
use super::ring::CachedChange;
use super::state::State;
use super::{Config, Shared};
use crate::backend::{BackendError, BackendEvent, KeyValue, Revision, WatchItem};
use crate::storage::{StorageError, Stored};
use crate::store::{Store, decode};
use crate::work_meter::WorkMeter;

/// How many revisions before the fill are read. Other writers of the same etcd account for most of them.
const LOOK_BACK: u64 = 65_536;
/// If the changes take more than this many times a ring's bytes, reading is aborted: clients that list again cost
/// less.
const LARGEST: usize = 16;
/// How long the changes are kept. The backend compacts its own history after 5 to 10 minutes.
const KEPT: Duration = Duration::from_secs(300);

/// The changes before one fill of the cache, once a watch has asked for them.
#[derive(Default)]
pub(super) struct PastChangesCache(Mutex<Option<PastChangesEntry>>);

/// Identifies one fill of the cache.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CacheFill {
    filling: u64,
    revision: Revision,
}

/// The changes before a fill, or the task that reads them.
struct PastChangesEntry {
    of: CacheFill,
    /// `None` while they are being read.
    changes: Option<Arc<PastChanges>>,
    _reading: AbortOnDropHandle<()>,
}

/// The answer to a watcher whose next change is older than the ring.
pub(super) enum Lookup {
    /// The changes are being read, or the cache is being filled: all watchers are woken when that is done.
    Waits,
    /// The changes.
    Found(Arc<PastChanges>),
    /// The changes are not available.
    Gone,
}

impl PastChangesCache {
    /// Returns the changes after a revision below the ring's floor. Starts to read them if no caller has.
    pub(super) fn after(&self, shared: &Arc<Shared>, state: &State, sent_upto: Revision) -> Lookup {
        if !state.ready {
            return Lookup::Waits;
        }
        if !state.is_whole() {
            return Lookup::Gone;
        }
        let of = CacheFill { filling: state.snapshot.filling, revision: state.floor() };
        let mut entry = self.0.lock();
        if let Some(entry) = entry.as_ref().filter(|entry| entry.of == of) {
            return match &entry.changes {
                None => Lookup::Waits,
                Some(changes) if sent_upto >= changes.start => Lookup::Found(changes.clone()),
                Some(_) => Lookup::Gone,
            };
        }
        let reading = tokio::spawn(run(Arc::downgrade(shared), shared.store.clone(), of));
        let before =
            entry.replace(PastChangesEntry { of, changes: None, _reading: AbortOnDropHandle::new(reading) });
        drop(entry);
        // Drop it after the lock is released, because it may hold megabytes.
        drop(before);
        Lookup::Waits
    }

    fn found(&self, of: CacheFill, changes: PastChanges) {
        if let Some(entry) = self.0.lock().as_mut().filter(|entry| entry.of == of) {
            entry.changes = Some(Arc::new(changes));
        }
    }

    fn forget(&self, of: CacheFill) {
        // Drop it after the lock is released.
        let _forgotten = self.0.lock().take_if(|entry| entry.of == of);
    }
}

/// Reads the changes, wakes all watchers, and discards the changes after [`KEPT`].
async fn run(shared: Weak<Shared>, store: Store, of: CacheFill) {
    let Some(config) = shared.upgrade().map(|shared| shared.config.clone()) else { return };
    let changes = read(&store, of.revision, &config).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read the history from before the start: watches that resume there get 410 Expired");
        PastChanges::after(of.revision)
    });
    drop(store);
    if let Some(shared) = shared.upgrade() {
        shared.past_changes.found(of, changes);
        shared.watcher_index.everyone().wake();
    }
    tokio::time::sleep(KEPT).await;
    if let Some(shared) = shared.upgrade() {
        shared.past_changes.forget(of);
    }
}

/// Reads the changes up to `upto`, as far back as the backend has them. Waits while the backend does not answer, as
/// all watchers do.
async fn read(store: &Store, upto: Revision, config: &Config) -> Result<PastChanges, StorageError> {
    let mut start = Revision(upto.0.saturating_sub(LOOK_BACK));
    let mut backoff = FollowBackoff::default();
    loop {
        match read_after(store, start, upto, config).await {
            Err(StorageError::Expired { oldest, .. }) if oldest >= upto.0 => {
                return Ok(PastChanges::after(upto));
            }
            // For a change at the oldest revision, the state before it may be compacted.
            Err(StorageError::Expired { oldest, .. }) => start = start.max(Revision(oldest)),
            Err(StorageError::Backend(BackendError::Unavailable(_) | BackendError::Overloaded)) => {}
            read => return read,
        }
        backoff.wait().await;
    }
}

async fn read_after(
    store: &Store,
    start: Revision,
    upto: Revision,
    config: &Config,
) -> Result<PastChanges, StorageError> {
    let backend = store.backend();
    let mut items = backend.watch(store.keys(), start).await?;
    // If there were no events up to the end, only a progress report shows it.
    backend.request_progress().await?;
    let mut reader = ChangeReader::new(store, start);
    while let Some(item) = items.recv().await {
        let reached = match item {
            WatchItem::Events(events) => reader.take(events, upto).await?,
            WatchItem::Progress(revision) => revision,
            WatchItem::Failed(error) => return Err(error.into()),
        };
        if reader.bytes > config.ring_bytes.saturating_mul(LARGEST) {
            return Ok(PastChanges::after(upto));
        }
        reader.changes.trim(config);
        if reached >= upto {
            return Ok(reader.changes);
        }
    }
    Err(BackendError::Unavailable("the watch ended".to_owned()).into())
}

/// Changes without a gap, oldest first.
pub(super) struct PastChanges {
    /// Every change above this revision is included.
    start: Revision,
    changes: VecDeque<Arc<CachedChange>>,
    bytes: usize,
}

impl PastChanges {
    fn after(start: Revision) -> Self {
        Self { start, changes: VecDeque::new(), bytes: 0 }
    }

    /// Returns the changes above `after`, oldest first.
    pub(super) fn changes(&self, after: Revision) -> impl Iterator<Item = &Arc<CachedChange>> {
        self.changes.range(self.changes.partition_point(|change| change.revision <= after)..)
    }

    fn push(&mut self, change: CachedChange) {
        self.bytes += change.bytes;
        self.changes.push_back(Arc::new(change));
    }

    /// Drops the oldest changes beyond what a ring may hold, whole revisions at a time.
    fn trim(&mut self, config: &Config) {
        while let Some(oldest) = self.changes.front()
            && (self.changes.len() > config.ring_events
                || self.bytes > config.ring_bytes
                || oldest.revision == self.start)
        {
            (self.start, self.bytes) = (oldest.revision, self.bytes - oldest.bytes);
            self.changes.pop_front();
        }
    }
}

struct ChangeReader<'s> {
    store: &'s Store,
    changes: PastChanges,
    /// The last state of each key while a kept change refers to it: it is the previous state of the key's next
    /// change.
    known: HashMap<String, Weak<Stored>>,
    /// Bytes of all changes that were read, including those that were dropped.
    bytes: usize,
    work: WorkMeter,
}

impl<'s> ChangeReader<'s> {
    fn new(store: &'s Store, start: Revision) -> Self {
        let (changes, known) = (PastChanges::after(start), HashMap::new());
        Self { store, changes, known, bytes: 0, work: WorkMeter::default() }
    }

    /// Adds the events up to a revision. Returns the last revision that was seen.
    async fn take(&mut self, events: Vec<BackendEvent>, upto: Revision) -> Result<Revision, StorageError> {
        let reached = events.last().map(|event| event.revision).unwrap_or_default();
        for event in events.into_iter().filter(|event| event.revision <= upto) {
            let key = self.store.relative(&event.key)?.to_owned();
            self.work.worked(event.value.as_ref().map_or(0, |value| value.len())).await;
            match self.change(&key, &event) {
                Ok(Some(change)) => {
                    self.bytes += change.bytes;
                    self.changes.push(change);
                }
                // Without the previous state it is unknown which selections the object left.
                Ok(None) => self.changes = PastChanges::after(event.revision),
                Err(StorageError::Backend(BackendError::Corrupt(why))) => {
                    self.changes.push(CachedChange::damaged(event.revision, &key, None, why.into()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(reached)
    }

    /// Returns the change of an event; `None` if the state before it is compacted.
    fn change(&mut self, key: &str, event: &BackendEvent) -> Result<Option<CachedChange>, StorageError> {
        let created = event.create_revision == event.revision && event.value.is_some();
        if event.previous.is_none() && !created {
            return Ok(None);
        }
        let mut bytes = event.value.as_ref().map_or(0, |value| value.len());
        let previous = match &event.previous {
            Some(pair) => Some(self.previous(key, pair, &mut bytes)?),
            None => None,
        };
        let value = event.value.as_ref();
        let current = value.map(|value| decode(key, value, event.revision)).transpose()?;
        if let Some(stored) = &current {
            stored.pack(self.store.interner());
            self.known.insert(key.to_owned(), Arc::downgrade(stored));
        }
        Ok(Some(CachedChange::new(event.revision, key, current, previous, bytes)))
    }

    /// Returns the previous state: that of an earlier change, or decoded from the event, which then counts in
    /// `bytes`.
    fn previous(&self, key: &str, pair: &KeyValue, bytes: &mut usize) -> Result<Arc<Stored>, StorageError> {
        let known = self.known.get(key).and_then(Weak::upgrade);
        if let Some(stored) = known.filter(|stored| stored.revision == pair.mod_revision) {
            return Ok(stored);
        }
        *bytes += pair.value.len();
        let stored = decode(key, &pair.value, pair.mod_revision)?;
        stored.pack(self.store.interner());
        Ok(stored)
    }
}
