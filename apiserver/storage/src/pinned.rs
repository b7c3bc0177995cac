//! Past states that readers keep in memory: how much they cost, and how to release them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::stored::Stored;

/// Memory that one reader keeps alive.
pub trait Pinned: Send + Sync {
    /// Returns an upper bound of the bytes that would be freed without the reader. Takes constant time, because it is
    /// called often.
    fn bytes(&self) -> usize;
    /// Frees the memory. The reader then makes the objects again, or fails with an error that they are gone. Does
    /// nothing for a reader that can do neither.
    fn release(&self);
}

/// Counts the bytes that a cache receives.
pub(crate) trait ReceivedBytes: Send + Sync {
    /// Returns the bytes that the cache received after the first `received`, without as many as its ring keeps.
    fn beyond_ring(&self, received: u64) -> u64;
}

/// The age of a cache's state, in bytes that the cache has received since.
#[derive(Clone)]
pub(crate) struct StateAge {
    cache: Arc<dyn ReceivedBytes>,
    bytes_received: u64,
}

impl StateAge {
    /// Creates the age of a state; before it, the cache had received `bytes_received` bytes.
    pub(crate) fn new(cache: Arc<dyn ReceivedBytes>, bytes_received: u64) -> Self {
        Self { cache, bytes_received }
    }

    /// Returns an upper bound of what the state keeps alive beyond the cache. An object that only this state holds
    /// was replaced later, so all such objects are no larger than what was received since; what is in the cache's
    /// ring does not count, because the ring keeps it anyway. If several readers hold one state, each is counted in
    /// full.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.cache.beyond_ring(self.bytes_received)).unwrap_or(usize::MAX)
    }
}

/// Objects that were read from the store for one reader.
#[derive(Default)]
pub(crate) struct Fetched(Mutex<Left>);

/// The objects that the reader has not taken yet.
#[derive(Default)]
struct Left {
    /// In reverse order.
    objects: Vec<Arc<Stored>>,
    /// Bytes of their JSON.
    bytes: usize,
}

impl Fetched {
    /// `objects` are in the order in which they are taken.
    pub(crate) fn new(mut objects: Vec<Arc<Stored>>) -> Self {
        objects.reverse();
        let bytes = json_bytes(&objects);
        Self(Mutex::new(Left { objects, bytes }))
    }

    /// Returns the next objects, at most `most`; none when all were taken or released.
    pub(crate) fn next(&self, most: usize) -> Vec<Arc<Stored>> {
        let mut left = self.0.lock();
        let keep = left.objects.len().saturating_sub(most);
        let mut next = left.objects.split_off(keep);
        left.bytes = left.bytes.saturating_sub(json_bytes(&next));
        next.reverse();
        next
    }
}

impl Pinned for Fetched {
    fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    fn release(&self) {
        // Drop it after the lock is released.
        let _left = std::mem::take(&mut *self.0.lock());
    }
}

/// Returns the bytes of the JSON of all objects.
pub(crate) fn json_bytes(objects: &[Arc<Stored>]) -> usize {
    objects.iter().map(|stored| stored.json_len()).sum()
}

#[cfg(test)]
mod tests {
    use drydock_machinery::Object;

    use super::*;
    use crate::backend::Revision;

    #[test]
    fn bytes_are_those_of_the_objects_that_are_left() {
        let stored = |key: &str| Arc::new(Stored::new(key.to_owned(), Object::default(), Revision(1)));
        let objects: Vec<_> = ["a", "b", "c"].map(stored).into();
        let each = objects[0].json_len();
        let fetched = Fetched::new(objects);
        assert_eq!(fetched.bytes(), 3 * each);
        let keys: Vec<_> = fetched.next(2).iter().map(|stored| stored.key.to_string()).collect();
        assert_eq!((keys, fetched.bytes()), (vec!["a".to_owned(), "b".to_owned()], each));
        fetched.release();
        assert_eq!((fetched.next(2).len(), fetched.bytes()), (0, 0));
    }
}
