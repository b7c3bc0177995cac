//! Validates the lists of structs in metadata: `ownerReferences`, and the `managedFields` of a request.

use std::cell::LazyCell;

use serde_json::{Map, Value};

use super::member;
use crate::field::{Error, ErrorList, Path, SHOWN_MAX, ShownValue, beginning, is_full};
use crate::object::ManagedFieldsEntry;
use crate::quote::is_printable;

/// Maximum number of bytes of a kind or a name in an error; no valid one is as long.
const NAME_SHOWN: usize = 1024;
const MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;

pub(super) fn validate_owner_references(references: &[Value], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    let all = LazyCell::new(|| ShownValue::of(&references.into()));
    for reference in references.iter().filter_map(Value::as_object) {
        if is_full(&errors) {
            break;
        }
        errors.extend(validate_owner_reference(reference, path));
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

fn validate_owner_reference(reference: &Map<String, Value>, path: &Path) -> ErrorList {
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

/// Validates the entries of the metadata at `metadata`. Paths are created only for errors, because entries are hardly
/// ever wrong.
pub(super) fn validate_managed_fields(entries: &[ManagedFieldsEntry], metadata: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, entry) in entries.iter().enumerate() {
        if is_full(&errors) {
            break;
        }
        let path = |field: &str| metadata.child("managedFields").index(index).child(field);
        let (operation, fields_type) = (entry.operation.as_str(), entry.fields_type.as_str());
        if !matches!(operation, "Apply" | "Update") {
            errors.push(Error::invalid(path("operation"), operation, "must be `Apply` or `Update`"));
        }
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(path("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        let manager = entry.manager.as_str();
        if !is_plain(manager) {
            errors.extend(validate_field_manager(manager, &path("manager")));
        }
        if entry.subresource.len() > SUBRESOURCE_MAX {
            errors.push(Error::too_long(path("subresource"), SUBRESOURCE_MAX));
        }
    }
    errors
}

/// Whether a manager's name is short enough and printable ASCII, as nearly all are, and so needs no further check.
fn is_plain(manager: &str) -> bool {
    manager.len() <= MANAGER_MAX && manager.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// A field manager's name: at most 128 bytes, printable.
pub fn validate_field_manager(manager: &str, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_MAX {
        errors.push(Error::too_long(path.clone(), MANAGER_MAX));
    }
    let looked_at = manager.char_indices().take_while(|(index, _)| *index < SHOWN_MAX);
    for (index, c) in looked_at.filter(|(_, c)| !is_printable(*c)) {
        if is_full(&errors) {
            break;
        }
        let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(c));
        errors.push(Error::invalid(path.clone(), manager, detail));
    }
    errors
}
