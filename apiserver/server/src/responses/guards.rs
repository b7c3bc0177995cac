//! Guards of responses: what is dropped when a body, or the initial events of a watch, have been sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;

/// Keeps something, such as seats, until the initial events of a watch have been sent, at most until a deadline, or
/// until the watch is over.
#[derive(Clone, Default)]
pub struct InitialEvents(Arc<Mutex<Option<Until>>>);

struct Until {
    until: Instant,
    _guard: Box<dyn Send>,
}

impl InitialEvents {
    /// Keeps `guard`, at most until `deadline`. A watch makes no progress while its client does not read, so the
    /// sweep over the open responses enforces the deadline.
    pub fn keep(&self, guard: impl Send + 'static, deadline: Instant) {
        *self.0.lock() = Some(Until { until: deadline, _guard: Box::new(guard) });
    }

    /// Drops what is kept, because the events have been sent.
    pub fn sent(&self) {
        // Dropped without the lock.
        let _guard = self.0.lock().take();
    }

    /// Drops what is kept if its deadline has passed.
    pub(super) fn expire(&self, now: Instant) {
        let _guard = self.0.lock().take_if(|guard| guard.until <= now);
    }
}

/// Keeps `guard` until the body of the response has been sent or dropped.
pub fn guard<B, G>(response: Response<B>, guard: G) -> Response<GuardedBody<B, G>> {
    response.map(|inner| GuardedBody { inner, _guard: guard })
}

/// A body that keeps something until it has been sent or dropped.
pub struct GuardedBody<B, G> {
    inner: B,
    _guard: G,
}

impl<B: HttpBody + Unpin, G: Unpin> HttpBody for GuardedBody<B, G> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
