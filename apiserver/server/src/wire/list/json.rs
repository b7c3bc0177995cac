//! A list as compact JSON: a head, the objects' own bytes, a tail.

use bytes::{BufMut, Bytes, BytesMut};
use drydock_machinery::table::list_meta;
use drydock_serving::wire::negotiate::Transform;
use drydock_storage::storage::Stored;
use drydock_storage::work_meter::STEP;
use serde_json::Value;

use super::pieces::{PIECE, Steps};
use super::{ListPage, Objects};
use crate::wire::object::{ObjectView, partial, table_row};

/// Makes a list as compact JSON.
pub struct Json {
    /// Absent after the first step.
    head: Option<Bytes>,
    objects: Objects,
    item: Item,
    /// Before the next item.
    separator: &'static [u8],
}

impl Json {
    /// A page in this view.
    pub fn new(page: &ListPage, view: ObjectView) -> Self {
        let (head, objects) = (head(page, &view), page.items.iter());
        Self { head: Some(head), objects, item: Item::new(view), separator: b"" }
    }
}

impl Steps for Json {
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let (end, mut decoded) = (out.len() + PIECE, 0);
        if let Some(head) = self.head.take() {
            out.extend_from_slice(&head);
        }
        while out.len() < end && decoded < STEP {
            let Some(stored) = self.objects.next() else {
                out.put_slice(b"]}\n");
                return false;
            };
            out.put_slice(std::mem::replace(&mut self.separator, b","));
            decoded += self.item.write(&stored, out);
        }
        true
    }
}

/// Writes the items of a list.
pub struct Item {
    view: ObjectView,
    /// The beginning of every stored object's JSON, its type, which an item of a list does not have.
    prefix: Bytes,
}

impl Item {
    /// Items in this view.
    pub fn new(view: ObjectView) -> Self {
        let (version, kind) = (Value::from(view.api_version()), Value::from(view.kind.names().kind));
        let prefix = format!(r#"{{"apiVersion":{version},"kind":{kind},"#).into();
        Self { view, prefix }
    }

    /// Appends an item. Returns how many bytes were decoded for it: 0 if its own bytes could be copied.
    pub fn write(&self, stored: &Stored, out: &mut BytesMut) -> usize {
        let own = match self.view.output.transform {
            Transform::Table(version) => table_row(stored, &self.view, version),
            Transform::Partial(version) | Transform::PartialList(version) => {
                partial(&stored.object_not_kept(), version)
            }
            Transform::None => {
                out.put_u8(b'{');
                if stored.write_without_prefix(&self.prefix, out) {
                    return 0;
                }
                out.truncate(out.len() - 1);
                let mut item = stored.object_not_kept().to_tree();
                item.remove("kind");
                item.remove("apiVersion");
                Value::Object(item)
            }
        };
        out.put_slice(own.to_string().as_bytes());
        stored.json_len()
    }
}

/// `{"kind":...,"apiVersion":...,"metadata":{...},"items":[`, or what a table has in its place.
pub fn head(page: &ListPage, view: &ObjectView) -> Bytes {
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

/// The field that has a list's items.
pub fn items_field(view: &ObjectView) -> &'static str {
    match view.output.transform {
        Transform::Table(_) => "rows",
        _ => "items",
    }
}
