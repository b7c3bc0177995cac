//! The queue's state, without waiting and without clocks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::QueueKey;
use crate::round_robin::NestedRoundRobin;

pub(super) struct QueueState<K> {
    ready: ReadyKeys<K>,
    /// Keys in `ready`, and keys to be put there when their worker is done; with the time of the add.
    dirty: HashMap<K, Instant>,
    processing: HashMap<K, Instant>,
    delayed: BTreeMap<(Instant, u64), K>,
    delayed_of: HashMap<K, (Instant, u64)>,
    sequence: u64,
    failures: HashMap<K, KeyFailures>,
    shut_down: bool,
}

/// The failures of a key since it was last forgotten.
#[derive(Default)]
struct KeyFailures {
    count: u32,
    /// Hash of the words noted last; the words may be long.
    noted: Option<u64>,
}

/// Keys that can be taken. Groups take turns; while keys of no group wait, which no tenant causes, every
/// second key is one of them.
struct ReadyKeys<K> {
    grouped: NestedRoundRobin<Arc<str>, Arc<str>, K>,
    others: VecDeque<K>,
    /// Whether the key taken last was of no group.
    took_other: bool,
}

impl<K> Default for ReadyKeys<K> {
    fn default() -> Self {
        Self { grouped: NestedRoundRobin::default(), others: VecDeque::new(), took_other: false }
    }
}

impl<K: QueueKey> ReadyKeys<K> {
    fn push(&mut self, key: K) {
        match key.lane() {
            Some((group, within)) => self.grouped.push(&group, &within, key),
            None => self.others.push_back(key),
        }
    }

    fn pop(&mut self) -> Option<K> {
        self.took_other = !self.others.is_empty() && (!self.took_other || self.grouped.is_empty());
        if self.took_other { self.others.pop_front() } else { self.grouped.pop() }
    }

    fn len(&self) -> usize {
        self.grouped.len() + self.others.len()
    }
}

impl<K> Default for QueueState<K> {
    fn default() -> Self {
        Self {
            ready: ReadyKeys::default(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_of: HashMap::new(),
            sequence: 0,
            failures: HashMap::new(),
            shut_down: false,
        }
    }
}

impl<K: QueueKey> QueueState<K> {
    /// Adds a key; returns whether it was added, which it is not if it waits already or the queue is shut
    /// down.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        if self.shut_down || self.dirty.contains_key(&key) {
            return false;
        }
        self.dirty.insert(key.clone(), now);
        if !self.processing.contains_key(&key) {
            self.ready.push(key);
        }
        true
    }

    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        if self.shut_down {
            return;
        }
        if let Some(&slot) = self.delayed_of.get(&key) {
            if slot.0 <= at {
                return;
            }
            self.delayed.remove(&slot);
        }
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.delayed.insert(slot, key.clone());
        self.delayed_of.insert(key, slot);
    }

    /// Moves delayed keys that are due to those that can be taken; returns how many were added.
    pub(super) fn promote_due(&mut self, now: Instant) -> usize {
        let mut added = 0;
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.delayed_of.remove(&key);
            added += usize::from(self.add(key, now));
        }
        added
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the key whose turn it is, with the time that it waited.
    pub(super) fn take(&mut self, now: Instant) -> Option<(K, Duration)> {
        let key = self.ready.pop()?;
        let added = self.dirty.remove(&key).unwrap_or(now);
        self.processing.insert(key.clone(), now);
        Some((key, now.saturating_duration_since(added)))
    }

    /// Ends the work on a key; returns how long it took, and whether the key can be taken again.
    pub(super) fn done(&mut self, key: &K, now: Instant) -> (Option<Duration>, bool) {
        let worked = self.processing.remove(key).map(|began| now.saturating_duration_since(began));
        let again = worked.is_some() && self.dirty.contains_key(key);
        if again {
            self.ready.push(key.clone());
        }
        (worked, again)
    }

    pub(super) fn count_failure(&mut self, key: &K) -> u32 {
        let KeyFailures { count, .. } = self.failures.entry(key.clone()).or_default();
        let before = *count;
        *count = count.saturating_add(1);
        before
    }

    pub(super) fn failures(&self, key: &K) -> u32 {
        self.failures.get(key).map_or(0, |failures| failures.count)
    }

    /// Notes the hash of a failure's words; returns whether it differs from the one noted last.
    pub(super) fn note_failure(&mut self, key: &K, words: u64) -> bool {
        self.failures.get_mut(key).is_some_and(|failures| failures.noted.replace(words) != Some(words))
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    pub(super) fn depth(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn unfinished(&self, now: Instant) -> (Duration, Duration, usize) {
        let spent = self.processing.values().map(|began| now.saturating_duration_since(*began));
        let (sum, longest) = spent.fold((Duration::ZERO, Duration::ZERO), |(s, l), d| (s + d, l.max(d)));
        (sum, longest, self.ready.len())
    }

    pub(super) fn shut_down(&mut self) {
        self.shut_down = true;
        self.delayed.clear();
        self.delayed_of.clear();
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down
    }
}
