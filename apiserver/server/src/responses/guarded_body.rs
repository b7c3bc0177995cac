//! A body that keeps something until it has been sent or dropped.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

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
