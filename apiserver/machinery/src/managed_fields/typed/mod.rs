//! Operations on JSON values with a schema: the paths of a value, the differences of two values, merging and
//! removing.
//!
//! Atomic structs, maps and lists are one leaf; other lists are sets of scalars or maps by key.

mod compare;
mod list;
mod merge;
mod remove;
mod to_set;
mod validate;

pub(super) use compare::compare_without;
pub use compare::{Comparison, compare};
pub use remove::{extract_items, remove_items};
pub use to_set::to_set;

pub(super) use merge::merge;
pub(super) use validate::validate;

use serde_json::Value;

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
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}
