//! How a hub is filled: with all objects, in the order of their last changes.

use std::sync::Arc;

use drydock_storage::storage::{
    ReadAt, Scope, Storage, StorageError, Stored, WatchEvent, WatchFrom, Watcher,
};
use drydock_storage::work_meter::WorkMeter;
use tokio::sync::watch;

use super::state::{AllReached, HubState, Source, Unreadable, updates};
use crate::config::Config;
use crate::facts::{Facts, Update};

/// The resources that a hub follows.
#[derive(Clone)]
pub struct Stores {
    /// NodeMaintenances.
    pub maintenances: Arc<dyn Storage>,
    /// EvictionRequests.
    pub evictions: Arc<dyn Storage>,
}

/// A watch whose initial events have been read.
pub(super) struct Following {
    pub(super) watcher: Box<dyn Watcher>,
    /// Events that came in one batch with the last initial ones.
    pub(super) rest: Vec<WatchEvent>,
    revision: u64,
}

/// Opens both watches and reads their initial events.
pub(super) async fn fill(
    stores: &Stores,
    config: &Config,
    reached: watch::Sender<AllReached>,
    id: u64,
) -> Result<(HubState, Following, Following), StorageError> {
    let facts = Facts::new(config.heartbeat_deadline);
    let mut filling = Filling { facts, config, found: Vec::new(), unreadable: Unreadable::default() };
    // Evictions first: reading them updates no node while no maintenance is known.
    let evictions = filling.read(Source::Evictions, &stores.evictions).await?;
    let maintenances = filling.read(Source::Maintenances, &stores.maintenances).await?;
    let Filling { facts, mut found, unreadable, .. } = filling;
    found.sort_by_key(|(revision, _)| *revision);
    let nodes = facts.all_nodes();
    let revisions = (maintenances.revision, evictions.revision);
    let mut state = HubState::new(config, reached, id, facts, revisions, unreadable);
    let mut work = WorkMeter::default();
    for (revision, update) in found {
        work.worked(update.state.as_ref().map_or(0, |state| state.event.len())).await;
        // Every earlier change has a lower position.
        state.apply(update, revision, revision.saturating_sub(1));
    }
    for update in nodes {
        // The revision of a node's last change is not known, so no revision tells which nodes were sent.
        state.apply(update, revisions.0.max(revisions.1), 0);
    }
    state.publish();
    Ok((state, maintenances, evictions))
}

struct Filling<'c> {
    facts: Facts,
    config: &'c Config,
    /// The update of each object, with the revision of its last change.
    found: Vec<(u64, Update)>,
    unreadable: Unreadable,
}

impl Filling<'_> {
    async fn read(&mut self, source: Source, storage: &Arc<dyn Storage>) -> Result<Following, StorageError> {
        let mut watcher = storage.watch(Scope::all(), WatchFrom::InitialEvents(ReadAt::Latest)).await?;
        let mut work = WorkMeter::default();
        while let Some(events) = watcher.next().await {
            let mut events = events.into_iter();
            while let Some(event) = events.next() {
                match event {
                    WatchEvent::Added(stored) => {
                        work.worked(stored.json_len()).await;
                        self.take(source, &stored);
                    }
                    WatchEvent::Bookmark { revision, initial: true } => {
                        return Ok(Following { watcher, rest: events.collect(), revision: revision.0 });
                    }
                    WatchEvent::Failed(error) => return Err(error),
                    WatchEvent::Modified(_) | WatchEvent::Deleted(_) | WatchEvent::Bookmark { .. } => {}
                }
            }
        }
        Err(StorageError::NotReady)
    }

    fn take(&mut self, source: Source, stored: &Stored) {
        let updates = updates(&mut self.facts, source, stored, true, (self.config.clock)());
        self.unreadable.note(source, &updates);
        // Only the object's own update: nodes are applied when all objects are known.
        self.found.extend(updates.into_iter().next().map(|update| (stored.revision.0, update)));
    }
}
