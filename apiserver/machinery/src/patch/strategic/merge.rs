//! Merges a patch into a map: first the directives for the map, then each field of the patch.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::error::{BAD_DELETION, BAD_RETAIN_KEYS, Error, INCOMPARABLE, Result};
use super::{list, lookup, order};
use crate::error::ApiError;
use crate::go_format::type_name;
use crate::schema::{PatchStrategy, Schema};

/// The names of directives.
pub(super) const DIRECTIVE: &str = "$patch";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ORDER: &str = "$setElementOrder";

/// Merges `patch` into `doc`, an object of this schema.
///
/// Changes `patch` as Go does, because errors about the result show it: removes the directives that were applied, and
/// the nulls in new values.
///
/// # Errors
/// 400 for directives of the wrong form; 500, as Kubernetes answers it, for a patch that does not fit the schema.
pub fn strategic_merge_patch(
    doc: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: &Schema,
) -> std::result::Result<(), ApiError> {
    merge_map(doc, patch, schema).map_err(ApiError::from)
}

/// Merges `patch` into `original` (apimachinery: mergeMap).
pub(super) fn merge_map(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: &Schema,
) -> Result<()> {
    if patch.contains_key(DIRECTIVE) {
        return replace_map(original, patch);
    }
    retain_keys(original, patch)?;
    order::set_orders(original, patch, schema)?;
    for (key, value) in patch.iter_mut() {
        match key.strip_prefix(DELETE_FROM) {
            Some(rest) => {
                let name = rest.strip_prefix('/').ok_or(BAD_DELETION)?;
                delete_from(original, name, value, schema)?;
            }
            None => merge_field(original, key, value, schema)?,
        }
    }
    Ok(())
}

/// Applies `$patch` in a map, which concerns the whole map.
fn replace_map(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    match patch.get(DIRECTIVE) {
        Some(Value::String(directive)) if directive == "replace" => {
            patch.remove(DIRECTIVE);
            original.clone_from(patch);
            Ok(())
        }
        Some(Value::String(directive)) if directive == "delete" => {
            original.clear();
            Ok(())
        }
        directive => Err(Error::unknown_directive(directive.unwrap_or(&Value::Null), patch)),
    }
}

/// Applies `$retainKeys`, which names all fields that stay. Fails if the patch sets another one.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(BAD_RETAIN_KEYS) };
    if retained.iter().any(|key| key.is_array() || key.is_object()) {
        return Err(INCOMPARABLE);
    }
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    let mut set = patch.iter().filter(|(key, value)| !value.is_null() && !directive(key));
    if set.any(|(key, _)| !retained.contains(key.as_str())) {
        return Err(BAD_RETAIN_KEYS);
    }
    original.retain(|key, _| retained.contains(key.as_str()));
    Ok(())
}

fn merge_field(
    original: &mut Map<String, Value>,
    name: &str,
    value: &mut Value,
    schema: &Schema,
) -> Result<()> {
    match (original.get_mut(name), value) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Object(present)), Value::Object(patch)) => {
            let schema = lookup::field(schema, name)?;
            match schema.patch {
                PatchStrategy::Replace => present.clone_from(patch),
                _ => merge_map(present, patch, schema)?,
            }
        }
        (Some(Value::Array(present)), Value::Array(patch)) => {
            list::merge(present, patch, &lookup::list(schema, name)?)?;
        }
        (_, value) => {
            discard_nulls(value);
            set(original, name, value);
        }
    }
    Ok(())
}

/// Applies `$deleteFromPrimitiveList/name`, which names items to remove. A value that is no list removes nothing, but
/// a scalar replaces a scalar of its type.
fn delete_from(
    original: &mut Map<String, Value>,
    name: &str,
    value: &mut Value,
    schema: &Schema,
) -> Result<()> {
    match (original.get_mut(name), value) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Array(present)), Value::Array(items)) => {
            list::delete(present, items, &lookup::list(schema, name)?)?;
        }
        (Some(Value::Object(_)), value @ Value::Object(_)) => merge_field(original, name, value, schema)?,
        (Some(present), value) if type_name(present) == type_name(value) => *present = value.clone(),
        _ => {}
    }
    Ok(())
}

fn set(original: &mut Map<String, Value>, name: &str, value: &mut Value) {
    match without_directives(value) {
        Some(value) => original.insert(name.to_owned(), value),
        None => original.remove(name),
    };
}

/// Returns a new value without the maps in it that have `$patch`; `None` if it is one itself.
pub(super) fn without_directives(value: &mut Value) -> Option<Value> {
    match value {
        Value::Array(items) => Some(items.iter_mut().filter_map(|v| prune(v).then(|| v.clone())).collect()),
        value => prune(value).then(|| value.clone()),
    }
}

/// Removes the maps with `$patch` from a value. Returns `false` if it is one itself.
fn prune(value: &mut Value) -> bool {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => false,
        Value::Object(map) => {
            map.retain(|_, value| prune(value));
            true
        }
        Value::Array(items) => {
            items.retain_mut(prune);
            true
        }
        _ => true,
    }
}

/// Removes the null fields of a new value.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}
