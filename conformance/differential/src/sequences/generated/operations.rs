//! JSON patches by a generator: of places that an object has, and of places near them.

use serde_json::{Map, Value, json};

use super::spoiled::odd;
use crate::sequences::generator::Generator;

/// Most operations of a patch.
const MOST_OPERATIONS: u64 = 4;

/// A patch with places and values of an object.
pub(super) fn operations(generator: &mut Generator, object: &Value) -> Value {
    // What is known of the whole of the metadata stands where it is looked for.
    let mut places: Vec<PatchPlace> =
        places(object).into_iter().filter(|(path, _)| path != "/metadata").collect();
    places.push(("/metadata/labels".to_owned(), json!({"a": "b"})));
    let count = generator.below(MOST_OPERATIONS) + 1;
    (0..count).map(|_| operation(generator, &places)).collect()
}

/// A path, and what is there.
pub(super) type PatchPlace = (String, Value);

/// Every place in an object but its root.
pub(super) fn places(object: &Value) -> Vec<PatchPlace> {
    let mut places = Vec::new();
    walk(String::new(), object, &mut places);
    places
}

fn walk(path: String, value: &Value, places: &mut Vec<PatchPlace>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), value, places);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                walk(format!("{path}/{at}"), value, places);
            }
        }
        _ => {}
    }
    if !path.is_empty() {
        places.push((path, value.clone()));
    }
}

fn operation(generator: &mut Generator, places: &[PatchPlace]) -> Value {
    let (path, value) = generator.one(places).clone();
    let value = if generator.one_in(8) && !path.starts_with("/metadata") { odd(generator) } else { value };
    let mut operation = Map::new();
    let names = ["add", "replace", "test", "add", "add", "remove", "copy", "move"];
    let choice = if is_fixed(&path) { &names[..3] } else { &names[..] };
    let name = if generator.one_in(40) { "odd" } else { generator.one(choice) };
    let of_list = places.iter().any(|(place, value)| *place == path && value.is_array());
    operation.insert("op".into(), json!(name));
    operation.insert("path".into(), near(generator, &path, of_list).into());
    match name {
        "add" | "replace" | "test" => operation.insert("value".into(), value),
        "copy" | "move" => operation.insert("from".into(), free(generator, places).into()),
        _ => None,
    };
    operation.into()
}

/// Some kinds of the host validate finalizers, owners and labels once more. And a patch that removes the key
/// of an item removes all managed fields there, which only occurs in a kind whose keys may be left out.
pub(super) fn is_fixed(path: &str) -> bool {
    let fixed = ["/metadata/finalizers", "/metadata/ownerReferences", "/metadata/labels", "/secrets/"];
    fixed.iter().any(|at| path.starts_with(at))
}

fn free(generator: &mut Generator, places: &[PatchPlace]) -> String {
    let free: Vec<&PatchPlace> = places.iter().filter(|(path, _)| !is_fixed(path)).collect();
    generator.one(&free).0.clone()
}

/// Returns mostly the place itself, else the end of a list or a place that does not exist.
fn near(generator: &mut Generator, path: &str, of_list: bool) -> String {
    match generator.below(8) {
        0 if of_list => format!("{path}/-"),
        1 if of_list => format!("{path}/0"),
        2 => path.rsplit_once('/').map_or(String::new(), |(above, _)| format!("{above}/new")),
        _ => path.to_owned(),
    }
}
