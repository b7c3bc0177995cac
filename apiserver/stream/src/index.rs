//! All entities of one kind as subscribers see them, in the order of their changes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::facts::Update;
use crate::filter::{Anchor, Entity, EntityAttributes, Filter, anchors};
use crate::log::{ChangeEntry, ChangeLog, TombstoneLimit};
use crate::messages::fields;
use crate::token::Position;

/// The entities of a kind.
pub struct Index {
    entity: Entity,
    log: ChangeLog,
    /// The attributes of the present entities, by key, so that those of a namespace are adjacent.
    attributes: BTreeMap<Arc<str>, Arc<EntityAttributes>>,
    /// Every removal after this revision is known, unless the log has dropped it.
    known_since: u64,
    limit: TombstoneLimit,
}

/// A change of one entity.
pub struct Change {
    /// The kind.
    pub entity: Entity,
    /// The entity's new state, or its removal.
    pub entry: Arc<ChangeEntry>,
    before: Option<Arc<EntityAttributes>>,
    after: Option<Arc<EntityAttributes>>,
    /// What subscribers get whose filter no longer selects the entity.
    removal: OnceLock<Arc<ChangeEntry>>,
}

impl Change {
    /// Whether a filter selects the entity now.
    pub fn is_selected_by(&self, filter: &Filter) -> bool {
        self.after.as_ref().is_some_and(|attributes| filter.selects(&self.entry.key, attributes))
    }

    /// Returns the removal for subscribers whose filter no longer selects the entity.
    pub fn removal(&self) -> &Arc<ChangeEntry> {
        self.removal.get_or_init(|| removal_of(self.entity, &self.entry))
    }

    /// Returns the anchors of all views that the change may concern.
    pub fn anchors(&self) -> Vec<Anchor> {
        let both = self.before.iter().chain(&self.after).map(Arc::as_ref);
        anchors(self.entity, &self.entry.key, both)
    }
}

fn removal_of(entity: Entity, entry: &Arc<ChangeEntry>) -> Arc<ChangeEntry> {
    if entry.is_removal {
        return entry.clone();
    }
    let event = fields::removed(entity, &entry.key);
    Arc::new(ChangeEntry { key: entry.key.clone(), is_removal: true, event, ..**entry })
}

impl Index {
    /// Creates an index without entities, which knows no removal up to `known_since`.
    pub fn new(entity: Entity, limit: TombstoneLimit, known_since: u64) -> Self {
        Self {
            entity,
            log: ChangeLog::new(limit, Position::START),
            attributes: BTreeMap::new(),
            known_since,
            limit,
        }
    }

    /// Applies an update at a position after all others; returns `None` if nothing changes for subscribers.
    pub fn apply(&mut self, update: Update, position: Position, floor: u64) -> Option<Change> {
        let Update { key, state, .. } = update;
        let before = self.attributes.get(&key).cloned();
        let (after, event) = match state {
            Some(state) => (Some(state.attributes), state.event),
            None => (None, fields::removed(self.entity, &key)),
        };
        let is_same = match (&before, &after) {
            (None, None) => true,
            (Some(before), Some(after)) => {
                **before == *after && self.log.get(&key).is_some_and(|entry| entry.event == event)
            }
            _ => false,
        };
        if is_same {
            return None;
        }
        let after = after.map(Arc::new);
        match &after {
            Some(after) => drop(self.attributes.insert(key.clone(), after.clone())),
            None => drop(self.attributes.remove(&key)),
        }
        let entry = Arc::new(ChangeEntry { key, position, floor, is_removal: after.is_none(), event });
        self.log.put(entry.clone());
        Some(Change { entity: self.entity, entry, before, after, removal: OnceLock::new() })
    }

    /// Returns the log of a new view: the present entities that the filter selects, and no removals.
    pub fn view(&self, filter: &Filter) -> ChangeLog {
        let mut log = ChangeLog::of_view(self.limit, self.log.end());
        for (key, attributes) in self.admitted(filter) {
            if filter.selects(key, attributes)
                && let Some(entry) = self.log.get(key)
            {
                log.put(entry.clone());
            }
        }
        log
    }

    /// Returns the present entities in the range of keys of a filter.
    fn admitted(&self, filter: &Filter) -> impl Iterator<Item = (&Arc<str>, &Arc<EntityAttributes>)> {
        let (first, last) = filter.keys();
        let (first, last) = (first.as_ref().map(String::as_str), last.as_ref().map(String::as_str));
        self.attributes.range::<str, _>((first, last))
    }

    /// Adds to a view the removals after an older position: those of entities that are gone, and of changed entities
    /// that the filter does not select, because it may have selected them before. Returns `false`, and leaves the view
    /// unchanged, if not all removals are known or if the view may not keep as many.
    ///
    /// This includes entities that changed after the view was made: they may have left the selection before.
    pub fn reach_back(&self, view: &mut ChangeLog, filter: &Filter, position: Position) -> bool {
        if position < self.log.horizon() {
            return false;
        }
        let changed = self
            .admitted(filter)
            .filter_map(|(key, _)| self.log.get(key))
            .filter(|it| it.position > position);
        let gone = self.log.tombstones_after(position);
        let mut left = view.tombstones_left();
        let mut missing = Vec::new();
        for entry in changed.chain(gone) {
            if view.get(&entry.key).is_none() && filter.admits(&entry.key) {
                let removal = removal_of(self.entity, entry);
                if !left.take(&removal) {
                    return false;
                }
                missing.push(removal);
            }
        }
        view.lower_horizon(position);
        missing.into_iter().for_each(|removal| view.put(removal));
        true
    }

    /// Bytes of all keys and messages.
    pub fn bytes(&self) -> usize {
        self.log.bytes()
    }

    /// Every removal after this revision is known, except those that were dropped.
    pub fn known_since(&self) -> u64 {
        self.known_since
    }

    /// Whether removals after a revision may have been dropped because the log keeps no more.
    pub fn has_dropped_after(&self, revision: u64) -> bool {
        revision < self.log.horizon().revision
    }

    /// Adds the removals after `since`, up to the revision from which on removals are known. `serial` is the last
    /// serial of such a removal.
    pub fn add_history(&mut self, since: u64, removed: &[(Arc<str>, u64)], serial: &mut u64) {
        for (key, revision) in removed.iter().filter(|(_, revision)| *revision <= self.known_since) {
            if self.log.get(key).is_none_or(|entry| entry.is_removal && entry.position.revision < *revision) {
                *serial += 1;
                let position = Position { revision: *revision, serial: *serial };
                let event = fields::removed(self.entity, key);
                let floor = revision.saturating_sub(1);
                self.log.put(Arc::new(ChangeEntry {
                    key: key.clone(),
                    position,
                    floor,
                    is_removal: true,
                    event,
                }));
            }
        }
        self.known_since = self.known_since.min(since);
    }
}
