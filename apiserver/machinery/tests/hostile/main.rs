//! Attacks with request bodies: short input that caused far more memory or time than its length.
#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod growth;
mod time;

use drydock_machinery::Object;
use drydock_machinery::kind::Names;
use drydock_machinery::schema::common::{list, meta_schema, object, optional, required_text, text};
use drydock_machinery::schema::{ListType, Schema};
use serde_json::Value;

/// Maximum number of items of `spec.few`.
const MAX_FEW_ITEMS: usize = 100;

const NAMES: Names = Names {
    group: "g.io",
    version: "v1",
    kind: "Thing",
    plural: "things",
    singular: "thing",
    short_names: &[],
    categories: &[],
    namespaced: true,
};

/// A kind with one list of each type.
fn schema() -> Schema {
    let item = || object("", "g.v1.Item", vec![required_text("name", 1, ""), text("note", 2, "")]);
    let spec = vec![
        optional("items", 1, list("", item(), ListType::Map(&["name"]))),
        optional("few", 2, list("", item(), ListType::Atomic).at_most(MAX_FEW_ITEMS)),
    ];
    let fields = vec![
        text("apiVersion", 0, ""),
        text("kind", 0, ""),
        optional("metadata", 1, meta_schema()),
        optional("spec", 2, object("", "g.v1.ThingSpec", spec)),
    ];
    object("", "g.v1.Thing", fields)
}

fn thing(metadata: Value) -> Object {
    let value = serde_json::json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": metadata});
    Object::from(value.as_object().unwrap().clone())
}
