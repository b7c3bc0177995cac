//! `/openapi/v2` and `/openapi/v3` (k8s.io/kube-openapi/pkg/handler and handler3).

use axum::body::Body;
use drydock_machinery::document::Document;
use drydock_machinery::openapi::{OpenApi, v3_url};
use drydock_serving::request::query::Query;
use drydock_serving::wire::{negotiate, response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// Answers a get of an OpenAPI path; `None` if there is no such document.
pub fn answer(documents: &OpenApi, path: &str, headers: &HeaderMap, query: &Query) -> Option<Response<Body>> {
    let path = path.trim_end_matches('/');
    if path == "/openapi/v2" {
        return Some(negotiated(&documents.v2, headers));
    }
    if path == "/openapi/v3" {
        return Some(served(&documents.v3_index, headers));
    }
    let key = path.strip_prefix("/openapi/v3/")?;
    let document = documents.v3_document(key)?;
    Some(match query.non_empty("hash") {
        None => negotiated(document, headers),
        Some(hash) if hash == document.hash => kept_for_ever(negotiated(document, headers)),
        Some(_) => moved(&v3_url(key, document)),
    })
}

/// The document as JSON; 406 if the client does not accept it.
fn negotiated(document: &Document, headers: &HeaderMap) -> Response<Body> {
    let mut response = if negotiate::accepts_json(headers) {
        served(document, headers)
    } else {
        empty(StatusCode::NOT_ACCEPTABLE)
    };
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept"));
    response
}

fn served(document: &Document, headers: &HeaderMap) -> Response<Body> {
    let etag = document.etag();
    let mut response = if is_known(headers, &etag) {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        response::bytes(StatusCode::OK, "application/json", document.body.clone(), headers)
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

fn kept_for_ever(mut response: Response<Body>) -> Response<Body> {
    let year = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(365 * 24);
    set(&mut response, CACHE_CONTROL, "public, immutable");
    let zoned = year.to_zoned(jiff::tz::TimeZone::UTC);
    set(&mut response, EXPIRES, &zoned.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string());
    response
}

fn moved(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("<a href=\"{to}\">Moved Permanently</a>.\n\n")));
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    set(&mut response, LOCATION, to);
    set(&mut response, CONTENT_TYPE, "text/html; charset=utf-8");
    response
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
