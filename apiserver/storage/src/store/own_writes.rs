//! Hands what a write made of an object to whoever receives the event of that very write.
//!
//! A write is announced before it is sent, because its event may overtake its answer. An event belongs to the write that
//! was committed at its revision; while no answer tells the revision, to one with the same bytes: equal bytes under the
//! same key are the same object, whoever wrote them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::backend::Revision;
use crate::storage::Stored;

/// Most announced writes, and most bytes of them. Beyond either an event is read like that of another server.
const MOST: usize = 4096;
const MOST_BYTES: usize = 16 << 20;

/// Announced writes whose events have not been seen.
#[derive(Default)]
pub(crate) struct OwnWrites {
    followed: AtomicBool,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    /// By key, oldest first.
    slots: HashMap<String, VecDeque<Arc<Slot>>>,
    count: usize,
    bytes: usize,
}

/// One write on its way; withdrawn when dropped before it was committed.
pub(super) struct Announced<'a> {
    list: &'a OwnWrites,
    slot: Arc<Slot>,
    committed: bool,
}

struct Slot {
    key: String,
    bytes: Bytes,
    known: Mutex<Option<Arc<Stored>>>,
}

impl OwnWrites {
    /// From now on somebody collects announced writes with [`Self::take`].
    pub(crate) fn follow(&self) {
        self.followed.store(true, Ordering::Relaxed);
    }

    /// Announces a write.
    pub(super) fn announce(&self, key: &str, bytes: Bytes) -> Announced<'_> {
        let slot = Arc::new(Slot { key: key.to_owned(), bytes, known: Mutex::default() });
        if self.followed.load(Ordering::Relaxed) {
            self.pending.lock().add(&slot);
        }
        Announced { list: self, slot, committed: false }
    }

    /// The object of the write that produced this event, if it went through this store. Events come in order: writes of
    /// the key that were committed before this one are forgotten.
    pub(crate) fn take(&self, key: &str, bytes: &Bytes, revision: Revision) -> Option<Arc<Stored>> {
        Some(self.pending.lock().take(key, bytes, revision)?.known_at(revision))
    }

    /// Forgets every announced write: their events will not come.
    pub(crate) fn clear(&self) {
        *self.pending.lock() = Pending::default();
    }
}

impl Pending {
    fn add(&mut self, slot: &Arc<Slot>) {
        let bytes = self.bytes + slot.bytes.len();
        if self.count < MOST && bytes <= MOST_BYTES {
            (self.count, self.bytes) = (self.count + 1, bytes);
            self.slots.entry(slot.key.clone()).or_default().push_back(slot.clone());
        }
    }

    fn take(&mut self, key: &str, bytes: &Bytes, revision: Revision) -> Option<Arc<Slot>> {
        while let Some(slot) = self.remove(key, |slot| slot.revision().is_some_and(|at| at <= revision)) {
            if slot.revision() == Some(revision) {
                return Some(slot);
            }
        }
        self.remove(key, |slot| slot.revision().is_none() && slot.bytes == *bytes)
    }

    fn remove(&mut self, key: &str, which: impl Fn(&Slot) -> bool) -> Option<Arc<Slot>> {
        let slots = self.slots.get_mut(key)?;
        let found = slots.iter().position(|slot| which(slot)).and_then(|at| slots.remove(at));
        if slots.is_empty() {
            self.slots.remove(key);
        }
        if let Some(slot) = &found {
            (self.count, self.bytes) = (self.count - 1, self.bytes - slot.bytes.len());
        }
        found
    }
}

impl Announced<'_> {
    /// The write is durable; its event may or may not have been seen.
    pub(super) fn committed(mut self, revision: Revision) -> Arc<Stored> {
        self.committed = true;
        self.slot.known_at(revision)
    }
}

impl Drop for Announced<'_> {
    /// If its slot was taken for the event of another write with the same bytes, that one's is left in its place.
    fn drop(&mut self) {
        if !self.committed {
            let (key, slot) = (&self.slot.key, &*self.slot);
            let mut pending = self.list.pending.lock();
            let own = pending.remove(key, |other| std::ptr::eq(other, slot));
            own.or_else(|| pending.remove(key, |other| other.bytes == slot.bytes));
        }
    }
}

impl Slot {
    /// The revision of the write, once it is known.
    fn revision(&self) -> Option<Revision> {
        self.known.lock().as_ref().map(|stored| stored.revision)
    }

    /// The object at its revision, made once by whoever learns the revision first.
    fn known_at(&self, revision: Revision) -> Arc<Stored> {
        let mut known = self.known.lock();
        match &*known {
            Some(stored) if stored.revision == revision => stored.clone(),
            // Or equal bytes were written twice under one key, and the other write's event came first.
            _ => known.insert(Arc::new(Stored::of_bytes(&self.key, &self.bytes, revision))).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The event took the loser's slot, and the winner's stayed until another event of the key came: for ever, if that
    /// was of a deletion.
    #[test]
    fn of_two_writes_with_equal_bytes_nothing_is_left_whichever_lost() {
        let list = OwnWrites::default();
        list.follow();
        for loser in [0, 1] {
            let bytes = Bytes::from_static(br#"{"metadata":{}}"#);
            let mut writes = [(); 2].map(|()| Some(list.announce("a", bytes.clone())));
            assert!(list.take("a", &bytes, Revision(5)).is_some());
            drop(writes[loser].take());
            writes.into_iter().flatten().for_each(|won| drop(won.committed(Revision(5))));
            let pending = list.pending.lock();
            assert_eq!((pending.slots.len(), pending.count, pending.bytes), (0, 0, 0), "{loser}");
        }
    }

    /// While etcd's watch was silent, each write of one hot object was kept, 64 KiB a piece.
    #[test]
    fn writes_whose_events_do_not_come_are_bounded_in_number_and_in_bytes() {
        for (length, most) in [(10, MOST), (64 << 10, MOST_BYTES >> 16)] {
            let list = OwnWrites::default();
            list.follow();
            for revision in 0..most as u64 + 100 {
                let bytes = Bytes::from(vec![b' '; length]);
                drop(list.announce("a", bytes).committed(Revision(revision)));
            }
            let pending = list.pending.lock();
            let held: usize = pending.slots.values().flatten().map(|slot| slot.bytes.len()).sum();
            assert_eq!((pending.slots["a"].len(), pending.count), (most, most));
            assert_eq!((held, pending.bytes), (most * length, most * length));
        }
    }

    /// Events of writes that were not announced leave nothing of the earlier ones, and later ones stay.
    #[test]
    fn an_event_ends_the_wait_of_all_writes_before_it() {
        let list = OwnWrites::default();
        list.follow();
        let written = |revision: u64| {
            let bytes = Bytes::from(format!(r#"{{"metadata":{{"name":"{revision}"}}}}"#));
            (list.announce("a", bytes.clone()).committed(Revision(revision)), bytes)
        };
        let all = [1, 2, 3].map(written);
        let later = list.take("a", &all[1].1, Revision(2)).unwrap();
        assert!(Arc::ptr_eq(&later, &all[1].0));
        assert_eq!(list.pending.lock().count, 1, "the third is to come");
        assert!(list.take("a", &all[0].1, Revision(1)).is_none());
        assert!(list.take("a", &all[2].1, Revision(3)).is_some());
    }

    /// The event of one write came before its answer and took the slot of the other, which has the same bytes.
    #[test]
    fn equal_bytes_that_were_written_twice_are_each_found_and_nothing_is_left() {
        let list = OwnWrites::default();
        list.follow();
        let bytes = Bytes::from_static(br#"{"metadata":{}}"#);
        let [first, second] = [(); 2].map(|()| list.announce("a", bytes.clone()));
        assert!(list.take("a", &bytes, Revision(5)).is_some());
        assert_eq!(second.committed(Revision(5)).revision, Revision(5));
        assert_eq!(first.committed(Revision(9)).revision, Revision(9));
        list.take("a", &bytes, Revision(9));
        assert_eq!(list.pending.lock().count, 0);
    }
}
