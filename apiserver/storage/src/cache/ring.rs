//! The recent changes, and the objects as they were after each of them.
//!
//! Keeping the objects of a revision costs the tree paths that the change has copied. So the changes that are
//! published together share one snapshot, and a reader makes the objects between two snapshots from the earlier one.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::Config;
use super::objects::ObjectMap;
use crate::backend::Revision;
use crate::storage::Stored;

/// Bytes that keeping one change costs besides its value: the tree paths that only its snapshot holds.
const OVERHEAD: usize = 2_048;
/// Number of changes after which a snapshot is kept: an exact read applies only about as many again.
const TOGETHER: usize = 64;

/// Recent changes, bounded by [`Config`].
#[derive(Clone, Default)]
pub(super) struct Ring {
    /// The revision before the first change, and the objects at that revision.
    floor: Revision,
    base: ObjectMap,
    changes: OrdMap<ChangePosition, Arc<CachedChange>>,
    bytes: usize,
    /// The objects after some of the changes; after [`Self::keep`], the last change is one of them.
    kept: OrdMap<Revision, ObjectMap>,
    /// Number of changes since the newest of these.
    since: usize,
}

/// One change.
pub(super) struct CachedChange {
    pub(super) revision: Revision,
    pub(super) key: String,
    pub(super) current: Option<Arc<Stored>>,
    pub(super) previous: Option<Arc<Stored>>,
    /// Why the new value cannot be decoded; `None` if it can.
    pub(super) damage: Option<Arc<str>>,
    pub(super) bytes: usize,
    last_in_selection: OnceLock<Arc<Stored>>,
}

/// Revision, and index among the changes of that revision.
type ChangePosition = (Revision, u32);

impl Ring {
    /// Creates a ring without changes; `base` are the objects at `floor`.
    pub(super) fn since(floor: Revision, base: ObjectMap) -> Self {
        Self { floor, base, ..Self::default() }
    }

    /// Watchers that have been sent everything up to this revision, or a later one, can continue from the ring.
    pub(super) fn floor(&self) -> Revision {
        self.floor
    }

    /// Number of changes.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Bytes that the changes account for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the changes above `after`, oldest first.
    pub(super) fn changes(&self, after: Revision) -> impl Iterator<Item = &Arc<CachedChange>> {
        let start = Bound::Excluded((after, u32::MAX));
        self.changes.range((start, Bound::Unbounded)).map(|(_, change)| change)
    }

    /// Returns the objects at a revision from the floor on: those of the last snapshot before it, with the later
    /// changes applied.
    pub(super) fn objects_at(&self, revision: Revision) -> ObjectMap {
        let (at, objects) = self.kept.get_prev(&revision).unwrap_or((&self.floor, &self.base));
        let mut objects = objects.clone();
        for change in self.changes(*at).take_while(|change| change.revision <= revision) {
            match &change.damage {
                None => objects.replace(&change.key, change.current.clone()),
                Some(why) => objects.damage(&change.key, why.clone()),
            };
        }
        objects
    }

    /// Appends the newest change.
    pub(super) fn push(&mut self, change: CachedChange) {
        let index = match self.changes.get_max() {
            Some(((last, index), _)) if *last == change.revision => index + 1,
            _ => 0,
        };
        self.bytes += change.bytes;
        self.since += 1;
        self.changes.insert((change.revision, index), Arc::new(change));
    }

    /// Whether so many changes were added that a snapshot should be kept before the next one.
    pub(super) fn is_due(&self) -> bool {
        self.since >= TOGETHER
    }

    /// Keeps a snapshot of the objects after the newest change, at `revision`.
    pub(super) fn keep(&mut self, revision: Revision, objects: &ObjectMap) {
        if std::mem::take(&mut self.since) > 0 {
            self.kept.insert(revision, objects.clone());
        }
    }

    /// Number of snapshots kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Removes the oldest changes beyond the limits, whole revisions at a time.
    pub(super) fn trim(&mut self, config: &Config) {
        let Some((last, bytes)) = self.superfluous(config) else { return };
        (self.floor, self.base, self.bytes) = (last, self.objects_at(last), bytes);
        while let Some(position) =
            self.changes.get_min().map(|(position, _)| *position).filter(|p| p.0 <= last)
        {
            self.changes.remove(&position);
        }
        while let Some(at) = self.kept.get_min().map(|(at, _)| *at).filter(|at| *at <= last) {
            self.kept.remove(&at);
        }
    }

    /// Returns the last revision to remove, and the bytes of the changes after it.
    fn superfluous(&self, config: &Config) -> Option<(Revision, usize)> {
        let (mut events, mut bytes, mut last) = (self.len(), self.bytes, None);
        for ((revision, _), change) in &self.changes {
            let within = events <= config.ring_events && bytes <= config.ring_bytes;
            if within && last != Some(*revision) {
                break;
            }
            (events, bytes, last) = (events - 1, bytes - change.bytes, Some(*revision));
        }
        last.map(|last| (last, bytes))
    }
}

impl CachedChange {
    /// A change to a value that can be decoded, or a deletion; `bytes` is the size of the value.
    pub(super) fn new(
        revision: Revision,
        key: &str,
        current: Option<Arc<Stored>>,
        previous: Option<Arc<Stored>>,
        bytes: usize,
    ) -> Self {
        let (key, bytes) = (key.to_owned(), bytes + OVERHEAD);
        Self { revision, key, current, previous, damage: None, bytes, last_in_selection: OnceLock::new() }
    }

    /// A change to a value that cannot be decoded, and why.
    pub(super) fn damaged(
        revision: Revision,
        key: &str,
        previous: Option<Arc<Stored>>,
        why: Arc<str>,
    ) -> Self {
        Self { damage: Some(why), ..Self::new(revision, key, None, previous, 0) }
    }

    /// Returns the previous state with this change's revision, for watchers whose selection the object left. It is
    /// made once for all of them.
    pub(super) fn last_in_selection(&self, previous: &Arc<Stored>) -> Arc<Stored> {
        self.last_in_selection.get_or_init(|| Arc::new(previous.stamped(self.revision))).clone()
    }
}
