//! A published state of the cache: the newest snapshot, and the ring of changes that led to it.
//!
//! All of it is persistent (in the functional sense): a published state never changes, and the next one shares
//! everything with it but the paths to the changed objects. Copying those paths is the cost of a change.

use std::sync::Arc;

use super::Config;
use super::objects::ObjectMap;
use super::ring::{CachedChange, Ring};
use crate::backend::Revision;
use crate::storage::Stored;

/// One published state of the cache.
#[derive(Clone, Default)]
pub(super) struct State {
    /// Whether `snapshot` can be served.
    pub(super) ready: bool,
    /// The newest objects.
    pub(super) snapshot: Snapshot,
    /// The changes that led to the snapshot.
    pub(super) ring: Ring,
    /// The revision at which the cache was filled.
    filled: Revision,
}

/// The objects at a revision.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    /// Number of times that the cache was filled again; a watcher of an earlier filling cannot continue.
    pub(super) filling: u64,
    pub(super) revision: Revision,
    pub(super) objects: ObjectMap,
    /// Bytes that the cache had received by then; for a past state too few, by up to the bytes in the ring.
    pub(super) bytes_received: u64,
}

impl State {
    /// The state of a cache that was just filled, without history.
    pub(super) fn filled(snapshot: Snapshot) -> Self {
        let (filled, ring) = (snapshot.revision, Ring::since(snapshot.revision, snapshot.objects.clone()));
        Self { ready: true, snapshot, ring, filled }
    }

    /// The state after the cache was lost: not ready, and its watchers cannot continue.
    pub(super) fn abandoned(self) -> Self {
        let snapshot = Snapshot { filling: self.snapshot.filling + 1, ..self.snapshot };
        Self { ready: false, ..Self::filled(snapshot) }
    }

    /// Watchers that have been sent everything up to this revision, or a later one, can continue from the ring.
    pub(super) fn floor(&self) -> Revision {
        self.ring.floor()
    }

    /// Whether the ring has every change since the cache was filled.
    pub(super) fn is_whole(&self) -> bool {
        self.floor() == self.filled
    }

    /// Returns the changes above `after`, oldest first.
    pub(super) fn changes(&self, after: Revision) -> impl Iterator<Item = &Arc<CachedChange>> {
        self.ring.changes(after)
    }

    /// Returns the objects at exactly `revision`; `None` if the ring does not reach back to it, or if the cache has
    /// not reached it.
    pub(super) fn exactly(&self, revision: Revision) -> Option<Snapshot> {
        if !self.ready || revision < self.floor() || revision > self.snapshot.revision {
            return None;
        }
        let bytes_received = self.snapshot.bytes_received.saturating_sub(self.ring.bytes() as u64);
        let objects = self.ring.objects_at(revision);
        Some(Snapshot { filling: self.snapshot.filling, revision, objects, bytes_received })
    }

    /// Applies one change; `bytes` is the size of its value.
    pub(super) fn apply(
        &mut self,
        revision: Revision,
        key: &str,
        current: Option<Arc<Stored>>,
        bytes: usize,
    ) {
        self.begin(revision);
        let damaged = self.snapshot.objects.get(key).is_err();
        let previous = self.snapshot.objects.replace(key, current.clone());
        // A deletion keeps the last state in memory, possibly as its only reference.
        let deleted = previous.as_ref().filter(|_| current.is_none());
        let bytes = deleted.map_or(bytes, |last| last.json_len());
        if damaged || current.is_some() || previous.is_some() {
            self.push(CachedChange::new(revision, key, current, previous, bytes));
        }
    }

    /// Applies a change to a value that cannot be decoded.
    pub(super) fn apply_damaged(&mut self, revision: Revision, key: &str, why: String) {
        self.begin(revision);
        let why = Arc::<str>::from(why);
        let previous = self.snapshot.objects.damage(key, why.clone());
        self.push(CachedChange::damaged(revision, key, previous, why));
    }

    fn push(&mut self, change: CachedChange) {
        self.snapshot.bytes_received += change.bytes as u64;
        self.ring.push(change);
    }

    /// Keeps a snapshot before a change if it is due, so that an exact read applies only a few changes again. The
    /// changes of one revision stay together.
    fn begin(&mut self, revision: Revision) {
        if self.ring.is_due() && revision > self.snapshot.revision {
            self.keep_snapshot();
        }
        self.snapshot.revision = revision;
    }

    /// Keeps the present objects for exact reads.
    fn keep_snapshot(&mut self) {
        self.ring.keep(self.snapshot.revision, &self.snapshot.objects);
    }

    /// Records that every event up to this revision has been applied.
    pub(super) fn advance(&mut self, revision: Revision) {
        self.snapshot.revision = self.snapshot.revision.max(revision);
    }

    /// Prepares the state for publication.
    pub(super) fn prepare(&mut self, config: &Config) {
        self.keep_snapshot();
        self.ring.trim(config);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

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

    /// The states after the revisions 3, 200 and 203 are kept; `a` is written at each revision, `b` at 2 and deleted
    /// at 201.
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
                state.keep_snapshot();
            }
        }
        state
    }

    #[test]
    fn every_revision_is_read_exactly_wherever_snapshots_were_kept() {
        let state = state();
        assert!(state.ring.kept() < 10, "{}", state.ring.kept());
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
            trimmed.ring.trim(&Config { ring_events: events, ..Config::default() });
            assert_eq!(trimmed.ring.len(), events);
            assert_eq!(
                trimmed.ring.bytes(),
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

    /// Regression: the deletion left no change in the ring, so the revisions up to the next snapshot
    /// still had the object.
    #[test]
    fn what_could_not_be_read_is_gone_from_the_revision_on_at_which_it_was_deleted() {
        let mut state = State::filled(Snapshot::default());
        state.apply_damaged(Revision(1), "c", "torn".to_owned());
        state.apply(Revision(2), "c", None, 0);
        applied(&mut state, 3, "a");
        state.keep_snapshot();
        let damaged = [1, 2, 3].map(|at| state.exactly(Revision(at)).map(|s| s.objects.damaged()));
        assert_eq!(damaged, [Some(1), Some(0), Some(0)]);
    }
}
