//! The paths of a value, and the value without some of them.

use serde_json::{Map, Value};

use super::decomposition::{Decomposition, decomposition, item_element};
use crate::managed_fields::path::PathElement;
use crate::managed_fields::set::Set;
use crate::object::Object;
use crate::schema::{Schema, Shape};

/// Returns the paths of every leaf of `object`, every item of its sets and associative lists, and every entry of its
/// maps.
pub fn to_set(object: &Object, schema: &Schema) -> Set {
    fields(&object.0, schema).set
}

#[derive(Default)]
struct Walked {
    /// Whether the value itself is a path.
    member: bool,
    set: Set,
}

impl Walked {
    fn leaf() -> Self {
        Self { member: true, set: Set::default() }
    }
}

fn walk(value: &Value, schema: &Schema) -> Walked {
    match (decomposition(schema), value) {
        (Decomposition::Leaf, _) => Walked::leaf(),
        (Decomposition::Fields, Value::Object(map)) => fields(map, schema),
        (Decomposition::Items(items, keys), Value::Array(list)) => list_items(list, items, keys),
        _ => Walked::default(),
    }
}

fn fields(map: &Map<String, Value>, schema: &Schema) -> Walked {
    let mut set = Set::default();
    for (name, value) in map {
        let Some((element, below)) = descend(schema, name) else { continue };
        let walked = walk(value, below);
        let entry = matches!(schema.shape, Shape::Map(_));
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if walked.member || entry || empty {
            set.insert_member(element.clone());
        }
        set.insert_child(element, walked.set);
    }
    Walked { member: false, set }
}

fn list_items(list: &[Value], items: &Schema, keys: &[&'static str]) -> Walked {
    let mut found: Vec<(PathElement, &Value)> =
        list.iter().filter_map(|v| item_element(v, items, keys).ok().map(|e| (e, v))).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut set = Set::default();
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        let [(element, value), rest @ ..] = same else { continue };
        set.insert_member(element.clone());
        // Of duplicate items, only the item as a whole is owned.
        if rest.is_empty() {
            set.insert_child(element.clone(), walk(value, items).set);
        }
    }
    Walked { member: false, set }
}

/// Removes the paths of `set` from `object`. A value that becomes empty becomes null. An atomic value that has paths
/// of the set below it is removed as a whole.
pub fn remove_items(object: &mut Object, set: &Set, schema: &Schema) {
    remove_fields(&mut object.0, set, schema);
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

/// Returns the path element from a struct or map to its field or entry `name`, and its schema.
pub(super) fn descend<'a>(schema: &'a Schema, name: &str) -> Option<(PathElement, &'a Schema)> {
    match &schema.shape {
        Shape::Object(object) => {
            let field = object.fields.iter().find(|f| f.name == name)?;
            Some((PathElement::field(field.name), &field.schema))
        }
        Shape::Map(values) => Some((PathElement::entry(name), values)),
        _ => None,
    }
}
