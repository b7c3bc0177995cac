//! What server-side apply of one field costs on an object of two KiB.
//!
//! `cargo run --release -p drydock-machinery --example apply_cost`

use std::time::Instant;

use drydock_machinery::Object;
use drydock_machinery::kind::Now;
use drydock_machinery::managed_fields::{FieldManager, Set};
use drydock_machinery::schema::common::{list, meta_schema, object, optional, required_text, text};
use drydock_machinery::schema::{Field, ListType, Schema, Shape};
use serde_json::{Value, json};

const ROUNDS: u32 = 10_000;

fn main() {
    let (schema, reset) = (schema(), Set::of_fields(&[&["spec"]]));
    let manager = FieldManager {
        schema: &schema,
        api_version: "g/v1",
        kind: "Thing",
        subresource: "status",
        reset: &reset,
    };
    let now = Now::UNIX_EPOCH;
    let config = |beat: u32| json!({"apiVersion": "g/v1", "kind": "Thing", "status": {"beat": beat, "items": items()}});
    let empty =
        as_object(json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "u"}}));
    let Ok(Some(mut live)) = manager.apply(&empty, as_object(config(0)), "m", true, now) else { return };
    println!("{} bytes", live.to_json().len());
    let patches: Vec<Object> = (1..=ROUNDS).map(|beat| as_object(config(beat))).collect();
    let start = Instant::now();
    for patch in patches {
        if let Ok(Some(new)) = manager.apply(&live, patch, "m", true, now) {
            live = new;
        }
    }
    println!("{:?} an apply", start.elapsed() / ROUNDS);
}

fn schema() -> Schema {
    let item = object("", "", vec![required_text("name", 1, ""), text("message", 2, "")]);
    let status = object(
        "",
        "",
        vec![
            optional("beat", 1, Schema::new("", Shape::Int32)),
            optional("items", 2, list("", item, ListType::Map(&["name"]))),
        ],
    );
    let meta = Field { always: true, ..optional("metadata", 1, meta_schema()) };
    object("", "", vec![text("apiVersion", 0, ""), text("kind", 0, ""), meta, optional("status", 2, status)])
}

fn items() -> Vec<Value> {
    (0..8).map(|n| json!({"name": format!("worker-{n}.example.com"), "message": "working on it"})).collect()
}

fn as_object(value: Value) -> Object {
    Object(value.as_object().cloned().unwrap_or_default())
}
