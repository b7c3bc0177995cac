//! The newest change of each key, in order: what must still be sent to a subscriber at any position.
//!
//! Each key has one entry: a newer change replaces the older one. Removals are kept as tombstones. Beyond a limit the
//! oldest tombstones are dropped, and a subscriber that has not passed a dropped one must start again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::token::Position;

/// Bytes that a tombstone takes besides its key and its message.
const TOMBSTONE: usize = 256;
/// Number of tombstones that every view may keep, even without entities.
const LEAST_TOMBSTONES: usize = 64;

/// A change of one entity, shared by all logs that contain it.
#[derive(Debug)]
pub struct ChangeEntry {
    /// The entity's key.
    pub key: Arc<str>,
    /// Its position in the order of changes.
    pub position: Position,
    /// Every change up to this revision has a lower position.
    pub floor: u64,
    /// Whether the entity is gone or is not selected.
    pub is_removal: bool,
    /// The `updated` or `removed` field of the response, encoded.
    pub event: Bytes,
}

/// How many tombstones a log keeps, and how many bytes of them.
#[derive(Clone, Copy, Debug)]
pub struct TombstoneLimit {
    /// Maximum number of tombstones.
    pub count: usize,
    /// Maximum bytes of tombstones.
    pub bytes: usize,
}

/// How many more tombstones a log may keep, and how many bytes of them.
#[derive(Clone, Copy, Debug)]
pub struct TombstoneQuota {
    count: usize,
    bytes: usize,
}

/// Changes by position and by key.
#[derive(Debug)]
pub struct ChangeLog {
    entries: BTreeMap<Position, Arc<ChangeEntry>>,
    positions: HashMap<Arc<str>, Position>,
    tombstones: BTreeSet<Position>,
    tombstone_bytes: usize,
    /// Bytes of keys and messages.
    bytes: usize,
    limit: TombstoneLimit,
    /// Maximum number of tombstones, if it is less than `limit`.
    most: usize,
    horizon: Position,
}

impl ChangeLog {
    /// Creates an empty log that knows every removal after `horizon`.
    pub fn new(limit: TombstoneLimit, horizon: Position) -> Self {
        Self {
            entries: BTreeMap::new(),
            positions: HashMap::new(),
            tombstones: BTreeSet::new(),
            tombstone_bytes: 0,
            bytes: 0,
            limit,
            most: limit.count,
            horizon,
        }
    }

    /// Creates an empty log for a view, which knows every removal after `horizon`. It keeps at most as many tombstones
    /// as it had entities at once, or `LEAST_TOMBSTONES` if that is more, so that the limit on entities in all views
    /// limits tombstones too.
    pub fn of_view(limit: TombstoneLimit, horizon: Position) -> Self {
        Self { most: LEAST_TOMBSTONES, ..Self::new(limit, horizon) }
    }

    /// Adds a change, which replaces the key's older one.
    pub fn put(&mut self, entry: Arc<ChangeEntry>) {
        if let Some(before) = self.positions.insert(entry.key.clone(), entry.position) {
            self.take_out(before);
        }
        self.bytes += size(&entry);
        if entry.is_removal {
            self.tombstones.insert(entry.position);
            self.tombstone_bytes += cost(&entry);
        }
        self.entries.insert(entry.position, entry);
        self.most = self.most.max(self.live());
        self.trim();
    }

    fn take_out(&mut self, position: Position) -> Option<Arc<ChangeEntry>> {
        let entry = self.entries.remove(&position)?;
        self.bytes -= size(&entry);
        if self.tombstones.remove(&position) {
            self.tombstone_bytes -= cost(&entry);
        }
        Some(entry)
    }

    fn trim(&mut self) {
        while self.tombstones.len() > self.most_tombstones() || self.tombstone_bytes > self.limit.bytes {
            let Some(oldest) = self.tombstones.first().copied() else { return };
            if let Some(entry) = self.take_out(oldest) {
                self.positions.remove(&entry.key);
            }
            self.horizon = self.horizon.max(oldest);
        }
    }

    fn most_tombstones(&self) -> usize {
        self.most.min(self.limit.count)
    }

    /// Returns how many more tombstones may be kept.
    pub fn tombstones_left(&self) -> TombstoneQuota {
        TombstoneQuota {
            count: self.most_tombstones().saturating_sub(self.tombstones.len()),
            bytes: self.limit.bytes.saturating_sub(self.tombstone_bytes),
        }
    }

    /// Returns the newest change of a key.
    pub fn get(&self, key: &str) -> Option<&Arc<ChangeEntry>> {
        self.entries.get(self.positions.get(key)?)
    }

    /// Whether the log has the entity, and not its removal.
    pub fn is_live(&self, key: &str) -> bool {
        self.get(key).is_some_and(|entry| !entry.is_removal)
    }

    /// Returns the changes after a position, in order.
    pub fn after(&self, position: Position) -> impl Iterator<Item = &Arc<ChangeEntry>> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.entries.range((Excluded(position), Unbounded)).map(|(_, entry)| entry)
    }

    /// Returns the removals after a position, in order.
    pub fn tombstones_after(&self, position: Position) -> impl Iterator<Item = &Arc<ChangeEntry>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let positions = self.tombstones.range((Excluded(position), Unbounded));
        positions.filter_map(|position| self.entries.get(position))
    }

    /// Returns the position of the newest change.
    pub fn end(&self) -> Position {
        self.entries.last_key_value().map_or(Position::START, |(position, _)| *position)
    }

    /// Returns the position after which the log has every removal.
    pub fn horizon(&self) -> Position {
        self.horizon
    }

    /// Records that the log now has every removal after an older position.
    pub fn lower_horizon(&mut self, to: Position) {
        self.horizon = self.horizon.min(to);
    }

    /// Bytes of all keys and messages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of entities, without removals.
    pub fn live(&self) -> usize {
        self.entries.len() - self.tombstones.len()
    }
}

impl TombstoneQuota {
    /// Counts a tombstone; `false` if it may not be kept.
    pub fn take(&mut self, tombstone: &ChangeEntry) -> bool {
        let cost = cost(tombstone);
        let is_enough = self.count > 0 && self.bytes >= cost;
        if is_enough {
            (self.count, self.bytes) = (self.count - 1, self.bytes - cost);
        }
        is_enough
    }
}

fn cost(entry: &ChangeEntry) -> usize {
    TOMBSTONE + size(entry)
}

fn size(entry: &ChangeEntry) -> usize {
    entry.key.len() + entry.event.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: TombstoneLimit = TombstoneLimit { count: 2, bytes: 1 << 20 };

    fn entry(key: &str, serial: u64, is_removal: bool) -> Arc<ChangeEntry> {
        let position = Position { revision: 1, serial };
        Arc::new(ChangeEntry { key: key.into(), position, floor: 0, is_removal, event: Bytes::new() })
    }

    fn told(log: &ChangeLog, serial: u64) -> Vec<(String, bool)> {
        let after = log.after(Position { revision: 1, serial });
        after.map(|entry| (entry.key.to_string(), entry.is_removal)).collect()
    }

    #[test]
    fn a_key_stands_once_at_its_newest_change() {
        let mut log = ChangeLog::new(LIMIT, Position::START);
        for (key, serial) in [("a", 1), ("b", 2), ("a", 3)] {
            log.put(entry(key, serial, false));
        }
        assert_eq!(told(&log, 0), [("b".to_owned(), false), ("a".to_owned(), false)]);
        assert_eq!(told(&log, 2), [("a".to_owned(), false)]);
        assert_eq!((log.live(), log.end().serial), (2, 3));
    }

    #[test]
    fn a_key_that_comes_back_is_no_tombstone_any_more() {
        let mut log = ChangeLog::new(LIMIT, Position::START);
        log.put(entry("a", 1, false));
        log.put(entry("a", 2, true));
        assert!(!log.is_live("a"));
        log.put(entry("a", 3, false));
        assert!(log.is_live("a"));
        assert_eq!((log.tombstones.len(), log.tombstone_bytes, log.bytes()), (0, 0, 1));
    }

    #[test]
    fn the_oldest_tombstones_are_dropped_and_the_horizon_says_so() {
        let mut log = ChangeLog::new(LIMIT, Position::START);
        for (key, serial) in [("a", 1), ("b", 2), ("c", 3)] {
            log.put(entry(key, serial, true));
        }
        assert_eq!(told(&log, 0), [("b".to_owned(), true), ("c".to_owned(), true)]);
        assert_eq!(log.horizon().serial, 1);
        assert!(log.get("a").is_none());
    }

    #[test]
    fn tombstones_are_bounded_in_bytes_too() {
        let mut log = ChangeLog::new(TombstoneLimit { count: 1000, bytes: 3 * TOMBSTONE }, Position::START);
        (1..=10).for_each(|serial| log.put(entry(&format!("key-{serial}"), serial, true)));
        assert!(log.tombstone_bytes <= 3 * TOMBSTONE, "{}", log.tombstone_bytes);
        assert_eq!((log.live(), log.entries.len()), (0, log.tombstones.len()));
    }

    #[test]
    fn a_view_keeps_as_many_tombstones_as_it_had_entities() {
        let limit = TombstoneLimit { count: 1000, bytes: 1 << 20 };
        let entities = 2 * LEAST_TOMBSTONES as u64;
        let mut log = ChangeLog::of_view(limit, Position::START);
        (1..=entities).for_each(|serial| log.put(entry(&format!("key-{serial}"), serial, false)));
        (1..=entities).for_each(|key| log.put(entry(&format!("key-{key}"), entities + key, true)));
        assert_eq!((log.live(), log.tombstones.len()), (0, 2 * LEAST_TOMBSTONES));
        assert!(!log.tombstones_left().take(&entry("key", 1000, true)));
        log.put(entry("other", 3 * entities, true));
        assert_eq!((log.tombstones.len(), log.horizon().serial), (2 * LEAST_TOMBSTONES, entities + 1));
        let mut small = ChangeLog::of_view(limit, Position::START);
        (1..=entities).for_each(|serial| small.put(entry(&format!("key-{serial}"), serial, true)));
        assert_eq!(small.tombstones.len(), LEAST_TOMBSTONES);
    }
}
