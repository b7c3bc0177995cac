//! Bodies as an event carries them: in JSON, whatever format they were sent in.

use drydock_machinery::decode::{self, Format};
use serde::de::IgnoredAny;
use serde_json::Value;

/// A body's JSON without line breaks. The log has a line for an event, so a break that a client sent would end the
/// event, and what follows it would be read as an event of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedBody(String);

impl LoggedBody {
    /// An object, a list of them, or a table of them, in JSON; without their managedFields if those are left out.
    pub fn of_object(json: &[u8], omit_managed_fields: bool) -> Option<Self> {
        if omit_managed_fields { Self::without_managed_fields(json) } else { Self::of_json(json) }
    }

    /// Takes JSON unchanged except for line breaks; `None` if it is not JSON.
    fn of_json(json: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(json).ok()?;
        serde_json::from_str::<IgnoredAny>(text).ok()?;
        // A string of JSON has no raw control characters, so these stand between tokens.
        Some(Self(text.replace(['\n', '\r'], "")))
    }

    /// Takes JSON or YAML that a client has sent; `None` if it is neither.
    pub fn of_sent(sent: &[u8]) -> Option<Self> {
        Self::of_json(sent).or_else(|| Some(Self::of_value(&decode::decode_value(sent, Format::Yaml).ok()?)))
    }

    fn without_managed_fields(json: &[u8]) -> Option<Self> {
        let mut value: Value = serde_json::from_slice(json).ok()?;
        drop_managed_fields(&mut value);
        for item in value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
            drop_managed_fields(item);
        }
        for row in value.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            row.get_mut("object").map(drop_managed_fields);
        }
        Some(Self::of_value(&value))
    }

    /// The JSON.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn of_value(value: &Value) -> Self {
        Self(value.to_string())
    }
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
        LoggedBody::without_managed_fields(json.as_bytes()).map_or_else(String::new, |body| body.0)
    }

    fn sent(body: &str) -> Option<String> {
        LoggedBody::of_sent(body.as_bytes()).map(|body| body.0)
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
        assert_eq!(sent("a: [1]\n").as_deref(), Some(r#"{"a":[1]}"#));
        assert_eq!(sent("a: ["), None);
        assert_eq!(sent("a: \"one\\ntwo\"\n").as_deref(), Some(r#"{"a":"one\ntwo"}"#));
    }

    #[test]
    fn no_body_has_a_second_line() {
        let forged = "{\"x\":\n{\"kind\":\"Event\", \"auditID\":\"1\"}\r\n}\r";
        assert_eq!(sent(forged).as_deref(), Some(r#"{"x":{"kind":"Event", "auditID":"1"}}"#));
        // A raw break in a string is no JSON, and YAML folds it.
        assert_eq!(sent("{\"x\": \"a\nb\"}").as_deref(), Some(r#"{"x":"a b"}"#));
    }
}
