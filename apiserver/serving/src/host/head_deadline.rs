//! The time that a server has for the head of an answer.
//!
//! A server that takes requests and answers none, such as one whose storage hangs, answers the pings of its connection all the
//! same: without a deadline a request to it is waited for as long as the process runs.

use std::fmt;
use std::time::Duration;

use tower::BoxError;
use tower::layer::util::Stack;
use tower::timeout::TimeoutLayer;
use tower::timeout::error::Elapsed;
use tower::util::MapErrLayer;

/// A little longer than kube-apiserver itself works on a request that is no watch (`--request-timeout`, 60 s): what it gives
/// up is told by its own answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(75);

/// Fails a request to which the server does not begin to answer in time. The body of the answer may take longer, as the
/// events of a watch do.
pub(super) type HeadDeadline = Stack<TimeoutLayer, MapErrLayer<fn(BoxError) -> BoxError>>;

/// The layer that does so.
pub(super) fn head_deadline() -> HeadDeadline {
    Stack::new(TimeoutLayer::new(ANSWERED_WITHIN), MapErrLayer::new(named))
}

/// Says how long was waited, which tower does not.
fn named(error: BoxError) -> BoxError {
    if error.is::<Elapsed>() { NoAnswer.into() } else { error }
}

/// The server did not begin to answer in time. Whether it has done what the request asks for is unknown.
#[derive(Debug)]
struct NoAnswer;

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no answer within {ANSWERED_WITHIN:?}")
    }
}

impl std::error::Error for NoAnswer {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use futures::stream;
    use http::{Request, Response};
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;
    use tokio::time::Instant;
    use tower::{Layer, Service, service_fn};

    use super::*;

    /// Lists, writes and new watches of the controllers were waited for as long as the process ran.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_answers_is_an_error_that_says_so() {
        let silent =
            service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        let mut service = head_deadline().layer(silent);
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
        let mut service = head_deadline().layer(watch);
        let answer = service.call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "event");
    }

    #[tokio::test]
    async fn an_error_of_the_server_stays_what_it_is() {
        let broken = service_fn(|_: Request<Body>| async {
            Err::<Response<Body>, _>(std::io::Error::other("broken"))
        });
        let error = head_deadline().layer(broken).call(Request::new(Body::empty())).await.unwrap_err();
        assert!(error.is::<std::io::Error>());
    }
}
