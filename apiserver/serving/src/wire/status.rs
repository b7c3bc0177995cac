//! Errors, and the Success of a delete.

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::ApiError;
use drydock_machinery::error::Status;
use http::header::{RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::protobuf;
use super::response::{bytes, in_format};
use crate::request::query::Query;
use crate::wire::negotiate::{self, Output, WireFormat};

/// An error, in the form that the client asked for.
pub fn error(error: &ApiError, headers: &HeaderMap, query: &Query) -> Response<Body> {
    let code = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = status(code, &error.status, negotiate::error(headers, query), headers);
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// An error of a request whose headers are no longer known: JSON.
pub fn fallback(error: &ApiError) -> Response<Body> {
    self::error(error, &HeaderMap::new(), &Query::default())
}

/// A refusal before anything was done for the request. As from Kubernetes' filters, a 429 is plain text, and 400, 403
/// and 429 forbid clients to guess the content type (k8s.io/apiserver
/// pkg/endpoints/handlers/responsewriters/errors.go, pkg/server/filters/priority-and-fairness.go).
pub fn refusal(refused: &ApiError, headers: &HeaderMap, query: &Query) -> Response<Body> {
    let mut response = match refused.code() {
        429 => {
            let text = Bytes::from(format!("{refused}\n"));
            let mut response =
                bytes(StatusCode::TOO_MANY_REQUESTS, "text/plain; charset=utf-8", text, headers);
            response.headers_mut().insert(RETRY_AFTER, refused.retry_after().unwrap_or(1).into());
            response
        }
        400 | 403 => error(refused, headers, query),
        _ => return error(refused, headers, query),
    };
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A Status that is no error.
pub fn success(code: StatusCode, success: &Status, output: Output, headers: &HeaderMap) -> Response<Body> {
    status(code, success, output, headers)
}

fn status(code: StatusCode, status: &Status, output: Output, headers: &HeaderMap) -> Response<Body> {
    bytes(code, output.format.media_type(), encoded(status, output), headers)
}

/// A Status in bytes.
pub fn encoded(status: &Status, output: Output) -> Bytes {
    match output.format {
        WireFormat::Protobuf => protobuf::status(status),
        _ => in_format(status.to_json(), output),
    }
}
