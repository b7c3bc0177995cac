//! Puts one mistake into an object: if there were more, the host could report any of them, because it walks
//! Go's maps.

use serde_json::{Value, json};

use super::operations::{PatchPlace, is_fixed, places};
use crate::sequences::generator::Generator;

/// The object, now and then with a value that fits nowhere or a field that is not in the schema.
pub(super) fn spoiled(generator: &mut Generator, mut object: Value) -> Value {
    if !generator.one_in(5) {
        return object;
    }
    // A null is never replaced: a budget with a null for one amount would then have two.
    let places: Vec<PatchPlace> =
        places(&object).into_iter().filter(|(path, value)| !value.is_null() && !is_fixed(path)).collect();
    if places.is_empty() {
        return object;
    }
    let (path, _) = generator.one(&places);
    let mut wrong = odd(generator);
    // Our reference kinds have only those of the host's rules for metadata that the generic server has, and
    // check them once.
    if wrong.is_string() && path.starts_with("/metadata") {
        wrong = json!(false);
    }
    match object.pointer_mut(path) {
        Some(Value::Object(fields)) if generator.one_in(2) => {
            fields.insert("odd".into(), wrong);
        }
        Some(value) => *value = wrong,
        None => {}
    }
    object
}

/// A value that fits nowhere, or nearly so.
pub(super) fn odd(generator: &mut Generator) -> Value {
    generator.one(&[json!(1), json!("odd!"), json!(["a"]), json!({"a": 1}), json!(true), json!(1.5)]).clone()
}
