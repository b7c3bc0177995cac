//! Errors in gRPC's codes, and refusals as answers that have trailers only.

use std::time::Duration;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_serving::auth::authn::AuthenticationError;
use http::{HeaderMap, Response, StatusCode};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::CallRefusal;
use crate::chain::AccessDenied;

/// Longest message, in bytes. Clients take 8 KiB of headers, and percent-encoding makes three bytes of one.
const MAX_MESSAGE_BYTES: usize = 2048;

/// The message for a call without valid credentials: clients of gRPC do not know what Kubernetes expects.
const UNAUTHENTICATED: &str = "Unauthorized: show a client certificate of the host's CA, or send `authorization: Bearer TOKEN` \
                               with a token that the host knows and that is for an audience of this server";

impl From<ApiError> for CallRefusal {
    fn from(error: ApiError) -> Self {
        let code = of_http(error.code());
        let message = match error.code() {
            401 => UNAUTHENTICATED.to_owned(),
            _ => cut(&error.status.message),
        };
        let status = match error.retry_after() {
            Some(seconds) => {
                let wait = Duration::from_secs(seconds.into());
                Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(wait)))
            }
            None => Status::new(code, message),
        };
        Self { status, error }
    }
}

impl From<AuthenticationError> for CallRefusal {
    /// A client that is told UNAUTHENTICATED gives up, so one whose token could not be reviewed gets UNAVAILABLE.
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Refused(error) => error.into(),
            AuthenticationError::NoAnswer => {
                ApiError::service_unavailable("the host did not answer the review of the token").into()
            }
        }
    }
}

impl From<AccessDenied> for CallRefusal {
    /// An anonymous user without the right gets UNAUTHENTICATED: with a name it might have the right.
    fn from(refused: AccessDenied) -> Self {
        let AccessDenied { error, is_anonymous } = refused;
        match is_anonymous {
            true => Self { status: Status::unauthenticated(error.to_string()), error },
            false => error.into(),
        }
    }
}

impl From<Status> for CallRefusal {
    fn from(status: Status) -> Self {
        let code = to_http(status.code());
        let reason = code.canonical_reason().unwrap_or_default().replace(' ', "");
        let error = ApiError::new(code.as_u16(), &reason, cut(status.message()), None);
        Self { status, error }
    }
}

/// A trailers-only answer: HTTP 200, with the status in the headers and no body.
pub(super) fn trailers_only(status: &Status) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.headers_mut() = trailers(status);
    let media_type = http::HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
    response
}

/// A status as trailers.
pub(super) fn trailers(status: &Status) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if status.add_header(&mut headers).is_err() {
        headers.clear();
        headers.insert(Status::GRPC_STATUS, i32::from(Code::Internal).into());
    }
    headers
}

/// How an answer is counted: a service's refusal has its status in the headers.
pub(super) fn http_code(headers: &HeaderMap) -> StatusCode {
    let code = headers.get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()));
    code.map_or(StatusCode::OK, to_http)
}

fn of_http(code: u16) -> Code {
    match code {
        400 | 415 | 422 => Code::InvalidArgument,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404..=406 => Code::Unimplemented,
        409 => Code::Aborted,
        413 | 429 => Code::ResourceExhausted,
        503 => Code::Unavailable,
        504 => Code::DeadlineExceeded,
        _ => Code::Internal,
    }
}

fn to_http(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound | Code::Unimplemented => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

fn cut(message: &str) -> String {
    message[..message.floor_char_boundary(MAX_MESSAGE_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(error: ApiError) -> Response<Body> {
        trailers_only(&CallRefusal::from(error).status)
    }

    fn header<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
        response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[test]
    fn a_refusal_is_an_answer_of_trailers_only() {
        let answer = refused(ApiError::bad_request("100% of »this« is wrong"));
        assert_eq!((answer.status(), header(&answer, "content-type")), (StatusCode::OK, "application/grpc"));
        assert_eq!(header(&answer, "grpc-status"), "3");
        assert_eq!(header(&answer, "grpc-message"), "100%25%20of%20%C2%BBthis%C2%AB%20is%20wrong");
        assert!(hyper::body::Body::is_end_stream(answer.body()));
    }

    #[test]
    fn each_refusal_of_the_chain_has_its_code() {
        for (error, code) in [
            (ApiError::unauthorized(), Code::Unauthenticated),
            (ApiError::forbidden("g", "things", "", "no"), Code::PermissionDenied),
            (ApiError::unknown_path(), Code::Unimplemented),
            (ApiError::request_entity_too_large("limit is 7"), Code::ResourceExhausted),
            (ApiError::too_many_requests("later", 1), Code::ResourceExhausted),
            (ApiError::service_unavailable("away"), Code::Unavailable),
            (ApiError::timeout("late", 0), Code::DeadlineExceeded),
            (ApiError::internal("panic"), Code::Internal),
        ] {
            let http = error.code();
            let answer = refused(error);
            assert_eq!(header(&answer, "grpc-status"), i32::from(code).to_string(), "{http}");
        }
    }

    /// A client of gRPC gave up, as if its token were wrong, when the host could not be asked.
    #[test]
    fn a_token_that_the_host_did_not_review_is_unavailable_and_not_unauthenticated() {
        let code = |error: AuthenticationError| CallRefusal::from(error).status.code();
        assert_eq!(code(AuthenticationError::NoAnswer), Code::Unavailable);
        assert_eq!(code(ApiError::unauthorized().into()), Code::Unauthenticated);
        assert_eq!(ApiError::from(AuthenticationError::NoAnswer).code(), 401, "as kube-apiserver over HTTP");
    }

    #[test]
    fn too_many_requests_say_when_to_come_again() {
        let status = CallRefusal::from(ApiError::too_many_requests("later", 3)).status;
        let wait = status.get_details_retry_info().and_then(|info| info.retry_delay);
        assert_eq!(wait, Some(Duration::from_secs(3)));
        let answer = trailers_only(&status);
        assert!(!header(&answer, "grpc-status-details-bin").is_empty());
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let status = CallRefusal::from(ApiError::bad_request("é".repeat(10_000))).status;
        assert!(status.message().len() <= MAX_MESSAGE_BYTES && status.message().ends_with('é'));
    }

    #[test]
    fn an_answer_of_a_service_is_counted_by_its_status() {
        let refused = trailers_only(&Status::out_of_range("begin again"));
        assert_eq!(http_code(refused.headers()), StatusCode::BAD_REQUEST);
        assert_eq!(http_code(&HeaderMap::new()), StatusCode::OK);
    }
}
