//! Checks that an applied configuration fits the schema: unlike other objects, it was not decoded by the schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::decomposition::{Decomposition, decomposition, item_element};
use super::to_set::descend;
use crate::field::{SHOWN_MAX, beginning};
use crate::go_format::{plain, syntax, type_name};
use crate::managed_fields::path::PathElement;
use crate::object::Object;
use crate::schema::{ListType, Schema, Shape};

/// Maximum number of errors reported; a configuration may have one for each byte.
const MAX_ERRORS: usize = 32;

/// Fails with every error as `.path: why`.
pub(in crate::managed_fields) fn validate(object: &Object, schema: &Schema) -> Result<(), String> {
    let mut errors = Vec::new();
    walk_fields(&object.0, schema, &mut String::new(), &mut errors);
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.swap_remove(0)),
        _ => Err(errors.iter().fold("errors:".to_owned(), |all, e| format!("{all}\n  {e}"))),
    }
}

fn walk(value: &Value, schema: &Schema, path: &mut String, errors: &mut Vec<String>) {
    match (&schema.shape, value) {
        (_, Value::Null) | (Shape::Raw, Value::Object(_)) => {}
        (Shape::Object(_) | Shape::Map(_), Value::Object(map)) => walk_fields(map, schema, path, errors),
        (Shape::List(items, kind), Value::Array(list)) => walk_list(list, items, kind, schema, path, errors),
        (shape, value) => errors.extend(misfit(shape, value).map(|why| message(path, &why))),
    }
}

fn walk_fields(map: &Map<String, Value>, schema: &Schema, path: &mut String, errors: &mut Vec<String>) {
    for (name, value) in map {
        match descend(schema, name) {
            _ if errors.len() >= MAX_ERRORS => return,
            Some((element, below)) => within(path, &element, |path| walk(value, below, path, errors)),
            None => {
                // The rest of the map is not checked.
                let element = PathElement::entry(name);
                within(path, &element, |path| errors.push(message(path, "field not declared in schema")));
                return;
            }
        }
    }
}

fn walk_list(
    list: &[Value],
    items: &Schema,
    kind: &ListType,
    schema: &Schema,
    path: &mut String,
    errors: &mut Vec<String>,
) {
    let keys: &[&'static str] =
        if let Decomposition::Items(_, keys) = decomposition(schema) { keys } else { &[] };
    let mut seen = BTreeSet::new();
    for (index, item) in list.iter().enumerate() {
        if errors.len() >= MAX_ERRORS {
            return;
        }
        let element = match kind {
            ListType::Atomic => PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX)),
            ListType::Set | ListType::Map(_) => match item_element(item, items, keys) {
                Ok(element) => element,
                Err(why) => return errors.push(message(path, &format!("element {index}: {why}"))),
            },
        };
        if !seen.insert(element.clone()) {
            errors.push(message(path, &format!("duplicate entries for key {element}")));
        }
        within(path, &element, |path| walk(item, items, path, errors));
    }
}

fn within(path: &mut String, element: &PathElement, f: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(&element.to_string());
    f(path);
    path.truncate(length);
}

fn message(path: &str, why: &str) -> String {
    let (path, why) = (beginning(path, SHOWN_MAX), beginning(why, SHOWN_MAX));
    if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") }
}

/// Returns the message of structured-merge-diff, which prints the value as Go prints a pointer to its wrapper.
fn misfit(shape: &Shape, value: &Value) -> Option<String> {
    let wanted = match (shape, value) {
        (Shape::Boolean, Value::Bool(_))
        | (Shape::Int32 | Shape::Int64, Value::Number(_))
        | (Shape::String | Shape::Bytes, Value::String(_))
        // A string with a format is an untyped scalar in the schema that managed fields use (kube-openapi,
        // schemaconv).
        | (Shape::Time | Shape::MicroTime, Value::Number(_) | Value::String(_) | Value::Bool(_))
        // Its published schema has no single type: any value passes here, and the conversion decides.
        | (Shape::IntOrString, _) => return None,
        (Shape::Int32 | Shape::Int64, _) => {
            return Some(format!("expected numeric (int or float), got {}", type_name(value)));
        }
        (Shape::String | Shape::Bytes, _) => {
            let value = syntax(value);
            return Some(format!("expected string, got &value.valueUnstructured{{Value:{value}}}"));
        }
        (Shape::Boolean, _) => "boolean",
        (Shape::Time | Shape::MicroTime, _) => "any scalar",
        (Shape::Object(_) | Shape::Map(_) | Shape::Raw, _) => "map",
        (Shape::List(..), _) => "list",
    };
    Some(format!("expected {wanted}, got &{{{}}}", plain(value)))
}
