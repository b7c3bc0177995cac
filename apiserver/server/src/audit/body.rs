//! Bodies as an event carries them: JSON, whatever they came or went as.

use drydock_machinery::decode::{self, Format};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// JSON as it is.
pub fn raw(json: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice(json).ok()
}

/// JSON or YAML of a client's; nothing if it is neither.
pub fn as_json(sent: &[u8]) -> Option<Box<RawValue>> {
    raw(sent).or_else(|| to_raw_value(&decode::decode_value(sent, Format::Yaml).ok()?).ok())
}

/// An object, a list of them, or a table of them, without their managedFields.
pub fn without_managed_fields(json: &[u8]) -> Option<Box<RawValue>> {
    let mut value: Value = serde_json::from_slice(json).ok()?;
    drop_managed_fields(&mut value);
    for item in value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        drop_managed_fields(item);
    }
    for row in value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
        row.get_mut("object").map(drop_managed_fields);
    }
    to_raw_value(&value).ok()
}

fn drop_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(json: &str) -> String {
        without_managed_fields(json.as_bytes()).map_or_else(String::new, |raw| raw.get().to_owned())
    }

    #[test]
    fn managed_fields_are_left_out_of_objects_lists_and_tables() {
        let object = r#"{"metadata":{"managedFields":[1],"name":"a"}}"#;
        let bare = r#"{"metadata":{"name":"a"}}"#;
        assert_eq!(without(object), bare);
        assert_eq!(without(&format!(r#"{{"items":[{object}]}}"#)), format!(r#"{{"items":[{bare}]}}"#));
        let table = |object: &str| format!(r#"{{"rows":[{{"object":{object}}}]}}"#);
        assert_eq!(without(&table(object)), table(bare));
    }

    #[test]
    fn yaml_is_written_as_json() {
        let json = as_json(b"a: [1]\n").map(|raw| raw.get().to_owned());
        assert_eq!(json.as_deref(), Some(r#"{"a":[1]}"#));
        assert!(as_json(b"a: [").is_none());
    }
}
