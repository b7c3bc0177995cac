//! How a schema splits a value into what managed fields own: not at all, by field, or by list item, each of which has a
//! path element.

use std::borrow::Cow;

use serde_json::Value;

use crate::managed_fields::path::PathElement;
use crate::schema::{ListType, Schema, Shape};

/// How managed fields split a value.
pub(super) enum Decomposition<'a> {
    /// Not at all.
    Leaf,
    /// By struct field or map entry.
    Fields,
    /// By list item.
    Items(&'a Schema, &'a [&'static str]),
}

/// Returns how the values of a schema are split.
pub(super) fn decomposition(schema: &Schema) -> Decomposition<'_> {
    match &schema.shape {
        Shape::Object(object) if object.atomic => Decomposition::Leaf,
        Shape::Object(_) | Shape::Map(_) => Decomposition::Fields,
        Shape::List(items, ListType::Set) => Decomposition::Items(items, &[]),
        Shape::List(items, ListType::Map(keys)) => Decomposition::Items(items, keys),
        _ => Decomposition::Leaf,
    }
}

/// Whether the value is absent, null, or an empty map or list.
pub(super) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}

/// Returns the element that identifies `item`.
///
/// # Errors
/// If the item has no identity: why.
pub(super) fn item_element(
    item: &Value,
    items: &Schema,
    keys: &[&'static str],
) -> Result<PathElement, String> {
    if keys.is_empty() { set_element(item) } else { key_element(item, items, keys) }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        scalar => Ok(PathElement::Value(scalar.clone())),
    }
}

fn key_element(item: &Value, items: &Schema, keys: &[&'static str]) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let value = |key: &str| map.get(key).cloned().or_else(|| default_of(items, key));
    let mut fields: Vec<_> = keys.iter().filter_map(|k| value(k).map(|v| (Cow::Borrowed(*k), v))).collect();
    if fields.is_empty() {
        let keys: Vec<_> = keys.iter().map(|k| format!("{k:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(PathElement::Key(fields))
}

/// Returns the value of a key that an item omits: its default, or Go's zero value if its field is always written, as
/// in Kubernetes' own schemas.
fn default_of(items: &Schema, key: &str) -> Option<Value> {
    let Shape::Object(shape) = &items.shape else { return None };
    let field = shape.fields.iter().find(|field| field.name == key)?;
    let zero = match &field.schema.shape {
        Shape::String => Value::from(""),
        Shape::Int32 | Shape::Int64 => Value::from(0),
        Shape::Boolean => Value::from(false),
        _ => Value::Null,
    };
    let default = field.schema.default.and_then(|text| serde_json::from_str(text).ok());
    default.or_else(|| (field.always && !zero.is_null()).then_some(zero))
}
