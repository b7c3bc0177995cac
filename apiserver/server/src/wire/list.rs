//! A page of objects as a response, made while it is sent.
//!
//! ```text
//!   objects ──> json ────────────┐
//!           ──> json ─> indented ┤ steps, each bounded by    ──> gathered into pieces ──> body
//!           ──> yaml ────────────┤ what it reads and makes       (compressed)
//!           ──> protobuf ────────┘
//! ```
//!
//! A costly step is followed by a yield: no list keeps other tasks off its worker for longer than one step.

mod json;
mod pieces;
mod protobuf;
mod yaml;

use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use drydock_serving::wire::negotiate::{Output, WireFormat};
use drydock_serving::wire::response;
use drydock_storage::storage::{Items, Pinned, Stored};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::object::ObjectView;
use crate::flow_control::fair_budget::Holding;
use crate::responses::Streaming;
use json::Json;
use pieces::{Indented, PIECE, Pieces, Steps};
use protobuf::Protobuf;

/// A page.
#[derive(Clone)]
pub struct ListPage {
    /// The objects.
    pub items: Items,
    /// Revision of the whole list.
    pub revision: u64,
    /// Token of the next page, empty if there is none.
    pub continue_: String,
    /// How many objects follow, if that is known.
    pub remaining: Option<u64>,
    /// What its objects take of the budget of lists.
    pub room: Arc<Holding>,
}

/// Objects of a page.
type Objects = Box<dyn Iterator<Item = Arc<Stored>> + Send>;

/// A response with a page. Yields while it makes the beginning.
pub async fn list(page: ListPage, view: ObjectView, headers: &HeaderMap) -> Response<Body> {
    let (output, items, room, is_costly) =
        (view.output, page.items.clone(), page.room.clone(), !view.is_plain());
    let (steps, made): (Box<dyn Steps>, usize) = match output.format {
        WireFormat::Protobuf => {
            let (steps, made) = Protobuf::measured(&page, view).await;
            (Box::new(steps), made)
        }
        WireFormat::Yaml => (yaml::yaml(&page, view), 0),
        WireFormat::Json if output.pretty => (Box::new(Indented::new(Box::new(Json::new(&page, view)))), 0),
        WireFormat::Json => (Box::new(Json::new(&page, view)), 0),
    };
    let pieces = Pieces::new(steps, is_costly);
    respond(pieces, Streamed { items, made, _room: room }, output, headers).await
}

/// A page as a whole in compact JSON, however it is sent.
pub fn list_json(page: &ListPage, view: &ObjectView) -> Bytes {
    let (mut steps, mut out) = (Json::new(page, view.in_json()), BytesMut::new());
    while steps.step(&mut out) {}
    out.freeze()
}

/// Sends small bodies whole, and large ones as a stream.
async fn respond(mut pieces: Pieces, held: Streamed, output: Output, headers: &HeaderMap) -> Response<Body> {
    let media_type = output.format.media_type();
    let (mut first, mut length) = (Vec::new(), 0);
    while length <= response::COMPRESS_ABOVE {
        let Some(piece) = pieces.next().await else {
            return response::bytes(StatusCode::OK, media_type, Bytes::from(first.concat()), headers);
        };
        length += piece.len();
        first.push(piece);
    }
    let mut response = if response::takes_gzip(headers) {
        let mut response = Response::new(pieces.compressed(first).body(Vec::new()));
        response::mark_compressed(&mut response);
        response
    } else {
        Response::new(pieces.body(first))
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    let backlog = Arc::new(held);
    response.extensions_mut().insert(Streaming { backlog, ..Streaming::default() });
    response
}

/// Memory that a list holds while it streams.
struct Streamed {
    items: Items,
    /// Bytes that were made before the first was sent.
    made: usize,
    _room: Arc<Holding>,
}

impl Pinned for Streamed {
    /// The state of its objects, the pieces that were made to see whether it is large, and room for gzip.
    fn bytes(&self) -> usize {
        self.items.bytes().saturating_add(self.made + response::COMPRESS_ABOVE + 2 * PIECE)
    }

    /// Frees nothing: a list is of one state, and has a deadline.
    fn release(&self) {}
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
