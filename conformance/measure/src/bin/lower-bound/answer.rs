//! Answers one request: finds the object or collection that its path names, and asks the store.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use crate::store::{ObjectWrite, Store};

type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// Bytes of a list that are joined before they are sent.
const CHUNK: usize = 64 << 10;

/// What is answered to a request.
pub async fn to(request: Request<Incoming>, store: &Arc<Store>) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let name = name(parts.uri.path());
    match (parts.method, name) {
        (Method::POST, None) => write(body, store, true).await,
        (Method::PUT, Some(_)) => write(body, store, false).await,
        (Method::GET, Some(name)) => {
            store.get(name).map_or_else(not_found, |found| whole(StatusCode::OK, found))
        }
        (Method::GET, None) if parts.uri.path() == "/readyz" => whole(StatusCode::OK, "ok".into()),
        (Method::GET, None) if query.starts_with("watch") => watch(store),
        (Method::GET, None) => list(store, value(query, "limit"), value(query, "continue")),
        _ => whole(StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
    }
}

/// `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME`, perhaps with `/status` behind.
fn name(path: &str) -> Option<&str> {
    path.split('/').nth(7)
}

fn value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    let of = |pair: &'a str| pair.split_once('=').filter(|(k, v)| *k == key && !v.is_empty());
    query.split('&').find_map(of).map(|(_, value)| value)
}

async fn write(body: Incoming, store: &Store, new: bool) -> Response<AnswerBody> {
    let Ok(body) = body.collect().await else { return whole(StatusCode::BAD_REQUEST, Bytes::new()) };
    let Ok(object) = serde_json::from_slice::<Value>(&body.to_bytes()) else {
        return whole(StatusCode::BAD_REQUEST, Bytes::new());
    };
    match store.write(ObjectWrite { object, new }).await {
        Some(written) => whole(if new { StatusCode::CREATED } else { StatusCode::OK }, written),
        None => whole(StatusCode::CONFLICT, Bytes::new()),
    }
}

fn list(store: &Store, limit: Option<&str>, after: Option<&str>) -> Response<AnswerBody> {
    let page = store.page(limit.and_then(|limit| limit.parse().ok()), after);
    let head = format!(
        r#"{{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":["#,
        page.revision,
        page.next.unwrap_or_default()
    );
    let mut items = page.items.into_iter();
    let mut next = Some(BytesMut::from(head.as_bytes()));
    let chunks = std::iter::from_fn(move || {
        let mut chunk = next.take()?;
        chunk.reserve(CHUNK);
        for item in items.by_ref() {
            if !chunk.ends_with(b"[") {
                chunk.extend_from_slice(b",");
            }
            chunk.extend_from_slice(&item);
            if chunk.len() >= CHUNK {
                next = Some(BytesMut::new());
                return Some(chunk.freeze());
            }
        }
        chunk.extend_from_slice(b"]}");
        Some(chunk.freeze())
    });
    Response::new(StreamBody::new(stream::iter(chunks.map(|c| Ok(Frame::data(c))))).boxed_unsync())
}

fn watch(store: &Store) -> Response<AnswerBody> {
    let events = stream::unfold(store.events(), |mut events| async move {
        loop {
            match events.recv().await {
                Ok(event) => return Some((Ok(Frame::data(event)), events)),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    Response::new(StreamBody::new(events).boxed_unsync())
}

fn not_found() -> Response<AnswerBody> {
    whole(StatusCode::NOT_FOUND, Bytes::new())
}

fn whole(status: StatusCode, body: Bytes) -> Response<AnswerBody> {
    let mut response = Response::new(Full::new(body).boxed_unsync());
    *response.status_mut() = status;
    response
}
