//! The state of a hub without its watches. Events are applied to its views.

use std::collections::HashMap;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_storage::storage::Stored;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::config::Config;
use crate::facts::{Facts, Update};
use crate::filter::Entity;
use crate::index::Index;
use crate::metrics::Held;
use crate::token::Position;
use crate::view::View;
use crate::views::Views;

/// Lower serials are those of removals from before the hub's start.
const FIRST_SERIAL: u64 = 1 << 32;

/// The kinds of which some objects cannot be decoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unreadable {
    maintenances: bool,
    evictions: bool,
}

impl Unreadable {
    /// Records whether an existing object could be decoded. The first of the updates that it caused is its own, the
    /// others are those of nodes.
    pub(super) fn note(&mut self, source: Source, updates: &[Update]) {
        let is_unreadable = updates.first().is_some_and(|update| update.state.is_none());
        match source {
            Source::Maintenances => self.maintenances |= is_unreadable,
            Source::Evictions => self.evictions |= is_unreadable,
        }
    }

    /// Whether entities of a kind may be missing for this reason.
    fn concerns(self, entity: Entity) -> bool {
        match entity {
            Entity::Maintenance => self.maintenances,
            Entity::Eviction => self.evictions,
            Entity::Node => self.maintenances || self.evictions,
        }
    }
}

/// The two watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The watch of NodeMaintenances.
    Maintenances,
    /// The watch of EvictionRequests.
    Evictions,
}

/// The progress of one kind of entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Every change up to here is in the views.
    pub position: Position,
    /// Every change up to this revision is in the views.
    pub floor: u64,
}

/// The progress of each kind, by [`Entity::index`].
pub type AllReached = [Reached; 3];

/// The state of a hub.
pub struct HubState {
    /// The hub's id, which its tokens contain.
    pub id: u64,
    pub(super) facts: Facts,
    pub(super) indexes: [Index; 3],
    pub(super) views: Views,
    serial: u64,
    /// The last serial of a removal from before the start. These come before all other changes of their revision.
    pub(super) past_serial: u64,
    /// Objects that could not be decoded. An earlier hub may have sent them.
    unreadable: Unreadable,
    /// Revisions up to which each watch is processed.
    maintenances: u64,
    evictions: u64,
    /// The newest revision that any entity may contain.
    high: u64,
    reached: watch::Sender<AllReached>,
    /// Views that changed since their subscribers were woken, by address, so that each is woken once.
    touched: HashMap<usize, Arc<View>>,
}

impl HubState {
    /// Creates the state from facts that were read at these revisions.
    pub(super) fn new(
        config: &Config,
        reached: watch::Sender<AllReached>,
        id: u64,
        facts: Facts,
        (maintenances, evictions): (u64, u64),
        unreadable: Unreadable,
    ) -> Self {
        let index = |entity: Entity| {
            let known_since = match entity {
                Entity::Maintenance => maintenances,
                Entity::Eviction => evictions,
                Entity::Node => maintenances.max(evictions),
            };
            Index::new(entity, config.tombstones, known_since)
        };
        Self {
            id,
            facts,
            indexes: Entity::ALL.map(index),
            views: Views::new(config.views),
            serial: FIRST_SERIAL,
            past_serial: 0,
            unreadable,
            maintenances,
            evictions,
            high: maintenances.max(evictions),
            reached,
            touched: HashMap::new(),
        }
    }

    /// Returns a receiver of the progress of each kind.
    pub(super) fn follow(&self) -> watch::Receiver<AllReached> {
        self.reached.subscribe()
    }

    /// Returns the progress of a kind.
    pub(super) fn reached(&self, entity: Entity) -> Reached {
        self.reached.borrow()[entity.index()]
    }

    /// Returns what the hub holds, for the metrics.
    pub fn held(&self) -> Held {
        let (views, view_entities) = self.views.size();
        Held { views, view_entities, entity_bytes: self.indexes.iter().map(Index::bytes).sum() }
    }

    /// Whether an earlier hub may have sent entities of a kind that this one cannot decode, and so never removes.
    pub(super) fn has_unreadable(&self, entity: Entity) -> bool {
        self.unreadable.concerns(entity)
    }

    /// Applies an object's new state or its removal; returns the cost as [`Views::apply`] does. [`Self::publish`] wakes
    /// the subscribers.
    pub fn take(&mut self, source: Source, stored: &Stored, is_there: bool, now: Timestamp) -> usize {
        self.high = self.high.max(stored.revision.0);
        let updates = updates(&mut self.facts, source, stored, is_there, now);
        if is_there {
            self.unreadable.note(source, &updates);
        }
        self.apply_all(updates)
    }

    /// Applies the rates of drains as of `now`.
    pub fn update_drain_rates(&mut self, now: Timestamp) {
        let updates = self.facts.rates(now);
        self.apply_all(updates);
    }

    fn apply_all(&mut self, updates: Vec<Update>) -> usize {
        let apply = |update: Update| {
            let floor = self.floor(update.entity);
            self.apply(update, self.high, floor)
        };
        updates.into_iter().map(apply).sum()
    }

    /// Applies an update at the next position; returns the cost as [`Views::apply`] does. `revision` is the newest that
    /// the entity may contain.
    pub(super) fn apply(&mut self, update: Update, revision: u64, floor: u64) -> usize {
        let index = &mut self.indexes[update.entity.index()];
        self.serial += 1;
        let position = Position { revision, serial: self.serial };
        let Some(change) = index.apply(update, position, floor) else { return 0 };
        self.views.apply(&change, |view| {
            self.touched.insert(Arc::as_ptr(view).addr(), view.clone());
        })
    }

    /// Records that a watch was processed up to a revision.
    pub fn processed(&mut self, source: Source, revision: u64) {
        let known = match source {
            Source::Maintenances => &mut self.maintenances,
            Source::Evictions => &mut self.evictions,
        };
        *known = (*known).max(revision);
        self.high = self.high.max(revision);
    }

    fn floor(&self, entity: Entity) -> u64 {
        match entity {
            Entity::Maintenance => self.maintenances,
            Entity::Eviction => self.evictions,
            Entity::Node => self.maintenances.min(self.evictions),
        }
    }

    /// Publishes the progress of each kind, then wakes the subscribers of views that have changed.
    pub fn publish(&mut self) {
        let position = Position { revision: self.high, serial: self.serial };
        let reached = Entity::ALL.map(|entity| Reached { position, floor: self.floor(entity) });
        self.reached.send_if_modified(|known| {
            let has_moved = *known != reached;
            *known = reached;
            has_moved
        });
        for (_, view) in self.touched.drain() {
            view.wake();
        }
    }
}

/// Returns the updates that a change of an object causes. An object that cannot be decoded counts as removed.
pub(super) fn updates(
    facts: &mut Facts,
    source: Source,
    stored: &Stored,
    is_there: bool,
    now: Timestamp,
) -> Vec<Update> {
    let key: Arc<str> = Arc::from(&*stored.key);
    match source {
        Source::Maintenances => {
            let object = is_there.then(|| read::<NodeMaintenance>(stored)).flatten();
            facts.set_maintenance(&key, object.as_ref(), now)
        }
        Source::Evictions => {
            let request = is_there.then(|| read::<EvictionRequest>(stored)).flatten();
            facts.set_eviction(&key, request.as_ref())
        }
    }
}

/// Decodes an object. Logs a warning and returns `None` if that fails.
pub(crate) fn read<T: serde::de::DeserializeOwned>(stored: &Stored) -> Option<T> {
    let read = drydock_api::decode(&stored.object_not_kept());
    read.inspect_err(|errors| {
        tracing::warn!(key = %stored.key, ?errors, "an object cannot be read: the status stream leaves it out");
    })
    .ok()
}
