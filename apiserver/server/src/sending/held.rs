//! A body that keeps something until it has been sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Keeps `guard` until the body has been sent or dropped.
pub fn held<G: Send + Unpin + 'static>(response: Response<Body>, guard: G) -> Response<Body> {
    response.map(|inner| Body::new(Held::new(inner, guard)))
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
