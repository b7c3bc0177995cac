//! OpenAPI documents in protobuf: the messages of github.com/google/gnostic-models, into which k8s.io/kube-openapi
//! parses its JSON.
//!
//! [`v2`] and [`v3`] are tables of the messages, with those fields that our documents have. A document with another
//! field is not encoded, rather than encoded in part.

pub(super) mod v2;
pub(super) mod v3;

use serde_json::Value;

use crate::go_yaml;
use crate::protobuf::wire::{write_bytes, write_double, write_integer};

/// The fields of a message by their JSON names. Every field is written after those before it: the order is that of the
/// numbers.
pub(super) struct MessageTable {
    fields: &'static [(&'static str, u32, Type)],
    /// Number of the field of all `x-` fields; 0 if the message has none.
    extensions: u32,
}

/// The type of a field.
pub(super) enum Type {
    Text,
    Boolean,
    Integer,
    /// A number in eight bytes.
    Double,
    /// `Any{yaml = 2}`: any value as YAML.
    Any,
    Message(&'static MessageTable),
    /// A field that is repeated.
    List(&'static Type),
    /// A message with a list as its field 1, which may stand in JSON without brackets.
    Wrapped(&'static Type),
    /// A message with a list, at this number, of messages of name (1) and value (2).
    Named(u32, &'static Type),
    /// A message with one of these, the first that the value fits; with none if it fits none.
    OneOf(&'static [Choice]),
}

/// Whether a value is this one, its number and its type.
pub(super) type Choice = (fn(&Value) -> bool, u32, Type);

/// Encodes a document.
///
/// # Errors
/// The name of a field that the message lacks.
pub(super) fn encode(document: &Value, message: &MessageTable) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    for (name, number, type_) in message.fields {
        match &document[name] {
            Value::Null => {}
            value => write(&mut out, *number, value, type_, Presence::Implicit)?,
        }
    }
    let known = |name: &str| message.fields.iter().any(|(field, ..)| *field == name);
    for (name, value) in document.as_object().into_iter().flatten().filter(|(name, _)| !known(name)) {
        if message.extensions == 0 || !name.starts_with("x-") {
            return Err(name.clone());
        }
        write_named(&mut out, message.extensions, name, value, &Type::Any)?;
    }
    Ok(out)
}

/// Whether a scalar is written that is zero: proto3 leaves it out, except from a list or a oneof.
#[derive(Clone, Copy, PartialEq)]
enum Presence {
    Implicit,
    Explicit,
}

fn write(
    out: &mut Vec<u8>,
    number: u32,
    value: &Value,
    type_: &Type,
    presence: Presence,
) -> Result<(), String> {
    let written = presence == Presence::Explicit;
    let mut message = Vec::new();
    match type_ {
        Type::Text => {
            let text = value.as_str().unwrap_or_default();
            if written || !text.is_empty() {
                write_bytes(out, number, text.as_bytes());
            }
            return Ok(());
        }
        Type::Boolean | Type::Integer => {
            let integer = value.as_bool().map(i64::from).or_else(|| value.as_i64()).unwrap_or_default();
            if written || integer != 0 {
                write_integer(out, number, integer);
            }
            return Ok(());
        }
        Type::Double => {
            let double = value.as_f64().unwrap_or_default();
            if written || double != 0.0 {
                write_double(out, number, double);
            }
            return Ok(());
        }
        Type::List(items) => {
            let mut values = value.as_array().into_iter().flatten();
            return values.try_for_each(|item| write(out, number, item, items, Presence::Explicit));
        }
        Type::Any => write_bytes(&mut message, 2, go_yaml::to_yaml(value).as_bytes()),
        Type::Message(fields) => message = encode(value, fields)?,
        Type::Wrapped(items) => {
            for item in value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice) {
                write(&mut message, 1, item, items, Presence::Explicit)?;
            }
        }
        Type::Named(number, values) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                write_named(&mut message, *number, name, value, values)?;
            }
        }
        Type::OneOf(choices) => {
            if let Some((_, number, type_)) = choices.iter().find(|(fits, ..)| fits(value)) {
                write(&mut message, *number, value, type_, Presence::Explicit)?;
            }
        }
    }
    write_bytes(out, number, &message);
    Ok(())
}

fn write_named(
    out: &mut Vec<u8>,
    number: u32,
    name: &str,
    value: &Value,
    type_: &Type,
) -> Result<(), String> {
    let mut message = Vec::new();
    write_bytes(&mut message, 1, name.as_bytes());
    write(&mut message, 2, value, type_, Presence::Implicit)?;
    write_bytes(out, number, &message);
    Ok(())
}

fn is_reference(value: &Value) -> bool {
    value.get("$ref").is_some()
}

fn is_any(_: &Value) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes are those of gnostic's `ParseDocument` and `proto.Marshal` for the JSON (gnostic-models 0.7.0).
    fn assert_is_gnostics(json: &str, expected: &[u8], message: &MessageTable) {
        let document = serde_json::from_str(json).unwrap_or_default();
        let encoded = encode(&document, message).unwrap_or_default();
        let at = encoded.iter().zip(expected).take_while(|(ours, theirs)| ours == theirs).count();
        let rest = |bytes: &[u8]| {
            bytes
                .iter()
                .skip(at)
                .take(60)
                .flat_map(|byte| std::ascii::escape_default(*byte))
                .map(char::from)
                .collect::<String>()
        };
        assert!(encoded == expected, "from byte {at}: {:?} and not {:?}", rest(&encoded), rest(expected));
    }

    #[test]
    fn swagger_is_encoded_as_gnostic_encodes_it() {
        assert_is_gnostics(include_str!("v2.json"), include_bytes!("v2.pb"), &v2::DOCUMENT);
    }

    #[test]
    fn openapi_3_is_encoded_as_gnostic_encodes_it() {
        assert_is_gnostics(include_str!("v3.json"), include_bytes!("v3.pb"), &v3::DOCUMENT);
    }

    #[test]
    fn a_field_that_a_message_lacks_is_named() {
        let document = serde_json::json!({"swagger": "2.0", "info": {"title": "T", "odd": 1}});
        assert_eq!(encode(&document, &v2::DOCUMENT), Err("odd".to_owned()));
        let extended = serde_json::json!({"swagger": "2.0", "info": {"title": "T", "x-odd": 1}});
        assert_eq!(encode(&extended, &v2::DOCUMENT).map(|bytes| bytes.is_empty()), Ok(false));
    }
}
