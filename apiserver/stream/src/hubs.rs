//! The hub that runs, if any: started for the first subscriber, and again after it has ended.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Duration, sleep, timeout};
use tonic::Status;

use drydock_storage::storage::StorageError;

use crate::config::Config;
use crate::error::{token_expired, too_many_filters, unavailable};
use crate::filter::{Entity, Filter};
use crate::history::removals;
use crate::hub::attach::{Attached, Refusal, Resume};
use crate::hub::{Handle, Stores, start};
use crate::messages::maintenance::Pace;
use crate::token::Token;
use crate::views::Full;

/// How long a caller waits before it asks the next hub after one that has ended.
const NEXT_HUB: Duration = Duration::from_millis(50);

/// Where subscribers find their hub.
pub struct Hubs {
    /// What it follows.
    pub stores: Stores,
    /// Bounds and times.
    pub config: Config,
    running: Mutex<Option<Handle>>,
    /// One at a time reads history, as the next one mostly finds what it needs.
    history: Semaphore,
}

impl Hubs {
    /// No hub runs yet.
    pub fn new(stores: Stores, config: Config) -> Self {
        Self { stores, config, running: Mutex::new(None), history: Semaphore::new(1) }
    }

    /// Subscribes a user after a token, or to what there is. Waits for a hub that is being filled.
    ///
    /// # Errors
    /// OUT_OF_RANGE if nobody can go on after the token, RESOURCE_EXHAUSTED for too many filters, UNAVAILABLE if no hub is
    /// ready in time.
    pub async fn attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        let attached = timeout(self.config.patience, self.try_attach(filter, user, token)).await;
        attached.unwrap_or_else(|_| Err(unavailable("the status stream is not ready: try again")))
    }

    async fn try_attach(
        &self,
        filter: Filter,
        user: Arc<str>,
        token: Option<Token>,
    ) -> Result<Attached, Status> {
        loop {
            let handle = self.handle();
            let from = match token {
                None => Resume::Start,
                Some(token) if token.hub == handle.id => Resume::Position(token.position),
                Some(token) => Resume::Revision(token.floor),
            };
            match handle.attach(filter.clone(), user.clone(), from).await {
                Some(Ok(attached)) => return Ok(attached),
                Some(Err(refusal)) => self.mend(&handle, filter.entity, token, refusal).await?,
                None => sleep(NEXT_HUB).await,
            }
        }
    }

    /// Does what lets a refused caller in.
    ///
    /// # Errors
    /// What the caller is refused with, if nothing does.
    async fn mend(
        &self,
        handle: &Handle,
        entity: Entity,
        token: Option<Token>,
        refusal: Refusal,
    ) -> Result<(), Status> {
        let after = token.map_or(0, |token| token.floor);
        match refusal {
            Refusal::Expired => Err(token_expired()),
            Refusal::Full(full) => Err(too_many_filters(full == Full::User)),
            Refusal::Behind => self.catch_up(handle, entity, after).await,
            Refusal::NeedsHistory(upto) => self.read_history(handle, entity, after, upto).await,
        }
    }

    /// Waits until the hub has seen a revision that another replica has seen.
    async fn catch_up(&self, handle: &Handle, entity: Entity, revision: u64) -> Result<(), Status> {
        let newest = self.storage(entity).current_revision().await;
        if newest.is_ok_and(|newest| newest.0 < revision) {
            // Of another store, or of one that was put back to an older state.
            return Err(token_expired());
        }
        let mut reached = handle.reached.clone();
        // A hub that has ended is found out by the next try.
        let _ = reached.wait_for(|reached| reached[entity.index()].floor >= revision).await;
        Ok(())
    }

    async fn read_history(
        &self,
        handle: &Handle,
        entity: Entity,
        after: u64,
        upto: u64,
    ) -> Result<(), Status> {
        let Ok(_permit) = self.history.acquire().await else { return Err(token_expired()) };
        let storage = self.storage(entity);
        match removals(storage.as_ref(), after, upto, self.config.history).await {
            Ok(removed) => {
                handle.add_history(entity, after, removed).await;
                Ok(())
            }
            Err(StorageError::Expired { .. }) => Err(token_expired()),
            Err(error) => Err(crate::error::of_storage(&error, "history", "")),
        }
    }

    fn storage(&self, entity: Entity) -> &Arc<dyn drydock_storage::storage::Storage> {
        match entity {
            Entity::Maintenance | Entity::Node => &self.stores.maintenances,
            Entity::Eviction => &self.stores.evictions,
        }
    }

    /// The hub that runs; starts one if none does.
    fn handle(&self) -> Handle {
        let mut running = self.running.lock();
        if let Some(handle) = running.as_ref().filter(|handle| !handle.is_over()) {
            return handle.clone();
        }
        let handle = start(self.stores.clone(), self.config.clone());
        *running = Some(handle.clone());
        handle
    }

    /// How fast a maintenance goes, if a hub runs that knows.
    pub async fn pace(&self, maintenance: &str) -> Pace {
        let running = self.running.lock().clone();
        let Some(handle) = running.filter(Handle::is_filled) else { return Pace::default() };
        handle.pace(maintenance.to_owned()).await.unwrap_or_default()
    }
}
