//! A write that changes nothing must not be stored for its time alone (apiserver handlers/fieldmanager equality.go).

use serde_json::{Map, Value};

use super::managed::entries;
use crate::object::Object;

/// `new`, with the old times in its managed fields if it equals `old` in all but them.
pub fn ignore_timestamps(mut new: Object, old: &Object) -> Object {
    if same_otherwise(&new.0, &old.0, "metadata") && same_entries(entries(&new), entries(old)) {
        let old = old.meta().and_then(|m| m.get("managedFields")).cloned();
        new.set_meta("managedFields", old);
    }
    new
}

fn same_entries(a: &[Value], b: &[Value]) -> bool {
    !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but(a, b, "time", |_, _| true))
}

fn same_otherwise(a: &Map<String, Value>, b: &Map<String, Value>, meta: &str) -> bool {
    let ignored = |a: &Value, b: &Value| same_but(a, b, "managedFields", |_, _| true);
    same_maps(a, b, meta, ignored)
}

fn same_but(a: &Value, b: &Value, field: &str, with: impl Fn(&Value, &Value) -> bool) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_maps(a, b, field, with),
        _ => a == b,
    }
}

/// Whether two maps are equal, the values of `field` being compared by `with`.
fn same_maps(
    a: &Map<String, Value>,
    b: &Map<String, Value>,
    field: &str,
    with: impl Fn(&Value, &Value) -> bool,
) -> bool {
    // From behind, where an object has its status: that is what most writes change.
    a.len() == b.len()
        && a.iter().rev().all(|(k, a)| b.get(k).is_some_and(|b| if k == field { with(a, b) } else { a == b }))
}
