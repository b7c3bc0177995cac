//! The answer of a call, with everything that ends it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use drydock_machinery::ApiError;
use http::{Request, Response, request};
use hyper::body::Body as _;
use tonic::Status;

use super::admit::AdmittedStream;
use super::body::{Deadline, EndedBody};
use super::ending::Ending;
use super::order::Call;
use super::routes::Route;
use super::{Grpc, Refusal, message};
use crate::flow_control::Seats;
use crate::sending::Streaming;
use crate::user::User;

/// Time for the message of a health check, which comes from anybody.
const CHECK_TIME: Duration = Duration::from_secs(10);
/// Longest message of a health check, in bytes: the name of a service.
const CHECK_BYTES: usize = 1024;
/// A stream without a deadline is looked at as if it ended then.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl Call<'_> {
    /// The answer of a stream, until it ends or is ended. It gives its seats back when its first events have been sent.
    pub(super) fn open_stream(
        &self,
        grpc: &Grpc,
        mut answer: Response<Body>,
        stream: AdmittedStream,
        seats: Seats,
    ) -> Response<Body> {
        let AdmittedStream { ending, open, bytes, certificate_end } = stream;
        let deadline = earliest(self.client_deadline, certificate_end);
        let streaming = answer.extensions_mut().remove::<Streaming>().unwrap_or_default();
        streaming.keep(seats, self.by);
        let ends = deadline.as_ref().map_or_else(|| Instant::now() + FAR, |deadline| deadline.at);
        answer.extensions_mut().insert(Streaming {
            ends: Some(ends),
            ended_at: Some(ending.at()),
            constant: streaming.constant + bytes,
            ..streaming
        });
        ended(grpc, answer, deadline, ending, open)
    }
}

/// Answers a health check: it needs no user, no place and no review, like /livez.
pub(super) async fn check(
    grpc: &Grpc,
    mut parts: request::Parts,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    let message = message::read(&mut parts.headers, body, None, CHECK_BYTES);
    let late = || ApiError::timeout("the message of the health check did not come in time", 0);
    let message = tokio::time::timeout(CHECK_TIME, message).await.map_err(|_| late())??;
    let request = Request::from_parts(parts, message::framed(&message));
    Ok(grpc.routes.call(Route::HealthCheck, &User::default(), request).await)
}

/// The answer, until it ends or is ended; `guard` is dropped then.
pub(super) fn ended<G: Send + Unpin + 'static>(
    grpc: &Grpc,
    answer: Response<Body>,
    deadline: Option<Deadline>,
    ending: Arc<Ending>,
    guard: G,
) -> Response<Body> {
    if answer.body().is_end_stream() {
        return answer;
    }
    answer.map(|inner| {
        let body = EndedBody::new(inner, grpc.shutdown.clone(), deadline, ending, guard);
        Body::new(body)
    })
}

/// The earlier of the client's deadline and the end of its certificate.
fn earliest(client: Option<Instant>, certificate: Option<SystemTime>) -> Option<Deadline> {
    let late = Status::deadline_exceeded("the call has reached the deadline that grpc-timeout set");
    let client = client.map(|at| Deadline { at, status: late });
    let certificate = certificate.map(|end| {
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        let status =
            Status::unauthenticated("the client certificate has expired: connect again with a new one");
        Deadline { at: Instant::now() + left.min(FAR), status }
    });
    client.into_iter().chain(certificate).min_by_key(|deadline| deadline.at)
}
