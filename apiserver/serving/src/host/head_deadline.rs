//! The time that a server has for the head of an answer.
//!
//! A server that takes requests and answers none, such as one whose storage hangs, answers the pings of its connection all the
//! same: without a deadline a request to it is waited for as long as the process runs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

/// Fails a request to which the server does not begin to answer in time. The body of the answer may take longer, as the
/// events of a watch do.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadDeadline(Duration);

impl HeadDeadline {
    /// A little longer than kube-apiserver itself works on a request that is no watch (`--request-timeout`, 60 s): what it
    /// gives up is told by its own answer.
    pub(super) const OF_HOST: Self = Self(Duration::from_secs(75));
}

impl<S> Layer<S> for HeadDeadline {
    type Service = WithHeadDeadline<S>;

    fn layer(&self, inner: S) -> WithHeadDeadline<S> {
        WithHeadDeadline { inner, limit: self.0 }
    }
}

/// A client's service that does not wait longer for the head of an answer.
#[derive(Clone, Debug)]
pub(super) struct WithHeadDeadline<S> {
    inner: S,
    limit: Duration,
}

impl<S, B> Service<Request<Body>> for WithHeadDeadline<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, limit) = (self.inner.call(request), self.limit);
        Box::pin(async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer.map_err(Into::into),
                Err(_) => Err(NoAnswer(limit).into()),
            }
        })
    }
}

/// The server did not begin to answer in time. Whether it has done what the request asks for is unknown.
#[derive(Debug)]
struct NoAnswer(Duration);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {:?}", self.0)
    }
}

impl std::error::Error for NoAnswer {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Bytes, Frame};
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;

    /// Lists, writes and new watches of the controllers were waited for as long as the process ran.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_an_error_that_says_so() {
        let silent =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        let mut service = HeadDeadline::OF_HOST.layer(silent);
        let began = Instant::now();
        let error = service.call(Request::new(Body::empty())).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer within 75s");
        assert_eq!(began.elapsed(), Duration::from_secs(75));
    }

    #[tokio::test(start_paused = true)]
    async fn events_of_a_watch_may_come_later() {
        let watch = service_fn(|_: Request<Body>| async {
            let late = stream::once(async {
                tokio::time::advance(Duration::from_secs(290)).await;
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"event")))
            });
            Ok::<_, Infallible>(Response::new(StreamBody::new(Box::pin(late))))
        });
        let mut service = HeadDeadline::OF_HOST.layer(watch);
        let answer = service.call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "event");
    }

    #[tokio::test]
    async fn an_error_of_the_server_stays_what_it_is() {
        let broken = service_fn(|_: Request<Body>| async {
            Err::<Response<Body>, _>(std::io::Error::other("broken"))
        });
        let error = HeadDeadline::OF_HOST.layer(broken).call(Request::new(Body::empty())).await.unwrap_err();
        assert!(error.is::<std::io::Error>());
    }
}
