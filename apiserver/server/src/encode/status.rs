//! Errors, and the Success of a delete.

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::ApiError;
use drydock_machinery::error::Status;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Response, StatusCode};

use super::object::in_format;
use super::protobuf;
use super::response::bytes;
use crate::negotiate::{self, Format, Output};
use crate::query::Query;

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
        Format::Protobuf => protobuf::status(status),
        _ => in_format(status.to_json(), output),
    }
}
