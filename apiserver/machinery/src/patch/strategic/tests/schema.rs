//! The schema for tests of strategic merge patches: lists of every strategy, nested.

use crate::schema::common::{list, object, optional, string, strings_map, text};
use crate::schema::{Field, ListType, PatchStrategy, Schema, Shape};

/// `metadata{finalizers, owners, labels}`, `spec{parts[{name, count, ports, tags, opts}], atoms, words, labels, size, whole}`
pub(super) fn thing() -> Schema {
    let port = object("", "x.Port", vec![integer("port", 1), text("note", 2, "")]);
    let part = vec![
        text("name", 1, ""),
        integer("count", 2),
        optional("ports", 3, list("", port, ListType::Map(&["port"]))),
        merged("tags", 4),
        optional("opts", 5, list("", string(), ListType::Atomic)),
    ];
    let spec = vec![
        optional("parts", 1, list("", object("", "x.Part", part), ListType::Map(&["name"]))),
        optional("atoms", 2, list("", owner(), ListType::Atomic)),
        optional("words", 3, list("", string(), ListType::Set)),
        optional("labels", 4, strings_map("")),
        integer("size", 5),
        optional("whole", 6, Schema { patch: PatchStrategy::Replace, ..owner() }),
    ];
    let metadata = vec![
        merged("finalizers", 1),
        optional("owners", 2, list("", owner(), ListType::Map(&["uid"]))),
        optional("labels", 3, strings_map("")),
    ];
    let fields = vec![
        optional("metadata", 1, object("", "x.Meta", metadata)),
        optional("spec", 2, object("", "x.Spec", spec)),
    ];
    object("", "x.Thing", fields)
}

fn owner() -> Schema {
    object("", "x.Owner", vec![text("uid", 1, ""), text("name", 2, "")])
}

fn integer(name: &'static str, number: u32) -> Field {
    optional(name, number, Schema::new("", Shape::Int32))
}

/// A set that patches add to.
fn merged(name: &'static str, number: u32) -> Field {
    let set = list("", string(), ListType::Set);
    optional(name, number, Schema { patch: PatchStrategy::Merge, ..set })
}
