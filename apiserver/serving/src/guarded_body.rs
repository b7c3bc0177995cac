//! A body that keeps something until it has been sent: the count of a connection's open requests, or the record of an
//! audit event.

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use axum::body::Body;
    use http_body_util::BodyExt;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn what_a_body_keeps_is_dropped_with_the_body_and_not_before_it_is_sent() {
        let dropped = CancellationToken::new();
        let response = guard(Response::new(Body::from("text")), dropped.clone().drop_guard());
        let mut body = response.into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "text");
        assert!(!dropped.is_cancelled());
        drop(body);
        assert!(dropped.is_cancelled());
    }
}
