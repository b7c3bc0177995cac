//! Object metadata: the rules for every object (k8s.io/apimachinery/pkg/api/validation/objectmeta.go) and the fields
//! that the server sets (k8s.io/apiserver/pkg/registry/rest).

mod entries;
mod system;
#[cfg(test)]
mod tests;

pub use entries::validate_field_manager;
pub use system::{
    carry_system_fields, ensure_namespace, fill_system_fields, generate_name, wipe_system_fields,
};

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::field::{ERRORS_MAX, Error, ErrorList, Path, is_full};
use crate::names::{self, NameRule};
use crate::object::Object;

/// Maximum number of bytes of the keys and values of all annotations of an object together.
pub const ANNOTATIONS_MAX: usize = 256 << 10;

/// Validates the metadata of any object, new or changed (ValidateObjectMeta). The name must have been generated
/// before.
pub fn validate_object_meta(object: &Object, namespaced: bool, name_rule: NameRule) -> ErrorList {
    let path = Path::new("metadata");
    validate_with(object, namespaced, name_rule, &RepeatedErrors::of(object, &path), &path)
}

/// The errors that an update reports twice.
struct RepeatedErrors {
    maps_and_lists: ErrorList,
    managed: ErrorList,
}

impl RepeatedErrors {
    fn of(object: &Object, path: &Path) -> Self {
        Self {
            maps_and_lists: validate_maps_and_lists(object, path),
            managed: entries::validate_managed_fields(object.managed_fields().unwrap_or_default(), path),
        }
    }
}

fn validate_with(
    object: &Object,
    namespaced: bool,
    name_rule: NameRule,
    repeated: &RepeatedErrors,
    path: &Path,
) -> ErrorList {
    let mut errors = validate_name(object, name_rule, path);
    errors.extend(validate_namespace(object.namespace(), namespaced, path));
    if object.generation() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(path.child("generation"), object.generation(), detail));
    }
    errors.extend_from_slice(&repeated.maps_and_lists);
    errors.extend(validate_finalizers(&object.finalizers(), path));
    errors.extend_from_slice(&repeated.managed);
    errors
}

/// Validates new metadata, with the rule for every name and that of the kind.
pub fn validate_object_meta_create(object: &Object, namespaced: bool, name_rule: NameRule) -> ErrorList {
    let mut errors = validate_object_meta(object, namespaced, name_rule);
    let path = Path::new("metadata").child("name");
    for detail in names::path_segment(object.name(), false) {
        let error = Error::invalid(path.clone(), object.name(), detail);
        if errors.iter().all(|e| e.path != path) {
            errors.push(error);
        }
    }
    errors
}

/// Validates an update of metadata (validateCommonFields): the rules for any object, then those for a change.
pub fn validate_object_meta_update(new: &Object, old: &Object, namespaced: bool) -> ErrorList {
    let path = Path::new("metadata");
    let repeated = RepeatedErrors::of(new, &path);
    let mut errors = validate_with(new, namespaced, names::path_segment, &repeated, &path);
    if old.deletion_timestamp().is_some() {
        errors.extend(validate_no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if new.resource_version().is_empty() {
        errors.push(Error::invalid(path.child("resourceVersion"), "", "must be specified for an update"));
    }
    if new.generation() < old.generation() {
        errors.push(Error::invalid(path.child("generation"), new.generation(), "must not be decremented"));
    }
    errors.extend(validate_immutable(new, old, &path));
    // Repeated as in Kubernetes: each error has two causes, and appears once in the message.
    errors.extend(repeated.maps_and_lists);
    errors.extend(repeated.managed);
    errors
}

/// `metadata.name` and `metadata.generateName`.
fn validate_name(object: &Object, rule: NameRule, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let generate = text(object, "generateName");
    if !generate.is_empty() {
        let wrong = rule(generate, true).into_iter();
        errors.extend(wrong.map(|e| Error::invalid(path.child("generateName"), generate, e)));
    }
    if object.name().is_empty() {
        errors.push(Error::required(path.child("name"), "name or generateName is required"));
    } else {
        let wrong = rule(object.name(), false).into_iter();
        errors.extend(wrong.map(|e| Error::invalid(path.child("name"), object.name(), e)));
    }
    errors
}

fn validate_namespace(namespace: &str, namespaced: bool, path: &Path) -> ErrorList {
    let path = || path.child("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => vec![Error::required(path(), "")],
        (true, false) => {
            let errors = names::name_is_dns_label(namespace, false);
            errors.into_iter().map(|e| Error::invalid(path(), namespace, e)).collect()
        }
        (false, false) => vec![Error::forbidden(path(), "not allowed on this type")],
        (false, true) => ErrorList::new(),
    }
}

fn validate_maps_and_lists(object: &Object, path: &Path) -> ErrorList {
    let mut errors = validate_labels(map(object, "labels"), &path.child("labels"));
    errors.extend(validate_annotations(map(object, "annotations"), &path.child("annotations")));
    errors.extend(entries::validate_owner_references(
        list(object, "ownerReferences"),
        &path.child("ownerReferences"),
    ));
    errors
}

/// Validates keys and values of labels (also those of a selector's matchLabels).
pub fn validate_labels<'a>(
    labels: impl IntoIterator<Item = (&'a String, &'a Value)>,
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        if is_full(&errors) {
            break;
        }
        errors.extend(validate_label_name(key, path));
        errors.extend(validate_label_value(value.as_str().unwrap_or_default(), path));
    }
    errors
}

/// Validates the key of a label.
pub fn validate_label_name(key: &str, path: &Path) -> ErrorList {
    names::qualified_name(key).into_iter().map(|e| Error::invalid(path.clone(), key, e)).collect()
}

/// Validates the value of a label.
pub fn validate_label_value(value: &str, path: &Path) -> ErrorList {
    names::label_value(value).into_iter().map(|e| Error::invalid(path.clone(), value, e)).collect()
}

fn validate_annotations<'a>(
    annotations: impl IntoIterator<Item = (&'a String, &'a Value)>,
    path: &Path,
) -> ErrorList {
    let (mut errors, mut size) = (ErrorList::new(), 0);
    for (key, value) in annotations {
        // Annotations that are too long as a whole need not be checked to the end.
        if !is_full(&errors) && size <= ANNOTATIONS_MAX {
            let wrong = names::qualified_name(&key.to_lowercase());
            errors.extend(wrong.into_iter().map(|e| Error::invalid(path.clone(), key.as_str(), e)));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_MAX {
        errors.push(Error::too_long(path.clone(), ANNOTATIONS_MAX));
    }
    errors
}

fn validate_finalizers(finalizers: &[&str], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if finalizers.is_empty() {
        return errors;
    }
    let path = &path.child("finalizers");
    for name in finalizers {
        if is_full(&errors) {
            break;
        }
        errors
            .extend(names::qualified_name(name).into_iter().map(|e| Error::invalid(path.clone(), *name, e)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(Error::invalid(path.clone(), finalizers.to_vec(), detail));
    }
    errors
}

fn validate_no_new_finalizers(new: &Object, old: &Object, path: &Path) -> Option<Error> {
    let (new, old): (BTreeSet<_>, BTreeSet<_>) =
        (new.finalizers().into_iter().collect(), old.finalizers().into_iter().collect());
    let extra = new.difference(&old).map(|name| crate::quote::go_quote(name)).take(ERRORS_MAX);
    let extra: Vec<_> = extra.collect();
    let found = format!("[]string{{{}}}", extra.join(", "));
    let detail = "no new finalizers can be added if the object is being deleted, found new finalizers";
    (!extra.is_empty()).then(|| Error::forbidden(path.clone(), format!("{detail} {found}")))
}

fn validate_immutable(new: &Object, old: &Object, path: &Path) -> ErrorList {
    let fields =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    let (new, old) = (new.meta(), old.meta());
    let value = |meta: Option<&Map<String, Value>>, field: &str| meta?.get(field).cloned();
    let changed =
        fields.into_iter().filter(|field| new.and_then(|m| m.get(*field)) != old.and_then(|m| m.get(*field)));
    changed.map(|field| immutable(path.child(field), value(new, field).unwrap_or(empty(field)))).collect()
}

/// Returns what an error shows for an absent field: Go's empty strings and nil pointers.
fn empty(field: &str) -> Value {
    if matches!(field, "name" | "namespace" | "uid") { Value::from("") } else { Value::Null }
}

/// `path: Invalid value: ...: field is immutable`
pub fn immutable(path: Path, value: impl Into<Value>) -> Error {
    Error::invalid(path, value, "field is immutable")
}

fn text<'a>(object: &'a Object, field: &str) -> &'a str {
    object.meta().and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}

fn map<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.meta().and_then(|m| m.get(field)).and_then(Value::as_object).into_iter().flatten()
}

fn list<'a>(object: &'a Object, field: &str) -> &'a [Value] {
    object.meta().and_then(|m| m.get(field)).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn member<'a>(entry: &'a Map<String, Value>, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}
