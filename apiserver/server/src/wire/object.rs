//! One object in the form that the client asked for.

use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::kind::{Kind, Now};
use drydock_machinery::table::{self, IncludeObject, TableOptions, partial_object_metadata};
use drydock_machinery::{ApiError, Object};
use drydock_serving::request::query::Query;
use drydock_serving::wire::negotiate::{Output, Transform, WireFormat};
use drydock_serving::wire::response::{in_format, with_newline, yaml};
use drydock_serving::wire::{pretty, protobuf, response};
use drydock_storage::storage::Stored;
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::wire::codec;

/// How objects of a kind are shown to one client.
#[derive(Clone)]
pub struct ObjectView {
    /// The kind.
    pub kind: Arc<dyn Kind>,
    /// Format and transform.
    pub output: Output,
    /// What a table's rows carry.
    pub include: IncludeObject,
    /// The moment that ages count to.
    pub now: Now,
}

impl ObjectView {
    /// `apiVersion` of the kind.
    pub fn api_version(&self) -> String {
        self.kind.names().api_version()
    }

    /// Whether an object is shown as its own JSON, which is copied and not decoded.
    pub fn is_plain(&self) -> bool {
        self.output == Output { format: WireFormat::Json, pretty: false, transform: Transform::None }
    }

    /// The same in compact JSON.
    pub fn in_json(&self) -> Self {
        let output = Output { format: WireFormat::Json, pretty: false, ..self.output };
        Self { output, ..self.clone() }
    }
}

/// A response with one object.
pub fn one(status: StatusCode, object: &Stored, view: &ObjectView, headers: &HeaderMap) -> Response<Body> {
    let Output { format, transform, pretty } = view.output;
    let body = match (format, transform) {
        (WireFormat::Json, Transform::None) if !pretty => stored_with_newline(object),
        (WireFormat::Json, _) if !pretty => with_newline(&object_bytes(object, view, true)),
        (WireFormat::Json, _) => pretty::indent(&object_bytes(object, view, true)),
        _ => object_bytes(object, view, true),
    };
    response::bytes(status, view.output.format.media_type(), body, headers)
}

/// The object as bytes: shared ones if it is not transformed. `headers` puts column definitions in a table.
pub fn object_bytes(stored: &Stored, view: &ObjectView, headers: bool) -> Bytes {
    let shown = match view.output.transform {
        Transform::None => return plain(stored, view),
        Transform::Table(version) => table_of_one(stored, view, version, headers),
        Transform::Partial(version) | Transform::PartialList(version) => {
            if view.output.format == WireFormat::Protobuf {
                let meta_version = format!("meta.k8s.io/{version}");
                let raw = protobuf::partial(&codec::metadata_protobuf(view.kind.as_ref(), &stored.object()));
                return protobuf::envelope(&meta_version, "PartialObjectMetadata", &raw);
            }
            partial(&stored.object(), version)
        }
    };
    in_format(shown.to_string().into(), Output { pretty: false, ..view.output })
}

fn plain(stored: &Stored, view: &ObjectView) -> Bytes {
    match view.output.format {
        WireFormat::Json => stored.json(),
        WireFormat::Yaml => yaml(&stored.json()),
        WireFormat::Protobuf => stored.protobuf(|object| codec::object_protobuf(view.kind.as_ref(), object)),
    }
}

/// Metadata only.
pub fn partial(object: &Object, version: &str) -> Value {
    partial_object_metadata(object, &format!("meta.k8s.io/{version}"))
}

fn stored_with_newline(stored: &Stored) -> Bytes {
    let mut out = BytesMut::with_capacity(stored.json_len() + 1);
    stored.write_json(&mut out);
    out.put_u8(b'\n');
    out.freeze()
}

/// Returns the value of `includeObject`; 400 for an unknown one.
pub fn include_object(query: &Query) -> Result<IncludeObject, ApiError> {
    let asked = query.get("includeObject").unwrap_or_default();
    IncludeObject::parse(asked).ok_or_else(|| {
        ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {asked:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))
    })
}

/// A table of one row.
fn table_of_one(stored: &Stored, view: &ObjectView, version: &str, headers: bool) -> Value {
    let object = stored.object();
    let meta = table::list_meta(object.resource_version(), "", None);
    let api_version = format!("meta.k8s.io/{version}");
    let mut table =
        table::table(view.kind.as_ref(), [&*object], meta, table_options(view, &api_version, headers));
    if !headers {
        table["columnDefinitions"] = Value::Null;
    }
    table
}

/// One row of a list.
pub fn table_row(stored: &Stored, view: &ObjectView, version: &str) -> Value {
    let api_version = format!("meta.k8s.io/{version}");
    table::row(view.kind.as_ref(), &stored.object_not_kept(), table_options(view, &api_version, false))
}

fn table_options<'a>(view: &ObjectView, api_version: &'a str, headers: bool) -> TableOptions<'a> {
    TableOptions { api_version, include: view.include, headers, now: view.now }
}
