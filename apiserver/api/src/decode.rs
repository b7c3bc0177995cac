//! From the server's untyped objects to the structs of `types`.

use drydock_machinery::Object;
use drydock_machinery::field::{Error, ErrorList, Path};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The object as a struct; what cannot be read is one error on the whole object.
pub fn decode<T: DeserializeOwned>(object: &Object) -> Result<T, ErrorList> {
    let read = if object.0.values().any(holds_null) {
        serde_json::from_value(without_nulls(Value::Object(object.0.clone())))
    } else {
        T::deserialize(&object.0)
    };
    read.map_err(|e| {
        let path = Path::new("object");
        vec![Error {
            kind: drydock_machinery::field::ErrorType::TypeInvalid,
            path,
            value: None,
            detail: e.to_string(),
        }]
    })
}

/// Sets a top-level field to what it is in another object, or removes it.
pub fn copy_field(to: &mut Object, from: &Object, field: &str) {
    match from.0.get(field) {
        Some(value) => to.0.insert(field.to_owned(), value.clone()),
        None => to.0.remove(field),
    };
}

fn holds_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().any(holds_null),
        Value::Array(list) => list.iter().any(holds_null),
        _ => false,
    }
}

/// A null says the same as an absent field.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}
