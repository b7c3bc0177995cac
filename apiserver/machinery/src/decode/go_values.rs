//! Values as Go marshals them: zero values for fields that were not given, and byte fields as base64.

use base64::engine::general_purpose::STANDARD;
use base64::{DecodeError, Engine};
use serde_json::{Map, Value};

use crate::schema::{Field, Schema, Shape};

/// Completes a field as Go marshals it: with `omitempty` an empty value is removed, without it an absent one gets its
/// zero value. A pointer is kept as given. Then the schema's default applies. `given` says whether the field may be
/// present, which saves the look-up. Returns the value that was filled in.
pub(super) fn complete_field<'o>(
    object: &'o mut Map<String, Value>,
    field: &Field,
    given: bool,
) -> Option<&'o Value> {
    if let Some(value) = given.then(|| object.get(field.name)).flatten() {
        if field.always || field.is_pointer() || !is_empty(value, &field.schema.shape) {
            return None;
        }
        object.remove(field.name);
    }
    let default = field.schema.default.and_then(|text| serde_json::from_str(text).ok());
    match default.or_else(|| field.always.then(|| zero(&field.schema))) {
        None | Some(Value::Null) => None,
        Some(value) => {
            object.insert(field.name.to_owned(), value);
            object.get(field.name)
        }
    }
}

fn is_empty(value: &Value, shape: &Shape) -> bool {
    match (value, shape) {
        (Value::String(text), _) => text.is_empty(),
        (Value::Array(items), _) => items.is_empty(),
        (Value::Object(map), Shape::Map(_)) => map.is_empty(),
        (Value::Number(number), _) => number.as_i64() == Some(0),
        (Value::Bool(set), _) => !set,
        _ => false,
    }
}

/// Returns Go's zero value; null for a nil pointer, list or map.
pub(super) fn zero(schema: &Schema) -> Value {
    match &schema.shape {
        Shape::Boolean => false.into(),
        Shape::Int32 | Shape::Int64 | Shape::IntOrString => 0.into(),
        Shape::String | Shape::Bytes => "".into(),
        Shape::Object(shape) => {
            let mut object = Map::new();
            for field in &shape.fields {
                complete_field(&mut object, field, false);
            }
            Value::Object(object)
        }
        Shape::Time | Shape::MicroTime | Shape::Raw | Shape::Map(_) | Shape::List(..) => Value::Null,
    }
}

/// Returns the text of a byte field, which is base64 in JSON, as the server writes it. Like Go, ignores line breaks,
/// and names the offset of an error.
pub(super) fn base64_text(text: &str) -> Result<String, String> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = STANDARD.decode(&joined);
    let bytes = decoded
        .map_err(|error| format!("illegal base64 data at input byte {}", stopped_at(&joined, &error)))?;
    Ok(STANDARD.encode(bytes))
}

/// Returns the offset at which Go's decoder stops: the first character outside the base64 alphabet, or the start of
/// an incomplete quantum.
fn stopped_at(text: &str, error: &DecodeError) -> usize {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => *at,
        _ => text.len() / 4 * 4,
    }
}
