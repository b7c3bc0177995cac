//! Answers on their way out: what they hold, how long they may take, and how much was sent.
//!
//! A client decides how fast it reads. What a large answer holds (its objects, its place among the requests in
//! flight) is therefore let go at the request's deadline, whether the client has read it or not: nobody polls a
//! body that nobody reads, so a timer does it (k8s.io/apiserver pkg/server/filters/timeout.go aborts the request).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::metrics::Sizes;

/// Bodies up to this size are given to the connection at once.
const AT_ONCE: u64 = 128 * 1024;

/// Keeps `guard` until the body has been sent or dropped.
pub fn held<G: Send + Unpin + 'static>(response: Response<Body>, guard: G) -> Response<Body> {
    response.map(|inner| Body::new(Held::new(inner, guard)))
}

/// Keeps `guard` until the body has been sent, at most until the deadline, when the body breaks off.
pub fn bounded<G: Send + 'static>(
    response: Response<Body>,
    deadline: Instant,
    guard: G,
    sizes: Option<Sizes>,
) -> Response<Body> {
    if let Some(size) = response.body().size_hint().exact().filter(|size| *size <= AT_ONCE) {
        if let Some(sizes) = sizes {
            sizes.observe(size);
        }
        return response;
    }
    response.map(|body| {
        let sending = Arc::new(Mutex::new(Some((body, guard))));
        let late = Arc::downgrade(&sending);
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(deadline.into()).await;
            // Dropped outside of the lock.
            let _let_go = late.upgrade().and_then(|sending| sending.lock().take());
        });
        let timer = AbortOnDropHandle::new(timer);
        Body::new(Bounded { sending, sent: 0, ended: false, sizes, _timer: timer })
    })
}

/// A body that keeps something until it has been sent or dropped.
pub struct Held<G> {
    inner: Body,
    _guard: G,
}

impl<G> Held<G> {
    /// Keeps `guard` with `inner`.
    pub fn new(inner: Body, guard: G) -> Self {
        Self { inner, _guard: guard }
    }
}

impl<G: Unpin> HttpBody for Held<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

struct Bounded<G> {
    sending: Arc<Mutex<Option<(Body, G)>>>,
    sent: u64,
    ended: bool,
    sizes: Option<Sizes>,
    _timer: AbortOnDropHandle<()>,
}

impl<G> HttpBody for Bounded<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let polled = match self.sending.lock().as_mut() {
            Some((body, _)) => ready!(Pin::new(body).poll_frame(context)),
            None => Some(Err(out_of_time())),
        };
        match &polled {
            Some(Ok(frame)) => self.sent += frame.data_ref().map_or(0, |data| data.len() as u64),
            None | Some(Err(_)) => self.end(),
        }
        Poll::Ready(polled)
    }

    fn size_hint(&self) -> SizeHint {
        self.sending.lock().as_ref().map_or_else(SizeHint::default, |(body, _)| body.size_hint())
    }
}

impl<G> Bounded<G> {
    fn end(&mut self) {
        self.ended = true;
        let _let_go = self.sending.lock().take();
        if let Some(sizes) = self.sizes.take() {
            sizes.observe(self.sent);
        }
    }
}

fn out_of_time() -> axum::Error {
    axum::Error::new(io::Error::new(io::ErrorKind::TimedOut, "the answer was not read within its time"))
}
