//! Responses of bytes and of JSON documents; gzip, level 1, for what is above 128 KiB
//! (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go).

use std::io::Write;

use axum::body::Body;
use bytes::buf::Writer;
use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::go_yaml;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::pretty;
use crate::wire::negotiate::{Output, WireFormat};

/// A response whose whole body is in memory; compressed if it is large and the client can read that.
pub fn bytes(
    status: StatusCode,
    media_type: &'static str,
    body: Bytes,
    request: &HeaderMap,
) -> Response<Body> {
    let mut response = if takes_gzip(request) && body.len() > COMPRESS_ABOVE {
        compressed(body)
    } else {
        Response::new(Body::from(body))
    };
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// A response with a document that is no object of a kind.
pub fn value(document: &Value, output: Output, headers: &HeaderMap) -> Response<Body> {
    let mut body = in_format(document.to_string().into(), output);
    if output.format == WireFormat::Json && !output.pretty {
        body = with_newline(&body);
    }
    bytes(StatusCode::OK, output.format.media_type(), body, headers)
}

/// 404 as Go's `http.NotFound` answers it.
pub fn not_found(headers: &HeaderMap) -> Response<Body> {
    let text = Bytes::from_static(b"404 page not found\n");
    let mut response = bytes(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text, headers);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Compact JSON in the format asked for (JSON or YAML).
pub fn in_format(json: Bytes, output: Output) -> Bytes {
    match output.format {
        WireFormat::Yaml => yaml(&json),
        _ if output.pretty => pretty::indent(&json),
        _ => json,
    }
}

/// Compact JSON as YAML.
pub fn yaml(json: &[u8]) -> Bytes {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    go_yaml::to_yaml(&value).into()
}

/// Compact JSON with a newline, as Go's encoder ends a document.
pub fn with_newline(json: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len() + 1);
    out.extend_from_slice(json);
    out.put_u8(b'\n');
    out.freeze()
}

/// Smaller bodies are not compressed.
pub const COMPRESS_ABOVE: usize = 128 * 1024;

/// Whether the client reads gzip.
pub fn takes_gzip(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).any(|token| token.trim() == "gzip")
}

/// A compressed response.
fn compressed(body: Bytes) -> Response<Body> {
    let mut stream = GzipStream::default();
    let mut packed = BytesMut::new();
    for piece in body.chunks(64 * 1024) {
        packed.extend_from_slice(&stream.push(piece));
    }
    packed.extend_from_slice(&stream.finish());
    let mut response = Response::new(Body::from(packed.freeze()));
    mark_compressed(&mut response);
    response
}

/// Says that the body is compressed.
pub fn mark_compressed(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Compresses piece by piece.
pub struct GzipStream(GzEncoder<Writer<BytesMut>>);

impl Default for GzipStream {
    /// An empty stream.
    fn default() -> Self {
        Self(GzEncoder::new(BytesMut::new().writer(), Compression::new(1)))
    }
}

impl GzipStream {
    /// Takes a piece in; returns what has come out so far.
    pub fn push(&mut self, piece: &[u8]) -> Bytes {
        // Writing to memory cannot fail.
        let _ = self.0.write_all(piece);
        self.0.get_mut().get_mut().split().freeze()
    }

    /// The rest.
    pub fn finish(self) -> Bytes {
        self.0.finish().map(|w| w.into_inner().freeze()).unwrap_or_default()
    }
}
