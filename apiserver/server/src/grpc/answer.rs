//! The answer of a call, with everything that ends it.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::ApiError;
use drydock_serving::clock;
use drydock_serving::request::user::User;
use futures::FutureExt;
use http::{HeaderMap, Request, Response, request};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::access::GrantedStream;
use super::body::{Deadline, EndedBody, Ending};
use super::call::GrpcCall;
use super::routes::Route;
use super::{CallRefusal, Grpc, message};
use crate::flow_control::Seats;
use crate::responses::Streaming;

/// Time for the message of a health check, which any client may send.
const CHECK_TIME: Duration = Duration::from_secs(10);
/// Longest message of a health check, in bytes: the name of a service.
const CHECK_BYTES: usize = 1024;
const CHECKS_WAIT: &str = "too many health checks have not sent their message yet";
const CHECK_LATE: &str = "the message of the health check did not come in time";
/// A stream without a deadline is treated as if it ended after this time.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

impl GrpcCall<'_> {
    /// The answer of a stream, until it ends or is ended. It gives its seats back when its first events have been sent.
    pub(super) fn open_stream(
        &self,
        grpc: &Grpc,
        mut answer: Response<Body>,
        stream: GrantedStream,
        seats: Seats,
    ) -> Response<Body> {
        let GrantedStream { ending, open, bytes, certificate_end, messages } = stream;
        let deadline = earliest(self.client_deadline, certificate_end);
        let streaming = answer.extensions_mut().remove::<Streaming>().unwrap_or_default();
        streaming.keep(seats, self.by);
        let ends = deadline.as_ref().map_or_else(|| clock::now() + FAR, |deadline| deadline.at);
        answer.extensions_mut().insert(Streaming {
            ends: Some(ends),
            ended_at: Some(ending.at()),
            constant: streaming.constant + bytes,
            ..streaming
        });
        ended(grpc.shutdown.clone(), answer, deadline, ending, (open, messages.drop_guard()))
    }
}

/// Answers a health check: it needs no user, no seat and no review, like /livez.
pub(super) async fn check(
    grpc: &Grpc,
    mut parts: request::Parts,
    body: Body,
) -> Result<Response<Body>, CallRefusal> {
    let message = check_message(grpc, &mut parts.headers, body).await?;
    let request = Request::from_parts(parts, message::framed(&message));
    Ok(grpc.routes.call(Route::HealthCheck, &User::default(), request).await)
}

/// The message of a health check, which nearly always comes with the headers.
async fn check_message(grpc: &Grpc, headers: &mut HeaderMap, body: Body) -> Result<Bytes, CallRefusal> {
    let mut message = Box::pin(message::read(headers, body, None, CHECK_BYTES));
    if let Some(message) = (&mut message).now_or_never() {
        return message;
    }
    let check = grpc.checks.wait();
    tokio::select! {
        message = message => message,
        () = check.displaced() => Err(ApiError::too_many_requests(CHECKS_WAIT, 1).into()),
        () = tokio::time::sleep(CHECK_TIME) => Err(ApiError::timeout(CHECK_LATE, 0).into()),
    }
}

/// Returns the answer of a unary call. Shutdown does not end it, but waits for it.
pub(super) fn unary(answer: Response<Body>, by: Instant) -> Response<Body> {
    let late = Status::deadline_exceeded("the call has reached its deadline");
    ended(CancellationToken::new(), answer, Some(Deadline { at: by, status: late }), Arc::default(), ())
}

/// The answer, until it ends or is ended; `guard` is dropped then.
fn ended<G: Send + Unpin + 'static>(
    shutdown: CancellationToken,
    answer: Response<Body>,
    deadline: Option<Deadline>,
    ending: Arc<Ending>,
    guard: G,
) -> Response<Body> {
    if answer.body().is_end_stream() {
        return answer;
    }
    answer.map(|inner| {
        let body = EndedBody::new(inner, shutdown, deadline, ending, guard);
        // Boxed here: `Body` would put a layer around it that maps errors.
        Body::new(body.boxed_unsync())
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
        Deadline { at: clock::now() + left.min(FAR), status }
    });
    client.into_iter().chain(certificate).min_by_key(|deadline| deadline.at)
}

/// The time after which the client gives up, from the header `grpc-timeout`; `None` if it names none.
///
/// # Errors
/// 400 if the header is not one to eight digits and a unit: H, M, S, m, u or n.
pub(super) fn client_timeout(headers: &HeaderMap) -> Result<Option<Duration>, ApiError> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let time = value.to_str().ok().and_then(parse_timeout);
    time.map(Some).ok_or_else(|| {
        ApiError::bad_request(
            "grpc-timeout must be one to eight digits and one of the units H, M, S, m, u, n",
        )
    })
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finished answer is sent as a whole, whatever state the server is in.
    #[tokio::test]
    async fn a_unary_answer_has_its_whole_body_until_its_deadline() {
        let answer = || unary(Response::new(Body::from("whole")), Instant::now() + Duration::from_secs(60));
        let body = answer().into_body().collect().await.map(|body| body.to_bytes());
        assert!(body.is_ok_and(|body| body == "whole"));
        let endless = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let late = unary(Response::new(Body::from_stream(endless)), Instant::now());
        let trailers = late.into_body().collect().await.ok().and_then(|body| body.trailers().cloned());
        let status = trailers.and_then(|trailers| Status::from_header_map(&trailers));
        assert_eq!(status.map(|status| status.code()), Some(tonic::Code::DeadlineExceeded));
    }

    #[test]
    fn the_earlier_of_two_deadlines_ends_a_stream_with_its_own_status() {
        let code = |client: Option<u64>, certificate: Option<u64>| {
            let client = client.map(|seconds| Instant::now() + Duration::from_secs(seconds));
            let certificate = certificate.map(|seconds| SystemTime::now() + Duration::from_secs(seconds));
            earliest(client, certificate).map(|deadline| deadline.status.code())
        };
        assert_eq!(code(None, None), None);
        assert_eq!(code(Some(10), Some(20)), Some(tonic::Code::DeadlineExceeded));
        assert_eq!(code(Some(20), Some(10)), Some(tonic::Code::Unauthenticated));
        assert_eq!(code(None, Some(u64::from(u32::MAX))), Some(tonic::Code::Unauthenticated));
    }

    #[test]
    fn a_time_has_up_to_eight_digits_and_a_unit() {
        assert_eq!(parse_timeout("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(parse_timeout("2M"), Some(Duration::from_secs(120)));
        assert_eq!(parse_timeout("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse_timeout("0u"), Some(Duration::ZERO));
        assert_eq!(parse_timeout("7n"), Some(Duration::from_nanos(7)));
        for bad in ["", "S", "1", "-1S", "+1S", "1.5S", "123456789S", "1s", "1é", "1 S"] {
            assert_eq!(parse_timeout(bad), None, "{bad}");
        }
    }
}
