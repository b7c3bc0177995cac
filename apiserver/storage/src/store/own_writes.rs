//! Passes the object of a write through this server to the task that receives the write's event.
//!
//! A write is announced before it is sent, because its event may arrive before its response. An event belongs to the
//! write that was committed at its revision; until a response has the revision, the event is matched to a write
//! with the same bytes: equal bytes under the same key are the same object, no matter which client wrote them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::backend::Revision;
use crate::storage::Stored;

/// Maximum number of announced writes, and of their bytes. Beyond either limit the object of an event is decoded, as
/// for a write of another server.
const MAX_WRITES: usize = 4096;
const MAX_WRITE_BYTES: usize = 16 << 20;

/// Announced writes whose events have not arrived.
#[derive(Default)]
pub(crate) struct OwnWrites {
    followed: AtomicBool,
    pending: Mutex<WritesByKey>,
}

#[derive(Default)]
struct WritesByKey {
    /// By key, the oldest first.
    writes: HashMap<String, VecDeque<Arc<PendingWrite>>>,
    count: usize,
    bytes: usize,
}

/// A write in flight. Dropping it before it is committed withdraws the announcement.
pub(super) struct AnnouncedWrite<'a> {
    list: &'a OwnWrites,
    write: Arc<PendingWrite>,
    committed: bool,
}

struct PendingWrite {
    key: String,
    bytes: Bytes,
    known: Mutex<Option<Arc<Stored>>>,
}

impl OwnWrites {
    /// From now on announced writes are kept, because [`Self::take`] is called for each event.
    pub(crate) fn follow(&self) {
        self.followed.store(true, Ordering::Relaxed);
    }

    /// Announces a write.
    pub(super) fn announce(&self, key: &str, bytes: Bytes) -> AnnouncedWrite<'_> {
        let write = Arc::new(PendingWrite { key: key.to_owned(), bytes, known: Mutex::default() });
        if self.followed.load(Ordering::Relaxed) {
            self.pending.lock().add(&write);
        }
        AnnouncedWrite { list: self, write, committed: false }
    }

    /// Returns the object of the write that caused this event, if it went through this store. Events arrive in order,
    /// so earlier committed writes of the key are removed.
    pub(crate) fn take(&self, key: &str, bytes: &Bytes, revision: Revision) -> Option<Arc<Stored>> {
        Some(self.pending.lock().take(key, bytes, revision)?.known_at(revision))
    }

    /// Removes all announced writes: their events will not arrive.
    pub(crate) fn clear(&self) {
        *self.pending.lock() = WritesByKey::default();
    }
}

impl WritesByKey {
    fn add(&mut self, write: &Arc<PendingWrite>) {
        let bytes = self.bytes + write.bytes.len();
        if self.count < MAX_WRITES && bytes <= MAX_WRITE_BYTES {
            (self.count, self.bytes) = (self.count + 1, bytes);
            self.writes.entry(write.key.clone()).or_default().push_back(write.clone());
        }
    }

    fn take(&mut self, key: &str, bytes: &Bytes, revision: Revision) -> Option<Arc<PendingWrite>> {
        while let Some(write) = self.remove(key, |write| write.revision().is_some_and(|at| at <= revision)) {
            if write.revision() == Some(revision) {
                return Some(write);
            }
        }
        self.remove(key, |write| write.revision().is_none() && write.bytes == *bytes)
    }

    fn remove(&mut self, key: &str, which: impl Fn(&PendingWrite) -> bool) -> Option<Arc<PendingWrite>> {
        let writes = self.writes.get_mut(key)?;
        let found = writes.iter().position(|write| which(write)).and_then(|at| writes.remove(at));
        if writes.is_empty() {
            self.writes.remove(key);
        }
        if let Some(write) = &found {
            (self.count, self.bytes) = (self.count - 1, self.bytes - write.bytes.len());
        }
        found
    }
}

impl AnnouncedWrite<'_> {
    /// Records that the write is durable; its event may or may not have arrived.
    pub(super) fn committed(mut self, revision: Revision) -> Arc<Stored> {
        self.committed = true;
        self.write.known_at(revision)
    }
}

impl Drop for AnnouncedWrite<'_> {
    /// If the event of another write with the same bytes took this entry, removes the entry of that other write
    /// instead.
    fn drop(&mut self) {
        if !self.committed {
            let (key, write) = (&self.write.key, &*self.write);
            let mut pending = self.list.pending.lock();
            let own = pending.remove(key, |other| std::ptr::eq(other, write));
            own.or_else(|| pending.remove(key, |other| other.bytes == write.bytes));
        }
    }
}

impl PendingWrite {
    /// Returns the revision of the write, once it is known.
    fn revision(&self) -> Option<Revision> {
        self.known.lock().as_ref().map(|stored| stored.revision)
    }

    /// Returns the object at its revision. The first caller that knows the revision makes it.
    fn known_at(&self, revision: Revision) -> Arc<Stored> {
        let mut known = self.known.lock();
        match &*known {
            Some(stored) if stored.revision == revision => stored.clone(),
            // The revision is new, or equal bytes were written twice under one key and the event of the other write
            // arrived first.
            _ => known.insert(Arc::new(Stored::of_bytes(&self.key, &self.bytes, revision))).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Regression: the event took the loser's entry, and the winner's entry stayed until another event of the key
    /// arrived; after a deletion that was never.
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
            assert_eq!((pending.writes.len(), pending.count, pending.bytes), (0, 0, 0), "{loser}");
        }
    }

    /// Regression: while etcd's watch was silent, each write of one busy object was kept, 64 KiB each.
    #[test]
    fn writes_whose_events_do_not_come_are_bounded_in_number_and_in_bytes() {
        for (length, most) in [(10, MAX_WRITES), (64 << 10, MAX_WRITE_BYTES >> 16)] {
            let list = OwnWrites::default();
            list.follow();
            for revision in 0..most as u64 + 100 {
                let bytes = Bytes::from(vec![b' '; length]);
                drop(list.announce("a", bytes).committed(Revision(revision)));
            }
            let pending = list.pending.lock();
            let held: usize = pending.writes.values().flatten().map(|write| write.bytes.len()).sum();
            assert_eq!((pending.writes["a"].len(), pending.count), (most, most));
            assert_eq!((held, pending.bytes), (most * length, most * length));
        }
    }

    /// Events of writes that were not announced remove all earlier ones, and keep later ones.
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

    /// Regression: the event of one write arrived before its response and took the entry of the other, which has the
    /// same bytes.
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
