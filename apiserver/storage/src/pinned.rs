//! Past states that readers hold on to: what they cost, and letting go of them from outside.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::cache::Metrics;
use crate::stored::Stored;

/// Memory that one reader keeps alive.
pub trait Pinned: Send + Sync {
    /// An upper bound of the bytes that would be freed without the reader. Asked for often: takes constant time.
    fn bytes(&self) -> usize;
    /// Frees them, if the reader can do without: it makes them again when it reads on, or says that they are gone.
    fn let_go(&self);
}

/// The age of a cache's state, in bytes that the cache has taken in since.
#[derive(Clone)]
pub(crate) struct Age {
    metrics: Arc<Metrics>,
    taken_in: u64,
}

impl Age {
    /// Of a state before which the cache had taken in so many bytes.
    pub(crate) fn new(metrics: Arc<Metrics>, taken_in: u64) -> Self {
        Self { metrics, taken_in }
    }

    /// An upper bound of what the state keeps alive beyond the cache: an object that only the state has was replaced
    /// since, so that they are together no larger than what was taken in since; what the cache's ring holds of that,
    /// the ring keeps anyway. Readers of one state are each counted in full.
    pub(crate) fn bytes(&self) -> usize {
        let since = self.metrics.taken_in.load(Relaxed).saturating_sub(self.taken_in);
        usize::try_from(since.saturating_sub(self.metrics.ring_bytes.load(Relaxed))).unwrap_or(usize::MAX)
    }
}

/// Objects that have been read from the store for one reader.
#[derive(Default)]
pub(crate) struct Fetched(Mutex<Left>);

/// Those that the reader has not taken yet.
#[derive(Default)]
struct Left {
    /// The next one last.
    objects: Vec<Arc<Stored>>,
    /// Bytes of their JSON.
    bytes: usize,
}

impl Fetched {
    /// `objects`, in the order in which they are taken.
    pub(crate) fn new(mut objects: Vec<Arc<Stored>>) -> Self {
        objects.reverse();
        let bytes = json_bytes(&objects);
        Self(Mutex::new(Left { objects, bytes }))
    }

    /// The next objects, at most `most`; nothing when there are none left, or were let go.
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

    fn let_go(&self) {
        // Dropped without the lock.
        let _left = std::mem::take(&mut *self.0.lock());
    }
}

/// Bytes of the JSON of all objects.
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
        fetched.let_go();
        assert_eq!((fetched.next(2).len(), fetched.bytes()), (0, 0));
    }
}
