//! What is published: the newest snapshot, and the ring of changes that led to it.
//!
//! All of it is persistent (in the functional sense): a published state never changes, and the next one shares all
//! but the touched paths with it.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::Config;
use super::objects::Objects;
use crate::backend::Revision;
use crate::storage::Stored;

/// What keeping one change costs beside the value: the paths of the snapshot that it alone holds.
const CHANGE_OVERHEAD: usize = 2_048;

/// One published state of the cache.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Whether `snapshot` can be served.
    pub(super) ready: bool,
    /// The newest.
    pub(super) snapshot: Snapshot,
    /// The state just before the ring's first change.
    base: Snapshot,
    ring: OrdMap<Position, Arc<Change>>,
    ring_bytes: usize,
}

/// The objects as of a revision.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    /// Counts the times the cache was filled anew; a watcher of an earlier filling cannot go on.
    pub(super) epoch: u64,
    pub(super) revision: Revision,
    pub(super) objects: Objects,
}

/// One change in the ring.
pub(super) struct Change {
    pub(super) revision: Revision,
    pub(super) key: String,
    pub(super) current: Option<Arc<Stored>>,
    pub(super) previous: Option<Arc<Stored>>,
    /// Why the new value cannot be read, if it cannot.
    pub(super) damage: Option<Arc<str>>,
    /// The objects after it.
    objects: Objects,
    bytes: usize,
    departed: OnceLock<Arc<Stored>>,
}

/// Revision, and index among the changes of that revision.
type Position = (Revision, u32);

impl State {
    /// A freshly filled state: no history yet.
    pub(super) fn filled(snapshot: Snapshot) -> Self {
        let base = snapshot.clone();
        Self { ready: true, snapshot, base, ring: OrdMap::new(), ring_bytes: 0 }
    }

    /// Ends this epoch: not ready, and no watcher of it goes on.
    pub(super) fn abandoned(mut self) -> Self {
        self.snapshot.epoch += 1;
        self.ready = false;
        self.ring = OrdMap::new();
        self.ring_bytes = 0;
        self.base = self.snapshot.clone();
        self
    }

    /// Watchers that were told everything up to here, or later, can go on from the ring.
    pub(super) fn floor(&self) -> Revision {
        self.base.revision
    }

    /// Takes in one change; `bytes` is the size of its value.
    pub(super) fn apply(
        &mut self,
        revision: Revision,
        key: &str,
        current: Option<Arc<Stored>>,
        bytes: usize,
    ) {
        let previous = self.snapshot.objects.replace(key, current.clone());
        self.snapshot.revision = revision;
        if current.is_some() || previous.is_some() {
            self.record(revision, key, current, previous, None, bytes);
        }
    }

    /// Takes in a change to a value that cannot be read.
    pub(super) fn apply_damaged(&mut self, revision: Revision, key: &str, why: String) {
        let (previous, why) = (self.snapshot.objects.replace(key, None), Arc::<str>::from(why));
        self.snapshot.objects.damage(key, why.clone());
        self.snapshot.revision = revision;
        self.record(revision, key, None, previous, Some(why), 0);
    }

    fn record(
        &mut self,
        revision: Revision,
        key: &str,
        current: Option<Arc<Stored>>,
        previous: Option<Arc<Stored>>,
        damage: Option<Arc<str>>,
        bytes: usize,
    ) {
        let index = match self.ring.get_max() {
            Some(((last, index), _)) if *last == revision => index + 1,
            _ => 0,
        };
        let bytes = bytes + CHANGE_OVERHEAD;
        let (objects, key) = (self.snapshot.objects.clone(), key.to_owned());
        let departed = OnceLock::new();
        let change = Change { revision, key, current, previous, damage, objects, bytes, departed };
        self.ring.insert((revision, index), Arc::new(change));
        self.ring_bytes += bytes;
    }

    /// Everything up to here has been applied.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.snapshot.revision = self.snapshot.revision.max(revision);
    }

    /// Lets go of the oldest changes beyond the bounds, whole revisions at a time.
    pub(super) fn trim(&mut self, config: &Config) {
        while self.ring.len() > config.ring_events || self.ring_bytes > config.ring_bytes {
            let Some(((oldest, _), _)) = self.ring.get_min().cloned() else { return };
            while let Some((position, change)) = self.first_at(oldest) {
                self.ring_bytes -= change.bytes;
                change.let_go();
                self.base = Snapshot {
                    epoch: self.snapshot.epoch,
                    revision: change.revision,
                    objects: change.objects.clone(),
                };
                self.ring.remove(&position);
            }
        }
    }

    /// Changes above `after`, oldest first.
    pub(super) fn changes(&self, after: Revision) -> impl Iterator<Item = &Arc<Change>> {
        let start = Bound::Excluded((after, u32::MAX));
        self.ring.range((start, Bound::Unbounded)).map(|(_, change)| change)
    }

    /// The objects exactly as of `revision`, if that is still (and already) known.
    pub(super) fn exactly(&self, revision: Revision) -> Option<Snapshot> {
        if !self.ready || revision < self.base.revision || revision > self.snapshot.revision {
            return None;
        }
        let last = self.ring.get_prev(&(revision, u32::MAX));
        let objects = last.map_or(&self.base.objects, |(_, change)| &change.objects).clone();
        Some(Snapshot { epoch: self.snapshot.epoch, revision, objects })
    }

    /// Number of changes in the ring.
    pub(super) fn ring_len(&self) -> usize {
        self.ring.len()
    }

    /// Bytes accounted to the ring.
    pub(super) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }

    fn first_at(&self, revision: Revision) -> Option<(Position, Arc<Change>)> {
        self.ring.get_min().filter(|((first, _), _)| *first == revision).cloned()
    }
}

impl Change {
    /// Nobody is told of it any more: of the objects, bytes are enough.
    fn let_go(&self) {
        self.current.iter().chain(&self.previous).for_each(|stored| stored.let_go());
    }

    /// The state before, as those see it whose selection it left: with this change's revision. Made once for all.
    pub(super) fn departed(&self, previous: &Arc<Stored>) -> Arc<Stored> {
        self.departed.get_or_init(|| Arc::new(previous.stamped(self.revision))).clone()
    }
}
