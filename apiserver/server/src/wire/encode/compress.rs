//! gzip, level 1, for what is above 128 KiB (k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/writers.go).

use std::io::Write;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut, buf::Writer};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue, Response};

/// Smaller bodies are not worth it.
pub const THRESHOLD: usize = 128 * 1024;

/// Whether the client reads gzip.
pub fn wanted(request: &HeaderMap) -> bool {
    let values = request.get_all(ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).any(|token| token.trim() == "gzip")
}

/// A compressed response.
pub fn whole(body: Bytes) -> Response<Body> {
    let mut stream = Stream::new();
    let mut packed = BytesMut::new();
    for piece in body.chunks(64 * 1024) {
        packed.extend_from_slice(&stream.push(piece));
    }
    packed.extend_from_slice(&stream.finish());
    let mut response = Response::new(Body::from(packed.freeze()));
    mark(&mut response);
    response
}

/// Says that the body is compressed.
pub fn mark(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Compresses piece by piece.
pub struct Stream(GzEncoder<Writer<BytesMut>>);

impl Stream {
    /// An empty stream.
    pub fn new() -> Self {
        Self(GzEncoder::new(BytesMut::new().writer(), Compression::new(1)))
    }

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
