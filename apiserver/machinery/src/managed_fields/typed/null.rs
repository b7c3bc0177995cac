//! Nulls: a configuration may own them, pruning leaves them, and in the object they stand for nothing.

use serde_json::{Map, Value};

use crate::object::Object;

/// Removes every field that is null.
pub(in crate::managed_fields) fn drop_nulls(object: &mut Object) {
    drop_fields(&mut object.0);
}

fn drop_fields(map: &mut Map<String, Value>) {
    map.retain(|_, value| !value.is_null());
    map.values_mut().for_each(drop_within);
}

fn drop_within(value: &mut Value) {
    match value {
        Value::Object(map) => drop_fields(map),
        Value::Array(items) => items.iter_mut().for_each(drop_within),
        _ => {}
    }
}
