//! `/openapi/v2` and `/openapi/v3` (k8s.io/kube-openapi/pkg/handler and handler3).

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::document::Document;
use drydock_machinery::openapi::{OpenApi, v3_url};
use drydock_serving::request::query::Query;
use drydock_serving::wire::{negotiate, response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// Subtypes of `application` in which a document is served, JSON first. `@` is the older spelling.
struct Subtypes {
    accepted: [&'static str; 3],
    protobuf: &'static str,
}

const V2: Subtypes = Subtypes {
    accepted: [
        "json",
        "com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "com.github.proto-openapi.spec.v2.v1.0+protobuf",
    ],
    protobuf: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
};
const V3: Subtypes = Subtypes {
    accepted: [
        "json",
        "com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "com.github.proto-openapi.spec.v3@v1.0+protobuf",
    ],
    protobuf: "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
};

impl Subtypes {
    /// Returns the media type and bytes of a document as the client accepts it; `None` if it accepts neither format.
    fn choose(&self, document: &Document, headers: &HeaderMap) -> Option<(&'static str, Bytes)> {
        match negotiate::subtype(headers, &self.accepted)? {
            0 => Some((JSON, document.body.clone())),
            _ => Some((self.protobuf, document.protobuf.clone()?)),
        }
    }
}

const JSON: &str = "application/json";

/// Answers a request for an OpenAPI path; `None` if the path has no handler.
pub fn answer(documents: &OpenApi, path: &str, headers: &HeaderMap, query: &Query) -> Option<Response<Body>> {
    match path {
        "/openapi/v2" => {
            let chosen = V2.choose(&documents.v2, headers);
            let mut response = chosen.map_or_else(not_acceptable, |it| served(&documents.v2, it, headers));
            // Its handler compresses, whether the client reads that or not.
            vary(&mut response, &["Accept-Encoding", "Accept"]);
            Some(response)
        }
        "/openapi/v3" => {
            let index = &documents.v3_index;
            Some(served(index, (JSON, index.body.clone()), headers))
        }
        _ => Some(of_version(documents, path.strip_prefix("/openapi/v3/")?, headers, query)),
    }
}

/// The OpenAPI v3 document of a group and version.
fn of_version(documents: &OpenApi, key: &str, headers: &HeaderMap, query: &Query) -> Response<Body> {
    let Some(document) = documents.v3_document(key) else { return empty(StatusCode::NOT_FOUND) };
    let mut response = match (V3.choose(document, headers), query.non_empty("hash")) {
        (None, _) => not_acceptable(),
        (Some((media_type, _)), Some(hash)) if hash != document.hash => {
            moved(&v3_url(key, document), media_type, document)
        }
        (Some(chosen), hash) => {
            let mut response = served(document, chosen, headers);
            hash.inspect(|_| keep_for_ever(&mut response));
            response
        }
    };
    vary(&mut response, &["Accept"]);
    response
}

fn not_acceptable() -> Response<Body> {
    empty(StatusCode::NOT_ACCEPTABLE)
}

fn served(document: &Document, chosen: (&'static str, Bytes), headers: &HeaderMap) -> Response<Body> {
    let (media_type, body) = chosen;
    let etag = document.etag();
    let mut response = if is_known(headers, &etag) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        response::bytes(StatusCode::OK, media_type, body, headers)
    };
    set(&mut response, ETAG, &etag);
    response
}

/// Whether the client has it already.
fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

fn keep_for_ever(response: &mut Response<Body>) {
    let year = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    set(response, CACHE_CONTROL, "public, immutable");
    let zoned = year.to_zoned(jiff::tz::TimeZone::UTC);
    set(response, EXPIRES, &zoned.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string());
}

/// As from Go's `http.Redirect` where the content type is known already: without a body.
fn moved(to: &str, media_type: &str, document: &Document) -> Response<Body> {
    let mut response = empty(StatusCode::MOVED_PERMANENTLY);
    set(&mut response, LOCATION, to);
    set(&mut response, CONTENT_TYPE, media_type);
    set(&mut response, ETAG, &document.etag());
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Adds request headers on which a response depends to those that it names already.
fn vary(response: &mut Response<Body>, on: &[&'static str]) {
    let own = response.headers_mut();
    for name in on {
        if own.get_all(VARY).iter().all(|known| known != name) {
            own.append(VARY, HeaderValue::from_static(name));
        }
    }
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
