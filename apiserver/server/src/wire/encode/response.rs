//! A response of bytes.

use axum::body::Body;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::compress;

/// A response whose whole body is at hand; compressed if it is large and the client can read that.
pub fn bytes(
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
    request: &HeaderMap,
) -> Response<Body> {
    let mut response = if compress::wanted(request) && body.len() > compress::THRESHOLD {
        compress::whole(body)
    } else {
        Response::new(Body::from(body))
    };
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
