//! The objects that are written: a number each, which no two writes share, in an annotation.

use anyhow::{Context, Result};
use drydock_machinery::Object;
use drydock_storage::backend::KeyValue;
use serde_json::{Value as Json, json};

use crate::record::{Pair, Value};

/// The prefix of all keys that are written, and the group and resource from which typed storage
/// makes it.
pub const PREFIX: &str = "/registry/test.example/widgets/";
pub const GROUP: &str = "test.example";
pub const RESOURCE: &str = "widgets";
/// The key that guards others.
pub const GUARD: &str = "/registry/test.example/widgets/fence/leader";
/// The annotation.
pub const ANNOTATION: &str = "history";
/// A label that changes with the number.
pub const PARITY: &str = "parity";
/// The value of the label for an even number.
pub const EVEN: &str = "even";

/// The objects' keys below the prefix: few, so that clients meet.
pub fn keys() -> Vec<String> {
    let names = ["a/0", "a/1", "a/2", "ab/0", "ab/1", "b/0", "b/1", "b/2"];
    names.map(str::to_owned).to_vec()
}

/// An object by its key below the prefix.
pub fn object(key: &str, value: Value) -> Object {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    let parity = if value.is_multiple_of(2) { EVEN } else { "odd" };
    let object = json!({
        "apiVersion": "test.example/v1", "kind": "Widget",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {PARITY: parity}, "annotations": {ANNOTATION: value.to_string()},
        },
    });
    match object {
        Json::Object(map) => Object::from(map),
        _ => Object::default(),
    }
}

/// The number in an object.
pub fn value_of(object: &serde_json::Map<String, Json>) -> Option<Value> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?.parse().ok()
}

/// A pair of the backend.
pub fn pair(pair: &KeyValue) -> Result<Pair> {
    let object = serde_json::from_slice(&pair.value).with_context(|| pair.key.clone())?;
    let value = value_of(&object).with_context(|| format!("no number in {}", pair.key))?;
    let (modified, created) = (pair.mod_revision.0, Some(pair.create_revision.0));
    Ok(Pair { key: pair.key.clone(), value, modified, created })
}
