//! What is published: the newest snapshot, and the ring of changes that led to it.
//!
//! All of it is persistent (in the functional sense): a published state never changes, and the next one shares all
//! but the touched paths with it. Copying those paths is the cost of a change, so that changes which are published
//! together share one snapshot; the state between two of them is made again by whoever asks for it.

use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use imbl::OrdMap;

use super::Config;
use super::objects::Objects;
use crate::backend::Revision;
use crate::storage::Stored;

/// What keeping one change costs beside the value: the paths of the snapshot that it alone holds.
const CHANGE_OVERHEAD: usize = 2_048;
/// Changes that share a snapshot: most of what an exact read makes again.
const TOGETHER: usize = 64;

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
    /// The objects after some of the changes in the ring, the last one among them once [`Self::seal`] was called.
    sealed: OrdMap<Revision, Objects>,
    /// Changes since the last of these.
    unsealed: usize,
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
    bytes: usize,
    departed: OnceLock<Arc<Stored>>,
}

/// Revision, and index among the changes of that revision.
type Position = (Revision, u32);

impl State {
    /// A freshly filled state: no history yet.
    pub(super) fn filled(snapshot: Snapshot) -> Self {
        let base = snapshot.clone();
        Self { ready: true, snapshot, base, ..Self::default() }
    }

    /// Ends this epoch: not ready, and no watcher of it goes on.
    pub(super) fn abandoned(self) -> Self {
        let snapshot = Snapshot { epoch: self.snapshot.epoch + 1, ..self.snapshot };
        Self { ready: false, ..Self::filled(snapshot) }
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
        self.begin(revision);
        let previous = self.snapshot.objects.replace(key, current.clone());
        if current.is_some() || previous.is_some() {
            self.record(revision, key, current, previous, None, bytes);
        }
    }

    /// Takes in a change to a value that cannot be read.
    pub(super) fn apply_damaged(&mut self, revision: Revision, key: &str, why: String) {
        self.begin(revision);
        let why = Arc::<str>::from(why);
        let previous = self.snapshot.objects.damage(key, why.clone());
        self.record(revision, key, None, previous, Some(why), 0);
    }

    /// Counts a change that is about to be made.
    fn begin(&mut self, revision: Revision) {
        if self.unsealed >= TOGETHER && revision > self.snapshot.revision {
            self.seal();
        }
        self.snapshot.revision = revision;
        self.unsealed += 1;
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
        let (key, bytes) = (key.to_owned(), bytes + CHANGE_OVERHEAD);
        let change = Change { revision, key, current, previous, damage, bytes, departed: OnceLock::new() };
        self.ring.insert((revision, index), Arc::new(change));
        self.ring_bytes += bytes;
    }

    /// Keeps the objects as they are now for exact reads: before a state is published.
    pub(super) fn seal(&mut self) {
        if std::mem::take(&mut self.unsealed) > 0 {
            self.sealed.insert(self.snapshot.revision, self.snapshot.objects.clone());
        }
    }

    /// Everything up to here has been applied.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.snapshot.revision = self.snapshot.revision.max(revision);
    }

    /// Lets go of the oldest changes beyond the bounds, whole revisions at a time.
    pub(super) fn trim(&mut self, config: &Config) {
        let (mut events, mut bytes, mut last) = (self.ring.len(), self.ring_bytes, None);
        for ((revision, _), change) in &self.ring {
            let within = events <= config.ring_events && bytes <= config.ring_bytes;
            if within && last != Some(*revision) {
                break;
            }
            (events, bytes, last) = (events - 1, bytes - change.bytes, Some(*revision));
        }
        let Some(last) = last else { return };
        self.base = Snapshot { epoch: self.snapshot.epoch, revision: last, objects: self.objects_at(last) };
        while let Some(position) = self.ring.get_min().map(|(position, _)| *position).filter(|p| p.0 <= last)
        {
            self.ring.remove(&position);
        }
        while let Some(at) = self.sealed.get_min().map(|(at, _)| *at).filter(|at| *at <= last) {
            self.sealed.remove(&at);
        }
        self.ring_bytes = bytes;
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
        Some(Snapshot { epoch: self.snapshot.epoch, revision, objects: self.objects_at(revision) })
    }

    /// The objects as of a revision that the ring reaches: those of the last snapshot before it, with what changed
    /// since.
    fn objects_at(&self, revision: Revision) -> Objects {
        let base = (&self.base.revision, &self.base.objects);
        let (at, objects) = self.sealed.get_prev(&revision).unwrap_or(base);
        let mut objects = objects.clone();
        for change in self.changes(*at).take_while(|change| change.revision <= revision) {
            match &change.damage {
                None => objects.replace(&change.key, change.current.clone()),
                Some(why) => objects.damage(&change.key, why.clone()),
            };
        }
        objects
    }

    /// Number of changes in the ring.
    pub(super) fn ring_len(&self) -> usize {
        self.ring.len()
    }

    /// Bytes accounted to the ring.
    pub(super) fn ring_bytes(&self) -> usize {
        self.ring_bytes
    }
}

impl Change {
    /// The state before, as those see it whose selection it left: with this change's revision. Made once for all.
    pub(super) fn departed(&self, previous: &Arc<Stored>) -> Arc<Stored> {
        let departed = || {
            let stamped = previous.stamped(self.revision);
            stamped.forget_decoded();
            Arc::new(stamped)
        };
        self.departed.get_or_init(departed).clone()
    }
}

#[cfg(test)]
mod tests {
    use drydock_machinery::Object;

    use super::*;

    fn applied(state: &mut State, revision: u64, key: &str) {
        let stored = Stored::new(key.to_owned(), Object::default(), Revision(revision));
        state.apply(Revision(revision), key, Some(Arc::new(stored)), 100);
    }

    fn keys_at(state: &State, revision: u64) -> Option<Vec<String>> {
        let snapshot = state.exactly(Revision(revision))?;
        Some(
            snapshot
                .objects
                .range((Bound::Unbounded, Bound::Unbounded))
                .map(|stored| format!("{}@{}", stored.key, stored.revision.0))
                .collect(),
        )
    }

    /// Published after the revisions 3, 200 and 203: `a` is written at each, `b` at 2 and deleted at 201.
    fn state() -> State {
        let mut state = State::filled(Snapshot::default());
        for revision in 1..=203 {
            match revision {
                2 => applied(&mut state, 2, "b"),
                100 => state.apply_damaged(Revision(100), "c", "torn".to_owned()),
                201 => state.apply(Revision(201), "b", None, 0),
                _ => applied(&mut state, revision, "a"),
            }
            if matches!(revision, 3 | 200 | 203) {
                state.seal();
            }
        }
        state
    }

    #[test]
    fn every_revision_is_read_exactly_wherever_snapshots_were_kept() {
        let state = state();
        assert!(state.sealed.len() < 10, "{}", state.sealed.len());
        assert_eq!(keys_at(&state, 0), Some(vec![]));
        assert_eq!(keys_at(&state, 1), Some(vec!["a@1".to_owned()]));
        for revision in 3..=200 {
            let a = if revision == 100 { 99 } else { revision };
            assert_eq!(keys_at(&state, revision), Some(vec![format!("a@{a}"), "b@2".to_owned()]));
            let damaged = usize::from(revision >= 100);
            assert_eq!(state.exactly(Revision(revision)).map(|s| s.objects.damaged()), Some(damaged));
        }
        assert_eq!(keys_at(&state, 201), Some(vec!["a@200".to_owned()]));
        assert_eq!(keys_at(&state, 203), Some(vec!["a@203".to_owned()]));
        assert_eq!(keys_at(&state, 204), None);
    }

    #[test]
    fn what_is_left_of_a_trimmed_ring_is_read_as_before() {
        let whole = state();
        for events in 0..=203 {
            let mut trimmed = whole.clone();
            trimmed.trim(&Config { ring_events: events, ..Config::default() });
            assert_eq!(trimmed.ring_len(), events);
            assert_eq!(
                trimmed.ring_bytes(),
                trimmed.changes(Revision(0)).map(|change| change.bytes).sum::<usize>()
            );
            let floor = 203 - events as u64;
            assert_eq!(trimmed.floor(), Revision(floor));
            for revision in floor..=203 {
                assert_eq!(keys_at(&trimmed, revision), keys_at(&whole, revision), "{events} {revision}");
            }
            assert_eq!(floor.checked_sub(1).and_then(|before| keys_at(&trimmed, before)), None);
        }
    }
}
