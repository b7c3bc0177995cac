//! Removes paths from a value, or everything except them.

use serde_json::{Map, Value};

use super::decomposition::{Decomposition, decomposition, item_element};
use super::to_set::descend;
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;
use crate::object::Object;
use crate::schema::Schema;

/// Removes the paths of `set` from `object`. A value that becomes empty becomes null. An atomic value that has paths
/// of the set below it is removed as a whole.
pub fn remove_items(object: &mut Object, set: &Set, schema: &Schema) {
    remove_fields(&mut object.0, set, schema);
}

/// Returns the parts of `object` that the paths of `set` cover.
pub fn extract_items(object: &Object, set: &Set, schema: &Schema) -> Object {
    Object::raw(extract_fields(&object.0, set, schema))
}

fn extract_fields(map: &Map<String, Value>, set: &Set, schema: &Schema) -> Map<String, Value> {
    let extract = |(name, value): (&String, &Value)| {
        let (element, schema) = descend(schema, name)?;
        match below(set, &element) {
            Some(subset) => Some((name.clone(), extract(value, subset, schema))),
            None => set.has_member(&element).then(|| (name.clone(), member(value, schema))),
        }
    };
    map.iter().filter_map(extract).collect()
}

fn extract(value: &Value, set: &Set, schema: &Schema) -> Value {
    match (decomposition(schema), value) {
        (Decomposition::Fields, Value::Object(map)) => Value::Object(extract_fields(map, set, schema)),
        (Decomposition::Items(items, keys), Value::Array(list)) => {
            let extract = |item: &Value| {
                let element = item_element(item, items, keys).ok()?;
                match below(set, &element) {
                    Some(subset) => Some(extract(item, subset, items)),
                    None => set.has_member(&element).then(|| item.clone()),
                }
            };
            Value::Array(list.iter().filter_map(extract).collect())
        }
        _ => value.clone(),
    }
}

/// Returns a member by itself: a leaf, or a struct or list of which nothing else is covered.
fn member(value: &Value, schema: &Schema) -> Value {
    match (decomposition(schema), value) {
        (Decomposition::Fields, Value::Object(_)) => Value::Object(Map::new()),
        _ => value.clone(),
    }
}

/// Removes the paths of `set` below a value. Returns whether anything is left.
fn remove(value: &mut Value, set: &Set, schema: &Schema) -> bool {
    match (decomposition(schema), value) {
        (Decomposition::Fields, Value::Object(map)) => remove_fields(map, set, schema),
        (Decomposition::Items(items, keys), Value::Array(list)) => {
            list.retain_mut(|item| {
                let Ok(element) = item_element(item, items, keys) else { return true };
                !set.has_member(&element)
                    && below(set, &element).is_none_or(|subset| remove(item, subset, items))
            });
            !list.is_empty()
        }
        (Decomposition::Leaf, Value::Object(_) | Value::Array(_)) => false,
        _ => true,
    }
}

fn remove_fields(map: &mut Map<String, Value>, set: &Set, schema: &Schema) -> bool {
    map.retain(|name, value| {
        let Some((element, schema)) = descend(schema, name) else { return true };
        if set.has_member(&element) {
            return false;
        }
        if below(set, &element).is_some_and(|subset| !remove(value, subset, schema)) {
            // This differs from an absent field: the field itself was not to be removed.
            *value = Value::Null;
        }
        true
    });
    !map.is_empty()
}

fn below<'a>(set: &'a Set, element: &PathElement) -> Option<&'a Set> {
    set.child(element).filter(|subset| !subset.is_empty())
}
