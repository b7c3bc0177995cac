//! Hands what a write made of an object to whoever receives the event of that very write.
//!
//! A write is announced before it is sent, because its event may overtake its answer. Bytes tell which event
//! belongs to it: equal bytes under the same key are the same object, whoever wrote them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::backend::Revision;
use crate::storage::Stored;

/// Most announced writes; beyond it an event is read like that of another server.
const MOST: usize = 4096;

/// Announced writes whose events have not been seen.
#[derive(Default)]
pub(crate) struct OwnWrites {
    followed: AtomicBool,
    pending: Mutex<HashMap<String, Vec<Arc<Slot>>>>,
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
            let mut pending = self.pending.lock();
            if pending.len() < MOST {
                pending.entry(slot.key.clone()).or_default().push(slot.clone());
            }
        }
        Announced { list: self, slot, committed: false }
    }

    /// The object of the write that produced this event, if it went through this store.
    pub(crate) fn take(&self, key: &str, bytes: &Bytes, revision: Revision) -> Option<Arc<Stored>> {
        Some(self.remove(key, |slot| slot.bytes == *bytes)?.known_at(revision))
    }

    /// Forgets every announced write: their events will not come.
    pub(crate) fn clear(&self) {
        self.pending.lock().clear();
    }

    fn remove(&self, key: &str, which: impl Fn(&Slot) -> bool) -> Option<Arc<Slot>> {
        let mut pending = self.pending.lock();
        let slots = pending.get_mut(key)?;
        let found = slots.iter().position(|slot| which(slot)).map(|at| slots.swap_remove(at));
        if slots.is_empty() {
            pending.remove(key);
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
            let own = self.list.remove(key, |other| std::ptr::eq(other, slot));
            own.or_else(|| self.list.remove(key, |other| other.bytes == slot.bytes));
        }
    }
}

impl Slot {
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
            assert!(list.pending.lock().is_empty(), "{loser}");
        }
    }
}
