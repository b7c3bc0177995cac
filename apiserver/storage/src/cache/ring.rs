//! The recent changes, and the objects as they were after each of them.
//!
//! To keep the objects of a revision costs the paths that a change has copied. So changes which are published together
//! share one snapshot, and the objects between two snapshots are made again by whoever asks for them.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::Config;
use super::objects::Objects;
use crate::backend::Revision;
use crate::storage::Stored;

/// What keeping one change costs beside the value: the paths of the snapshot that it alone holds.
const OVERHEAD: usize = 2_048;
/// Changes that share a snapshot: most of what an exact read makes again.
const TOGETHER: usize = 64;

/// Recent changes, bounded by [`Config`].
#[derive(Clone, Default)]
pub(super) struct Ring {
    /// The revision before the first change, and the objects as of then.
    floor: Revision,
    base: Objects,
    changes: OrdMap<Position, Arc<Change>>,
    bytes: usize,
    /// The objects after some of the changes, the last one among them once [`Self::keep`] was called.
    kept: OrdMap<Revision, Objects>,
    /// Changes since the last of these.
    since: usize,
}

/// One change.
pub(super) struct Change {
    pub(super) revision: Revision,
    pub(super) key: String,
    pub(super) current: Option<Arc<Stored>>,
    pub(super) previous: Option<Arc<Stored>>,
    /// Why the new value cannot be read, if it cannot.
    pub(super) damage: Option<Arc<str>>,
    pub(super) bytes: usize,
    departed: OnceLock<Arc<Stored>>,
}

/// Revision, and index among the changes of that revision.
type Position = (Revision, u32);

impl Ring {
    /// No change since a revision, when the objects were these.
    pub(super) fn since(floor: Revision, base: Objects) -> Self {
        Self { floor, base, ..Self::default() }
    }

    /// Watchers that were told everything up to here, or later, can go on from the ring.
    pub(super) fn floor(&self) -> Revision {
        self.floor
    }

    /// Number of changes.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Bytes accounted to them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes above `after`, oldest first.
    pub(super) fn changes(&self, after: Revision) -> impl Iterator<Item = &Arc<Change>> {
        let start = Bound::Excluded((after, u32::MAX));
        self.changes.range((start, Bound::Unbounded)).map(|(_, change)| change)
    }

    /// The objects as of a revision from the floor on: those of the last snapshot before it, with what changed since.
    pub(super) fn objects_at(&self, revision: Revision) -> Objects {
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

    /// Takes in the newest change.
    pub(super) fn push(&mut self, change: Change) {
        let index = match self.changes.get_max() {
            Some(((last, index), _)) if *last == change.revision => index + 1,
            _ => 0,
        };
        self.bytes += change.bytes;
        self.since += 1;
        self.changes.insert((change.revision, index), Arc::new(change));
    }

    /// Whether so much has changed that the objects should be kept before more does.
    pub(super) fn is_due(&self) -> bool {
        self.since >= TOGETHER
    }

    /// Keeps the objects as of a revision, which are those after the newest change.
    pub(super) fn keep(&mut self, revision: Revision, objects: &Objects) {
        if std::mem::take(&mut self.since) > 0 {
            self.kept.insert(revision, objects.clone());
        }
    }

    /// How many snapshots are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Lets go of the oldest changes beyond the bounds, whole revisions at a time.
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

    /// The last revision beyond the bounds, and the bytes of what is above it.
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

impl Change {
    /// A change to a value that can be read, or a deletion; `bytes` is the size of the value.
    pub(super) fn new(
        revision: Revision,
        key: &str,
        current: Option<Arc<Stored>>,
        previous: Option<Arc<Stored>>,
        bytes: usize,
    ) -> Self {
        let (key, bytes) = (key.to_owned(), bytes + OVERHEAD);
        Self { revision, key, current, previous, damage: None, bytes, departed: OnceLock::new() }
    }

    /// A change to a value that cannot be read, and why.
    pub(super) fn damaged(
        revision: Revision,
        key: &str,
        previous: Option<Arc<Stored>>,
        why: Arc<str>,
    ) -> Self {
        Self { damage: Some(why), ..Self::new(revision, key, None, previous, 0) }
    }

    /// The state before, as those see it whose selection it left: with this change's revision. Made once for all.
    pub(super) fn departed(&self, previous: &Arc<Stored>) -> Arc<Stored> {
        self.departed.get_or_init(|| Arc::new(previous.stamped(self.revision))).clone()
    }
}
