//! A page of objects: a head, the objects' own bytes, a tail; made piece by piece while it is sent.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::table::list_meta;
use drydock_storage::storage::{Items, Pinned, Stored};
use futures::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::object::{ObjectView, object_bytes, partial};
use super::{compress, list_yaml, pretty, protobuf, response, table};
use crate::codec;
use crate::negotiate::{Format, Output, Transform};
use crate::sending::{Backlog, Streaming};

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
}

/// Sizes of the pieces in which a list is sent.
const PIECE: usize = 64 * 1024;

type Pieces = Box<dyn Iterator<Item = Bytes> + Send>;

/// A response with a page.
pub fn list(page: ListPage, view: ObjectView, headers: &HeaderMap) -> Response<Body> {
    let (output, items) = (view.output, page.items.clone());
    let (pieces, made): (Pieces, usize) = match output.format {
        Format::Protobuf => {
            let (pieces, made) = protobuf_pieces(page, &view);
            (Box::new(gathered(pieces)), made)
        }
        Format::Yaml => (yaml_pieces(page, view), 0),
        Format::Json if output.pretty => (indented(json_pieces(page, view)), 0),
        Format::Json => (json_pieces(page, view), 0),
    };
    send(pieces, Streamed { items, made }, output, headers)
}

/// Each piece ends with an item, and so never within what has to be seen as a whole.
fn indented(pieces: Pieces) -> Pieces {
    let mut indent = pretty::Indent::default();
    Box::new(pieces.map(move |piece| indent.push(&piece)))
}

fn yaml_pieces(page: ListPage, view: ObjectView) -> Pieces {
    let mut head = json_head(&page, &view).to_vec();
    head.extend_from_slice(b"]}");
    let document: Value = serde_json::from_slice(&head).unwrap_or_default();
    let field = items_field(&view);
    let prefix = type_prefix(&view);
    let items = page.items.iter().map(move |stored| {
        let mut item = BytesMut::new();
        json_item(&stored, &view, &prefix, &mut item);
        serde_json::from_slice(&item).unwrap_or_default()
    });
    Box::new(list_yaml::pieces(document, field, items, PIECE))
}

/// What a list calls its items.
fn items_field(view: &ObjectView) -> &'static str {
    match view.output.transform {
        Transform::Table(_) => "rows",
        _ => "items",
    }
}

/// A page as a whole in compact JSON, however it is sent.
pub fn list_json(page: &ListPage, view: &ObjectView) -> Bytes {
    json_pieces(page.clone(), view.in_json()).collect::<Vec<_>>().concat().into()
}

/// Small bodies whole, large ones as a stream.
fn send(mut pieces: Pieces, held: Streamed, output: Output, headers: &HeaderMap) -> Response<Body> {
    let (mut first, mut length) = (Vec::new(), 0);
    while length <= compress::THRESHOLD {
        let Some(piece) = pieces.next() else {
            return response::bytes(
                StatusCode::OK,
                output.format.media_type(),
                Bytes::from(first.concat()),
                headers,
            );
        };
        length += piece.len();
        first.push(piece);
    }
    let all = first.into_iter().chain(pieces);
    let mut response = if compress::wanted(headers) {
        let mut response = Response::new(streamed(compressed(all)));
        compress::mark(&mut response);
        response
    } else {
        Response::new(streamed(all))
    };
    let media_type = HeaderValue::from_static(output.format.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    let backlog = Arc::new(held);
    response.extensions_mut().insert(Streaming { ends: None, backlog });
    response
}

/// What a list holds while it streams.
struct Streamed {
    items: Items,
    /// Bytes that were made before the first was sent.
    made: usize,
}

impl Backlog for Streamed {
    /// Its objects' state, the pieces that were made to see whether it is large, and room for gzip.
    fn bytes(&self) -> usize {
        self.items.bytes().saturating_add(self.made + compress::THRESHOLD + 2 * PIECE)
    }

    /// It is of one state, and has a deadline.
    fn let_go(&self) {}
}

fn streamed(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Body {
    Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)))
}

fn compressed(mut pieces: impl Iterator<Item = Bytes> + Send) -> impl Iterator<Item = Bytes> + Send {
    let mut stream = Some(compress::Stream::new());
    std::iter::from_fn(move || match pieces.next() {
        Some(piece) => stream.as_mut().map(|s| s.push(&piece)),
        None => stream.take().map(compress::Stream::finish),
    })
    .filter(|piece| !piece.is_empty())
}

/// Puts small pieces together.
fn gathered(mut pieces: Pieces) -> impl Iterator<Item = Bytes> + Send {
    std::iter::from_fn(move || {
        let mut out = room();
        while out.len() < PIECE {
            let Some(piece) = pieces.next() else { break };
            if out.is_empty() && piece.len() >= PIECE {
                return Some(piece);
            }
            out.extend_from_slice(&piece);
        }
        (!out.is_empty()).then(|| out.freeze())
    })
}

/// Room for a piece, whose last part may end behind it.
fn room() -> BytesMut {
    BytesMut::with_capacity(PIECE + PIECE / 8)
}

fn json_pieces(page: ListPage, view: ObjectView) -> Pieces {
    let head = json_head(&page, &view);
    let prefix = type_prefix(&view);
    let (mut items, mut before) = (Some(page.items.iter()), Some(head));
    Box::new(std::iter::from_fn(move || {
        let mut out = room();
        let left = items.as_mut()?;
        let first = before.take().inspect(|head| out.extend_from_slice(head)).is_some();
        for (index, stored) in left.by_ref().enumerate() {
            if index > 0 || !first {
                out.put_u8(b',');
            }
            json_item(&stored, &view, &prefix, &mut out);
            if out.len() >= PIECE {
                return Some(out.freeze());
            }
        }
        items = None;
        out.put_slice(b"]}\n");
        Some(out.freeze())
    }))
}

/// `{"kind":...,"apiVersion":...,"metadata":{...},"items":[` and its like for tables.
fn json_head(page: &ListPage, view: &ObjectView) -> Bytes {
    let kind = view.kind.names().kind;
    let field = items_field(view);
    let (kind, version) = match view.output.transform {
        Transform::None => (format!("{kind}List"), view.api_version()),
        Transform::Table(v) => ("Table".to_owned(), format!("meta.k8s.io/{v}")),
        Transform::Partial(v) | Transform::PartialList(v) => {
            ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{v}"))
        }
    };
    let metadata = Value::Object(list_meta(&page.revision.to_string(), &page.continue_, page.remaining));
    let columns = match view.output.transform {
        Transform::Table(_) => {
            format!(r#","columnDefinitions":{}"#, drydock_machinery::table::columns(view.kind.as_ref()))
        }
        _ => String::new(),
    };
    let (kind, version) = (Value::from(kind), Value::from(version));
    format!(r#"{{"kind":{kind},"apiVersion":{version},"metadata":{metadata}{columns},"{field}":["#).into()
}

/// What every stored object's JSON begins with, and an item of a list does not carry.
fn type_prefix(view: &ObjectView) -> Bytes {
    let (version, kind) = (Value::from(view.api_version()), Value::from(view.kind.names().kind));
    format!(r#"{{"apiVersion":{version},"kind":{kind},"#).into()
}

fn json_item(stored: &Stored, view: &ObjectView, prefix: &[u8], out: &mut BytesMut) {
    let own = match view.output.transform {
        Transform::Table(version) => table::row(stored, view, version),
        Transform::Partial(version) | Transform::PartialList(version) => partial(&stored.object(), version),
        Transform::None => {
            out.put_u8(b'{');
            if stored.write_behind(prefix, out) {
                return;
            }
            out.truncate(out.len() - 1);
            let mut item = stored.object().to_tree();
            item.remove("kind");
            item.remove("apiVersion");
            Value::Object(item)
        }
    };
    out.put_slice(own.to_string().as_bytes());
}

/// The pieces of a page, which are made at once because its length comes first, and that length.
fn protobuf_pieces(page: ListPage, view: &ObjectView) -> (Pieces, usize) {
    let (kind, version) = match view.output.transform {
        Transform::Partial(v) | Transform::PartialList(v) => {
            ("PartialObjectMetadataList".to_owned(), format!("meta.k8s.io/{v}"))
        }
        _ => (format!("{}List", view.kind.names().kind), view.api_version()),
    };
    let items: Vec<Bytes> = page.items.iter().map(|stored| protobuf_item(&stored, view)).collect();
    let meta = protobuf::list_meta(&page.revision.to_string(), &page.continue_, page.remaining);
    let length: usize = items.iter().map(|item| protobuf::item_head(item.len()).len() + item.len()).sum();
    let mut head = protobuf::envelope_head(&version, &kind, meta.len() + length);
    head.put_slice(&meta);
    let items = items.into_iter().flat_map(|item| [protobuf::item_head(item.len()), item]);
    let tail = Bytes::from_static(protobuf::ENVELOPE_TAIL);
    (Box::new(std::iter::once(head.freeze()).chain(items).chain(std::iter::once(tail))), length)
}

fn protobuf_item(stored: &Stored, view: &ObjectView) -> Bytes {
    match view.output.transform {
        Transform::None => protobuf::raw(&object_bytes(stored, view, false)).unwrap_or_default(),
        _ => protobuf::partial(&codec::metadata_protobuf(view.kind.as_ref(), &stored.object())),
    }
}
