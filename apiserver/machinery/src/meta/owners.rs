//! Validates `metadata.ownerReferences`.

use std::cell::LazyCell;

use serde_json::{Map, Value};

use super::member;
use crate::field::{Error, ErrorList, Path, ShownValue, beginning, is_full};

/// Maximum number of bytes of a kind or a name in an error; no valid one is as long.
const NAME_SHOWN: usize = 1024;

pub(super) fn validate(references: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    let all = LazyCell::new(|| ShownValue::of(&references.into()));
    for reference in references.iter().filter_map(Value::as_object) {
        if is_full(&errors) {
            break;
        }
        errors.extend(validate_one(reference, path));
        if reference.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let part = |field: &str| beginning(member(reference, field), NAME_SHOWN);
        let name = format!("{}/{}", part("kind"), part("name"));
        match &controller {
            Some(first) => errors.push(second_controller((*all).clone(), first, &name, path)),
            None => controller = Some(name),
        }
    }
    errors
}

fn validate_one(reference: &Map<String, Value>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let api_version = member(reference, "apiVersion");
    if version(api_version).is_empty() {
        errors.push(Error::invalid(path.child("apiVersion"), api_version, "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        if member(reference, field).is_empty() {
            errors.push(Error::invalid(path.child(field), "", "must not be empty"));
        }
    }
    if api_version == "v1" && member(reference, "kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(Error::invalid(path.clone(), Value::Object(reference.clone()), detail));
    }
    errors
}

/// Returns the version of `group/version`; empty if Kubernetes cannot parse it.
fn version(api_version: &str) -> &str {
    match api_version.splitn(3, '/').collect::<Vec<_>>().as_slice() {
        [version] | [_, version] => version,
        _ => "",
    }
}

fn second_controller(all: ShownValue, first: &str, second: &str, path: &Path) -> Error {
    let detail = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
    );
    Error::invalid_shown(path.clone(), all, detail)
}
