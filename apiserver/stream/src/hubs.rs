//! The hub that runs, if any: started for the first subscriber, and again after it has ended.

use std::sync::Arc;

use drydock_storage::memory_budget::UnlimitedMemory;
use drydock_storage::storage::{ListOptions, ReadAt, Scope, Storage, StorageError};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Duration, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

use crate::config::Config;
use crate::error::{of_storage, token_expired, too_many_filters, unavailable};
use crate::filter::{Entity, Filter};
use crate::history::removals;
use crate::hub::attach::{Attached, Refusal, Resume};
use crate::hub::{Handle, Stores, start};
use crate::metrics::Metrics;
use crate::rate::Pace;
use crate::token::Token;
use crate::views::Full;

/// How long a caller waits before it asks the next hub after one that has ended.
const NEXT_HUB: Duration = Duration::from_millis(50);

/// How long a Get waits for the rate: it is answered without one then.
const PACE: Duration = Duration::from_secs(1);

/// Where subscribers find their hub.
pub struct Hubs {
    /// What it follows.
    pub stores: Stores,
    /// Bounds and times.
    pub config: Config,
    /// What is counted.
    pub metrics: Metrics,
    running: Mutex<Option<Handle>>,
    /// One at a time reads history, as the next one mostly finds what it needs.
    history: Semaphore,
}

impl Hubs {
    /// No hub runs yet.
    pub fn new(stores: Stores, config: Config) -> Self {
        Self {
            stores,
            config,
            metrics: Metrics::default(),
            running: Mutex::new(None),
            history: Semaphore::new(1),
        }
    }

    /// Subscribes a user after a token, or to what there is. Waits for a hub that is being filled.
    ///
    /// It has a task of its own: a stream that is not read is not polled, and would keep what others wait for.
    ///
    /// # Errors
    /// OUT_OF_RANGE if nobody can go on after the token, RESOURCE_EXHAUSTED for too many filters, UNAVAILABLE if no hub is
    /// ready in time.
    pub async fn attach(
        self: &Arc<Self>,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        let hubs = self.clone();
        let task = tokio::spawn(async move {
            timeout(hubs.config.attach_timeout, hubs.try_attach(filter, user, token)).await.ok()
        });
        let attached = AbortOnDropHandle::new(task).await.ok().flatten();
        attached.unwrap_or_else(|| Err(unavailable("the status stream is not ready: try again")))
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
                // Of another store, or of one that was put back to an older state.
                Some(token) if token.floor > newest => return Err(token_expired()),
                Some(token) => Resume::Revision(token.floor),
            };
            let after = token.map_or(0, |token| token.floor);
            match handle.attach(filter.clone(), user.clone(), from, newest).await {
                Some(Ok(attached)) => return Ok(attached),
                Some(Err(Refusal::Expired)) => return Err(token_expired()),
                Some(Err(Refusal::Full(full))) => return Err(too_many_filters(full == Full::User)),
                Some(Err(Refusal::NeedsHistory(upto))) => {
                    self.read_history(&handle, filter.entity, after, upto).await?;
                }
                None => sleep(NEXT_HUB).await,
            }
        }
    }

    /// A revision that has every write acknowledged so far: the snapshot of whoever wrote something has it. All caches in
    /// question have seen it.
    async fn newest(&self, entity: Entity) -> Result<u64, Status> {
        let options = ListOptions { at: ReadAt::Latest, limit: 1, start: None };
        let mut newest = u64::MAX;
        for storage in self.storages(entity) {
            // Of no object: what is asked for is the revision, and that the cache has come so far.
            let page = storage.list(&Scope::object(""), &options, &mut UnlimitedMemory).await;
            let page = page.map_err(|error| of_storage(&error, "revision", ""))?;
            newest = newest.min(page.revision.0);
        }
        Ok(newest)
    }

    async fn read_history(
        &self,
        handle: &Handle,
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

    /// What entities of a kind are made from.
    fn storages(&self, entity: Entity) -> Vec<&Arc<dyn Storage>> {
        let Stores { maintenances, evictions } = &self.stores;
        match entity {
            Entity::Maintenance => vec![maintenances],
            Entity::Eviction => vec![evictions],
            Entity::Node => vec![maintenances, evictions],
        }
    }

    /// The hub that runs; starts one if none does.
    fn handle(&self) -> Handle {
        let mut running = self.running.lock();
        if let Some(handle) = running.as_ref().filter(|handle| !handle.has_ended()) {
            return handle.clone();
        }
        let handle = start(self.stores.clone(), self.config.clone(), self.metrics.clone());
        *running = Some(handle.clone());
        handle
    }

    /// How fast a maintenance goes, if a hub runs that knows.
    pub async fn pace(&self, maintenance: &str) -> Pace {
        let running = self.running.lock().clone();
        let Some(handle) = running.filter(Handle::is_filled) else { return Pace::default() };
        let pace = timeout(PACE, handle.pace(maintenance.to_owned())).await;
        pace.ok().flatten().unwrap_or_default()
    }
}
