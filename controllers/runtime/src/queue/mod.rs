//! A work queue of keys, with the contract of client-go's: a key waits only once; a key that is worked on is
//! not given to a second worker, and if it is added meanwhile it comes back when the first worker is done.
//!
//! Groups take turns: the keys of one namespace do not wait for the thousands that a tenant brings about in another.
//!
//! It is bounded by the number of keys, which are those of cached objects. Delayed adds are ordered by their
//! time; of several for one key the earliest counts. Time is tokio's, which tests can stop.

mod state;

use std::fmt::{Debug, Display};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::cache::ObjectKey;
use crate::metrics::{Metrics, QueueMetrics};

use state::QueueState;

/// The key of a work queue. Logs show it by `Display`.
pub trait QueueKey: Clone + Eq + Hash + Debug + Display + Send + Sync + 'static {
    /// The lane of the key, which takes turns with other lanes: a group such as its namespace, and a group
    /// within that one. None if the key is in no group.
    fn lane(&self) -> Option<(Arc<str>, Arc<str>)> {
        None
    }
}

impl QueueKey for ObjectKey {
    fn lane(&self) -> Option<(Arc<str>, Arc<str>)> {
        (!self.namespace.is_empty()).then(|| (self.namespace.clone(), Arc::default()))
    }
}

/// A string is the name of a cluster-scoped object, and is in no group.
impl QueueKey for String {}

/// A queue. Clones share it.
#[derive(Clone)]
pub struct WorkQueue<K: QueueKey> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: QueueKey> {
    state: Mutex<QueueState<K>>,
    wake: Notify,
    metrics: QueueMetrics,
    backoff: ExponentialBackoff,
}

impl<K: QueueKey> WorkQueue<K> {
    /// A queue whose metrics carry `name`.
    pub fn new(name: &str, metrics: &Metrics, backoff: ExponentialBackoff) -> Self {
        let queue = Self {
            shared: Arc::new(Shared {
                state: Mutex::new(QueueState::default()),
                wake: Notify::new(),
                metrics: metrics.queue(name),
                backoff,
            }),
        };
        let probe = Arc::downgrade(&queue.shared);
        metrics.before_scrape(move || {
            if let Some(shared) = probe.upgrade() {
                shared.report_unfinished();
            }
        });
        queue
    }

    /// Adds a key, unless it waits already.
    pub fn add(&self, key: K) {
        if self.shared.state.lock().add(key, Instant::now()) {
            self.shared.metrics.added();
        }
        self.shared.wake.notify_one();
    }

    /// Adds a key when `delay` is over; the earliest of several delayed adds of a key counts.
    pub fn add_after(&self, key: K, delay: Duration) {
        if delay.is_zero() {
            return self.add(key);
        }
        // A century is as good as never.
        let delay = delay.min(Duration::from_secs(100 * 365 * 24 * 3600));
        self.shared.state.lock().add_at(key, Instant::now() + delay);
        self.shared.wake.notify_one();
    }

    /// Adds a key after its backoff, which grows with each call until [`WorkQueue::forget`]. Returns the delay.
    pub fn add_rate_limited(&self, key: K) -> Duration {
        self.add_rate_limited_after(key, Duration::ZERO)
    }

    /// Like [`WorkQueue::add_rate_limited`], but not before `min_delay` is over.
    pub fn add_rate_limited_after(&self, key: K, min_delay: Duration) -> Duration {
        let failures = self.shared.state.lock().count_failure(&key);
        self.shared.metrics.retried();
        let delay = self.shared.backoff.delay(failures).max(min_delay);
        self.add_after(key, delay);
        delay
    }

    /// Ends the backoff of a key.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().forget(key);
    }

    /// How often the key was added with backoff since it was forgotten.
    pub fn failures(&self, key: &K) -> u32 {
        self.shared.state.lock().failures(key)
    }

    /// Notes the message with which a key failed. Returns whether it differs from the last one since
    /// [`WorkQueue::forget`]. For a key without failures, notes nothing and returns false.
    pub(crate) fn note_failure(&self, key: &K, words: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        words.hash(&mut hasher);
        self.shared.state.lock().note_failure(key, hasher.finish())
    }

    /// The next key, or none when the queue is shut down and empty. Each must be given back with [`WorkQueue::done`].
    pub async fn get(&self) -> Option<K> {
        loop {
            let notified = self.shared.wake.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let next_due = {
                let mut state = self.shared.state.lock();
                let now = Instant::now();
                let promoted = state.promote_due(now);
                (0..promoted).for_each(|_| self.shared.metrics.added());
                if let Some((key, waited)) = state.take(now) {
                    self.shared.metrics.taken(waited, state.depth());
                    if state.depth() > 0 {
                        self.shared.wake.notify_one();
                    }
                    return Some(key);
                }
                if state.is_shut_down() {
                    self.shared.wake.notify_waiters();
                    return None;
                }
                state.next_due()
            };
            match next_due {
                Some(at) => tokio::select! {
                    () = notified => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => notified.await,
            }
        }
    }

    /// Gives a key back after work.
    pub fn done(&self, key: &K) {
        let (worked, again) = self.shared.state.lock().done(key, Instant::now());
        if let Some(worked) = worked {
            self.shared.metrics.worked(worked);
        }
        if again {
            self.shared.wake.notify_one();
        }
    }

    /// Number of keys that wait to be taken now.
    pub fn depth(&self) -> usize {
        self.shared.state.lock().depth()
    }

    /// Takes no more keys, drops delayed ones, and ends [`WorkQueue::get`] once the queue is empty.
    pub fn shut_down(&self) {
        self.shared.state.lock().shut_down();
        self.shared.wake.notify_waiters();
        self.shared.wake.notify_one();
    }
}

impl<K: QueueKey> Shared<K> {
    fn report_unfinished(&self) {
        let (sum, longest, depth) = self.state.lock().unfinished(Instant::now());
        self.metrics.unfinished(sum, longest, depth);
    }
}

/// Delays that begin with `first` and double up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExponentialBackoff {
    /// Delay after the first failure.
    pub first: Duration,
    /// Longest delay.
    pub max: Duration,
}

impl ExponentialBackoff {
    /// What controllers use for failed writes: 5 ms to 30 s (client-go begins at 5 ms too, and ends at 1000 s; a drain
    /// that waits a quarter of an hour after an outage is of no use).
    pub const WRITES: Self = Self { first: Duration::from_millis(5), max: Duration::from_secs(30) };

    /// The delay after `failures` earlier failures.
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.min(31)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}

#[cfg(test)]
mod tests;
