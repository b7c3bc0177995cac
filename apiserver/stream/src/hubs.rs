//! The running hub, if any. A hub is started for the first subscriber, and for the next one after a hub has ended.

use std::sync::Arc;

use drydock_storage::backend::Revision;
use drydock_storage::storage::{
    PageOptions, ReadAt, Scope, Storage, StorageError, UnlimitedMemory, WatchEvent, WatchFrom,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Duration, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::config::Config;
use crate::error::{of_storage, token_expired, too_many_filters, unavailable};
use crate::filter::{Entity, Filter};
use crate::hub::attach::{AttachRefusal, Attached, Resume};
use crate::hub::{HubHandle, Stores, start};
use crate::metrics::Metrics;
use crate::rate::DrainRate;
use crate::token::Token;
use crate::views::Full;

/// How long a caller waits after a hub has ended before it tries the next one.
const NEXT_HUB: Duration = Duration::from_millis(50);

/// How long a Get waits for the rate; then it is answered without one.
const RATE_TIMEOUT: Duration = Duration::from_secs(1);

/// The message for a call that a hub is not filled in time for.
const NOT_FILLED: &str = "the status stream is not ready, as it reads all objects: try again";

/// Maximum number of new calls that wait for a hub that is being filled: each of them holds seats, which other requests need.
const NEW_CALLS: usize = 64;

/// How long to wait for a silent watch before its progress is checked.
const QUIET: Duration = Duration::from_millis(20);

/// Starts hubs, and attaches subscribers to them.
pub struct Hubs {
    /// The resources that hubs follow.
    pub stores: Stores,
    /// Limits and times.
    pub config: Config,
    /// The metrics of all hubs.
    pub metrics: Metrics,
    running: Mutex<Option<HubHandle>>,
    /// Lets one caller at a time read history.
    history: Semaphore,
    /// Lets [`NEW_CALLS`] wait for a hub that is being filled.
    new_calls: Semaphore,
}

impl Hubs {
    /// Creates it; no hub runs yet.
    pub fn new(stores: Stores, config: Config) -> Self {
        Self {
            stores,
            config,
            metrics: Metrics::default(),
            running: Mutex::new(None),
            history: Semaphore::new(1),
            new_calls: Semaphore::new(NEW_CALLS),
        }
    }

    /// Subscribes the user of a new call, as [`Self::attach`] does.
    ///
    /// # Errors
    /// Also UNAVAILABLE if too many calls wait already.
    pub async fn attach_new(
        self: &Arc<Self>,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        let _permit = match self.handle().is_filled() {
            true => None,
            false => Some(self.new_calls.try_acquire().map_err(|_| unavailable(NOT_FILLED))?),
        };
        self.attach(filter, user, token).await
    }

    /// Subscribes a user, after a token or with a snapshot. Waits while a hub is being filled.
    ///
    /// Runs in a task of its own: a stream that is not read is not polled, and would keep the permit that others wait
    /// for.
    ///
    /// # Errors
    /// OUT_OF_RANGE if no hub can resume from the token, RESOURCE_EXHAUSTED for too many filters, UNAVAILABLE if no hub
    /// is ready in time.
    pub async fn attach(
        self: &Arc<Self>,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        let hubs = self.clone();
        let task = tokio::spawn(async move {
            let Config { fill_timeout, attach_timeout, .. } = hubs.config;
            let filled = timeout(fill_timeout, hubs.handle().wait_until_filled()).await;
            filled.ok().flatten().ok_or_else(|| unavailable(NOT_FILLED))?;
            let attached = timeout(attach_timeout, hubs.try_attach(filter, user, token)).await;
            attached.unwrap_or_else(|_| Err(unavailable("the status stream is behind: try again")))
        });
        let attached = AbortOnDropHandle::new(task).await;
        attached.unwrap_or_else(|_| Err(unavailable("the status stream is not ready: try again")))
    }

    async fn try_attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        let newest = self.newest(filter.entity).await?;
        loop {
            let handle = self.handle();
            let from = match token {
                None => Resume::Start,
                Some(token) if token.hub == handle.id => Resume::Position(token.position),
                // The token is from another store, or the store was restored to an older state.
                Some(token) if token.floor > newest => return Err(token_expired()),
                Some(token) => Resume::Revision(token.floor),
            };
            let after = token.map_or(0, |token| token.floor);
            match handle.attach(filter.clone(), user.clone(), from, newest).await {
                Some(Ok(attached)) => return Ok(attached),
                Some(Err(AttachRefusal::Expired)) => return Err(token_expired()),
                Some(Err(AttachRefusal::Full(full))) => return Err(too_many_filters(full == Full::User)),
                Some(Err(AttachRefusal::NeedsHistory(upto))) => {
                    self.read_history(&handle, filter.entity, after, upto).await?;
                }
                None => sleep(NEXT_HUB).await,
            }
        }
    }

    /// Returns a revision that includes every write acknowledged so far, so that the snapshot for a client includes its
    /// own writes. All caches that entities of this kind are made from have reached it.
    async fn newest(&self, entity: Entity) -> Result<u64, Status> {
        let options = PageOptions { at: ReadAt::Latest, limit: 1, start: None };
        let mut newest = u64::MAX;
        for storage in self.storages(entity) {
            // Lists no object: only the revision matters, and that the cache has reached it.
            let page = storage.list(&Scope::object(""), &options, &mut UnlimitedMemory).await;
            let page = page.map_err(|error| of_storage(&error, "revision", ""))?;
            newest = newest.min(page.revision.0);
        }
        Ok(newest)
    }

    async fn read_history(
        &self,
        handle: &HubHandle,
        entity: Entity,
        after: u64,
        upto: u64,
    ) -> Result<(), Status> {
        let Ok(_permit) = self.history.acquire().await else { return Err(token_expired()) };
        let [storage, ..] = self.storages(entity)[..] else { return Err(token_expired()) };
        match removals(storage.as_ref(), after, upto, self.config.max_history_changes).await {
            Ok(removed) => {
                handle.add_history(entity, after, removed).await;
                Ok(())
            }
            Err(StorageError::Expired { .. }) => Err(token_expired()),
            Err(error) => Err(of_storage(&error, "history", "")),
        }
    }

    /// Returns the storages that entities of a kind are made from.
    fn storages(&self, entity: Entity) -> Vec<&Arc<dyn Storage>> {
        let Stores { maintenances, evictions } = &self.stores;
        match entity {
            Entity::Maintenance => vec![maintenances],
            Entity::Eviction => vec![evictions],
            Entity::Node => vec![maintenances, evictions],
        }
    }

    /// Returns the running hub; starts one if there is none.
    fn handle(&self) -> HubHandle {
        let mut running = self.running.lock();
        if let Some(handle) = running.as_ref().filter(|handle| !handle.has_ended()) {
            return handle.clone();
        }
        let handle = start(self.stores.clone(), self.config.clone(), self.metrics.clone());
        *running = Some(handle.clone());
        handle
    }

    /// Returns the drain rate of a maintenance; empty if no filled hub runs.
    pub async fn drain_rate(&self, maintenance: &str) -> DrainRate {
        let running = self.running.lock().clone();
        let Some(handle) = running.filter(HubHandle::is_filled) else { return DrainRate::default() };
        let drain_rate = timeout(RATE_TIMEOUT, handle.drain_rate(maintenance.to_owned())).await;
        drain_rate.ok().flatten().unwrap_or_default()
    }
}

/// Returns the keys that were removed after one revision and up to another, with the revisions. A key that was removed
/// several times is listed several times. They are for streams that come from another hub: removals from before this one
/// started, read once from the backend's history.
///
/// # Errors
/// [`StorageError::Expired`] if the history is compacted, or if there are more than `most` changes.
async fn removals(
    storage: &dyn Storage,
    after: u64,
    upto: u64,
    most: usize,
) -> Result<Vec<(Arc<str>, u64)>, StorageError> {
    let mut watcher = storage.watch(Scope::all(), WatchFrom::After(Revision(after))).await?;
    let (mut removed, mut changes) = (Vec::new(), 0);
    while watcher.progress().0 < upto {
        let events = match timeout(QUIET, watcher.next()).await {
            Ok(Some(events)) => events,
            Ok(None) => return Err(StorageError::NotReady),
            Err(_) => continue,
        };
        changes += events.len();
        if changes > most {
            return Err(StorageError::Expired { requested: after, oldest: upto });
        }
        for event in events {
            match event {
                WatchEvent::Deleted(stored) => removed.push((Arc::from(&*stored.key), stored.revision.0)),
                WatchEvent::Failed(error) => return Err(error),
                WatchEvent::Added(_) | WatchEvent::Modified(_) | WatchEvent::Bookmark { .. } => {}
            }
        }
    }
    Ok(removed)
}
