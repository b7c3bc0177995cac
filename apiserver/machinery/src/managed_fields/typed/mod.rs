//! What a schema makes of JSON values: which paths a value has, how two values differ, what merging or removing does.
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

/// How a value is taken apart.
pub(super) enum Form<'a> {
    /// Not at all.
    Leaf,
    /// By field or entry.
    Fields,
    /// By item.
    Items(&'a Schema, &'a [&'static str]),
}

/// The form of a schema's values.
pub(super) fn form(schema: &Schema) -> Form<'_> {
    match &schema.shape {
        Shape::Object(object) if object.atomic => Form::Leaf,
        Shape::Object(_) | Shape::Map(_) => Form::Fields,
        Shape::List(items, ListType::Set) => Form::Items(items, &[]),
        Shape::List(items, ListType::Map(keys)) => Form::Items(items, keys),
        _ => Form::Leaf,
    }
}

/// An absent, null or empty map or list.
fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}
