//! The body of an answer: the service's, until it ends or is ended. However it ends, the client gets a status.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use drydock_serving::clock;
use futures::task::AtomicWaker;
use hyper::body::{Body as HttpBody, Frame};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::status;
use crate::watch::{Fired, StreamTimer};

/// A timer that never fires: as far away as timers go.
const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// When an answer ends by itself, and with which status.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    pub(super) status: Status,
}

/// The service's body with everything that may end it.
pub(super) struct EndedBody<G> {
    /// Absent once the answer has ended.
    open: Option<OpenBody<G>>,
}

struct OpenBody<G> {
    inner: Body,
    timer: StreamTimer,
    deadline: Option<Deadline>,
    ending: Arc<Ending>,
    /// Kept while the answer is open.
    _guard: G,
}

impl<G> EndedBody<G> {
    /// Ends `inner` at `shutdown` with UNAVAILABLE, at `deadline` with its status, and when `ending` ends it. `guard` is
    /// dropped with the end.
    pub(super) fn new(
        inner: Body,
        shutdown: CancellationToken,
        deadline: Option<Deadline>,
        ending: Arc<Ending>,
        guard: G,
    ) -> Self {
        let at = deadline.as_ref().map_or_else(|| clock::now() + NEVER, |deadline| deadline.at);
        let timer = StreamTimer::new(shutdown, at);
        Self { open: Some(OpenBody { inner, timer, deadline, ending, _guard: guard }) }
    }
}

impl<G> OpenBody<G> {
    /// The status with which something other than the service ends the answer.
    fn poll_ended(&mut self, context: &mut Context<'_>) -> Option<Status> {
        if let Some(status) = self.ending.poll(context) {
            return Some(status.clone());
        }
        match self.timer.poll(context) {
            Poll::Pending => None,
            Poll::Ready(Fired::Shutdown) => {
                Some(Status::unavailable("this server is shutting down, please connect again"))
            }
            Poll::Ready(Fired::Time) => {
                let late = || Status::deadline_exceeded("the call has reached its deadline");
                Some(self.deadline.take().map_or_else(late, |deadline| deadline.status))
            }
        }
    }

    /// The service's next frame; a panic of the service is INTERNAL.
    fn poll_inner(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Status>> {
        let poll = AssertUnwindSafe(|| Pin::new(&mut self.inner).poll_frame(context));
        match std::panic::catch_unwind(poll) {
            Ok(polled) => polled.map(|next| {
                next.transpose().map_err(|error| {
                    tracing::error!(%error, "the body of a gRPC answer failed");
                    Status::internal("the answer broke off; the log of this server says why")
                })
            }),
            Err(_) => {
                tracing::error!("a gRPC stream panicked");
                Poll::Ready(Err(Status::internal("this call caused the server to panic, see its log")))
            }
        }
    }
}

impl<G: Unpin> HttpBody for EndedBody<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(open) = &mut self.open else { return Poll::Ready(None) };
        let next = match open.poll_ended(context) {
            Some(status) => Err(status),
            None => match open.poll_inner(context) {
                Poll::Ready(next) => next,
                Poll::Pending => return Poll::Pending,
            },
        };
        let frame = match next {
            Ok(Some(frame)) if frame.is_data() => return Poll::Ready(Some(Ok(frame))),
            Ok(Some(trailers)) => Some(trailers),
            Ok(None) => None,
            Err(status) => Some(Frame::trailers(status::trailers(&status))),
        };
        // Drops the service's body and the guard before the client knows of the end.
        self.open = None;
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.open.is_none()
    }
}

/// Ends one stream from outside. Shared by the stream's body and the reviews that may end it.
#[derive(Debug, Default)]
pub(super) struct Ending {
    status: OnceLock<Status>,
    /// When it was ended. The stream is reset if the client does not read its end.
    at: Arc<OnceLock<Instant>>,
    body: AtomicWaker,
}

impl Ending {
    /// Ends the stream with this status; the first one counts.
    pub(super) fn end(&self, status: Status) {
        if self.status.set(status).is_ok() {
            let _ = self.at.set(clock::now());
            self.body.wake();
        }
    }

    /// Returns the cell that holds the moment at which the stream is ended.
    pub(super) fn at(&self) -> Arc<OnceLock<Instant>> {
        self.at.clone()
    }

    /// The status with which the stream ends; if there is none yet, the task is woken when there is.
    pub(super) fn poll(&self, context: &Context<'_>) -> Option<&Status> {
        if self.status.get().is_none() {
            self.body.register(context.waker());
        }
        // In this order: what comes after the waker was registered wakes it.
        self.status.get()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::convert::Infallible;

    use futures::{FutureExt, StreamExt, stream};
    use http_body_util::BodyExt;
    use tonic::Code;

    use super::*;

    fn endless() -> Body {
        let one = stream::iter([Ok::<_, Infallible>("one")]);
        Body::from_stream(one.chain(stream::pending()))
    }

    /// Everything that ends a body, and a token that is cancelled when the body's guard is dropped.
    struct Parts {
        shutdown: CancellationToken,
        ending: Arc<Ending>,
        dropped: CancellationToken,
    }

    fn body(inner: Body, deadline: Option<Deadline>) -> (EndedBody<impl Sized + Unpin>, Parts) {
        let (shutdown, ending, dropped) =
            (CancellationToken::new(), Arc::default(), CancellationToken::new());
        let guard = Box::new(dropped.clone().drop_guard());
        let body = EndedBody::new(inner, shutdown.clone(), deadline, Arc::clone(&ending), guard);
        (body, Parts { shutdown, ending, dropped })
    }

    /// The code in the trailers, once everything before them has been read.
    async fn end(mut body: EndedBody<impl Sized + Unpin>) -> Option<Code> {
        while let Some(frame) = body.frame().await {
            if let Ok(trailers) = frame.unwrap().into_trailers() {
                assert!(body.is_end_stream() && body.frame().await.is_none());
                return Some(Code::from_bytes(trailers.get("grpc-status")?.as_bytes()));
            }
        }
        None
    }

    #[tokio::test]
    async fn a_stream_that_waits_ends_with_the_status_that_it_is_given() {
        let (mut body, parts) = body(endless(), None);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
        let waiting = tokio::spawn(end(body));
        tokio::task::yield_now().await;
        parts.ending.end(Status::permission_denied("no more"));
        parts.ending.end(Status::internal("the first one counts"));
        assert_eq!(waiting.await.unwrap(), Some(Code::PermissionDenied));
        assert!(parts.dropped.is_cancelled() && parts.ending.at().get().is_some());
    }

    #[tokio::test]
    async fn shutdown_is_unavailable_and_a_deadline_has_its_own_status() {
        let (stopped, parts) = body(endless(), None);
        parts.shutdown.cancel();
        assert_eq!(end(stopped).await, Some(Code::Unavailable));
        let deadline = Deadline { at: Instant::now(), status: Status::unauthenticated("expired") };
        let (late, _parts) = body(endless(), Some(deadline));
        assert_eq!(end(late).await, Some(Code::Unauthenticated));
    }

    #[tokio::test]
    async fn a_service_that_ends_by_itself_keeps_its_trailers() {
        let trailers = status::trailers(&Status::out_of_range("begin again"));
        let frames =
            stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::new())), Ok(Frame::trailers(trailers))]);
        let (ended, parts) = body(Body::new(http_body_util::StreamBody::new(frames)), None);
        assert_eq!(end(ended).await, Some(Code::OutOfRange));
        assert!(parts.dropped.is_cancelled());
    }

    #[tokio::test]
    async fn a_service_that_panics_or_breaks_off_is_internal() {
        let panics = stream::poll_fn(|_| -> Poll<Option<Result<Bytes, Infallible>>> { panic!("on purpose") });
        assert_eq!(end(body(Body::from_stream(panics), None).0).await, Some(Code::Internal));
        let breaks = stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]);
        assert_eq!(end(body(Body::from_stream(breaks), None).0).await, Some(Code::Internal));
    }

    #[tokio::test]
    async fn an_open_stream_waits() {
        let (mut body, _parts) = body(endless(), None);
        body.frame().await.unwrap().unwrap();
        assert!(body.frame().now_or_never().is_none());
    }
}
