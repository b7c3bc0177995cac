//! What a watch keeps until its initial events have been sent.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// Keeps something, such as seats, until the initial events of a watch have been sent, at most until a deadline, or
/// until the watch is over.
#[derive(Clone, Default)]
pub struct InitialEvents(Arc<Mutex<Option<Guard>>>);

struct Guard {
    until: Instant,
    _guard: Box<dyn Send>,
}

impl InitialEvents {
    /// Keeps `guard`, at most until `deadline`. A client that does not read does not have its watch go on, so it is the
    /// look at the open responses that ends this.
    pub fn keep(&self, guard: impl Send + 'static, deadline: Instant) {
        *self.0.lock() = Some(Guard { until: deadline, _guard: Box::new(guard) });
    }

    /// They have been sent: drops what is kept.
    pub fn sent(&self) {
        // Dropped without the lock.
        let _guard = self.0.lock().take();
    }

    /// Drops what is kept if its deadline has passed.
    pub(super) fn expire(&self, now: Instant) {
        let _guard = self.0.lock().take_if(|guard| guard.until <= now);
    }
}
