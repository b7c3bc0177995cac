//! Reading a request's body, within bounds.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_machinery::ApiError;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;

use crate::negotiate::{Format, MEDIA_TYPES};

/// Largest body that is read (k8s.io/apiserver/pkg/server/config.go, MaxRequestBodyBytes).
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Reads the whole body; 413 past the limit, 400 if it breaks off.
pub async fn read(body: Body) -> Result<Bytes, ApiError> {
    let mut body = body;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|error| ApiError::bad_request(format!("error reading the request body: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > MAX_BODY_BYTES {
            return Err(ApiError::request_entity_too_large(format_args!("limit is {MAX_BODY_BYTES}")));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() { Ok(first) } else { Ok([first, rest.freeze()].concat().into()) }
}

/// The format of an object in the body; 415 for one that is not spoken.
pub fn format(headers: &HeaderMap) -> Result<Format, ApiError> {
    let media_type = media_type(headers);
    if media_type.is_empty() {
        return Ok(Format::Json);
    }
    Format::of_media_type(&media_type).ok_or_else(|| ApiError::unsupported_media_type(&MEDIA_TYPES))
}

/// The body's media type without parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
