//! What a watch holds until its initial events have been sent.
//!
//! A client decides how fast it reads. Nobody polls a body that nobody reads, so a timer lets go of what is held.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

/// Keeps something until the initial events of a watch have been sent, or the watch is over. It goes with the response
/// as an extension: what is to be kept belongs to whoever let the request in.
#[derive(Clone, Default)]
pub struct InitialEvents(Arc<Mutex<Option<Kept>>>);

struct Kept {
    _guard: Box<dyn Send>,
    _timer: AbortOnDropHandle<()>,
}

impl InitialEvents {
    /// Keeps `guard`, at most until the deadline.
    pub fn keep(&self, guard: impl Send + 'static, deadline: Instant) {
        let late = Arc::downgrade(&self.0);
        let timer = AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            // Dropped outside of the lock.
            let _let_go = late.upgrade().and_then(|kept| kept.lock().take());
        }));
        *self.0.lock() = Some(Kept { _guard: Box::new(guard), _timer: timer });
    }

    /// Lets go: they have been sent.
    pub(super) fn sent(&self) {
        let _let_go = self.0.lock().take();
    }
}
