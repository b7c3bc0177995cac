//! Past states that readers hold on to: what they cost, and letting go of them from outside.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use parking_lot::Mutex;

use crate::cache::Metrics;
use crate::stored::Stored;

/// What a reader keeps in memory that nobody else may need any more.
pub trait Pinned: Send + Sync {
    /// About how many bytes would be freed.
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
pub(crate) struct Fetched(Mutex<Vec<Arc<Stored>>>);

impl Fetched {
    /// `objects`, the next one last.
    pub(crate) fn new(mut objects: Vec<Arc<Stored>>) -> Self {
        objects.reverse();
        Self(Mutex::new(objects))
    }

    /// The next objects, at most `most`; nothing when there are none left, or were let go.
    pub(crate) fn next(&self, most: usize) -> Vec<Arc<Stored>> {
        let mut left = self.0.lock();
        let keep = left.len().saturating_sub(most);
        let mut next = left.split_off(keep);
        next.reverse();
        next
    }
}

impl Pinned for Fetched {
    fn bytes(&self) -> usize {
        self.0.lock().iter().map(|stored| stored.json_len()).sum()
    }

    fn let_go(&self) {
        drop(std::mem::take(&mut *self.0.lock()));
    }
}
