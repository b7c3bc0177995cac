//! The migration from client-side to server-side apply, based on kubectl's annotation with the last applied
//! configuration (managedfields/internal lastappliedmanager.go, lastappliedupdater.go).

use serde_json::Value;

use super::conflict::Conflicts;
use super::set::Set;
use super::typed::{compare, to_set, validate};
use crate::meta::ANNOTATIONS_MAX;
use crate::object::Object;
use crate::schema::Schema;

/// The manager that is migrated; others opt out by their names.
pub(super) const MANAGER: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the conflicts without the fields that still have the value that client-side apply gave them.
pub(super) fn remaining(
    conflicts: Conflicts,
    live: &Object,
    schema: &Schema,
    api_version: &str,
) -> Conflicts {
    let Some(own) = owned(live, schema, api_version) else { return conflicts };
    let left = conflicts.into_iter().map(|(manager, set)| (manager, set.difference(&own)));
    left.filter(|(_, set)| !set.is_empty()).collect()
}

/// Updates the annotation, if the object has it.
pub(super) fn refresh(object: &mut Object, config: Option<String>) {
    let Some(config) = config.filter(|_| annotation(object).is_some()) else { return };
    let Some(Value::Object(annotations)) = object.meta_mut().get_mut("annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), Value::from(config));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_MAX {
        annotations.remove(ANNOTATION);
    }
}

/// Returns the value of the annotation for a configuration: without the annotation itself, as Go's encoder writes it.
pub(super) fn text(config: &Object) -> String {
    let mut config = config.clone();
    match config.meta_mut().get_mut("annotations") {
        Some(Value::Object(annotations)) => {
            annotations.remove(ANNOTATION);
            // Kubernetes converts them to a map of strings and back.
            annotations.values_mut().filter(|v| v.is_null()).for_each(|v| *v = Value::from(""));
        }
        Some(_) => config.set_meta("annotations", None),
        None => {}
    }
    let mut text = config.into_value().to_string();
    // These characters occur only in strings.
    let escapes = [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ];
    for (character, escape) in escapes {
        text = text.replace(character, escape);
    }
    text.push('\n');
    text
}

fn annotation(object: &Object) -> Option<&str> {
    let text = object.meta()?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Returns the fields that the last configuration set and that were not changed since.
fn owned(live: &Object, schema: &Schema, api_version: &str) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    let Value::Object(last) = last else { return None };
    let last = Object::raw(last);
    let same_version = last.0.get("apiVersion").and_then(Value::as_str) == Some(api_version);
    if !same_version || validate(&last, schema).is_err() {
        return None;
    }
    let changed = compare(&last, live, schema);
    let set = to_set(&last, schema).difference(&changed.modified);
    Some(set.difference(&changed.added).difference(&changed.removed))
}
