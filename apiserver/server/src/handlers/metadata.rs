//! What the server itself checks and changes in an object that is written.

use std::collections::HashSet;

use drydock_machinery::field::{Error, Path};
use drydock_machinery::kind::Now;
use drydock_machinery::{ApiError, Object};
use serde_json::{Map, Value};

use super::context::RequestContext;

/// Returns 400 unless the object's name is the URL's.
pub fn check_name(request: &RequestContext, object: &Object) -> Result<(), ApiError> {
    let (given, asked) = (object.name(), request.info.name.as_str());
    if given.is_empty() {
        let message = format!(
            "the name of the object ({asked} based on URL) was undeterminable: name must be provided"
        );
        return Err(ApiError::bad_request(message));
    }
    if given != asked {
        let message =
            format!("the name of the object ({given}) does not match the name on the URL ({asked})");
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// Sets the URL's namespace, or none for a cluster-scoped kind; 400 if the object names another.
pub fn check_namespace(request: &RequestContext, object: &mut Object) -> Result<(), ApiError> {
    if !request.names().namespaced {
        object.set_meta("namespace", None);
        return Ok(());
    }
    drydock_machinery::meta::ensure_namespace(object, &request.info.namespace)
}

/// Checks the resourceVersion that an update names, and fills in the present one if the update names none and the
/// kind allows that.
pub fn check_version(request: &RequestContext, new: &mut Object, present: &Object) -> Result<(), ApiError> {
    let (given, expected) = (new.resource_version(), present.resource_version());
    if given == expected {
        return Ok(());
    }
    let unset = matches!(given, "" | "0");
    if unset && request.kind().allows_unconditional_update() {
        new.set_resource_version(expected);
        return Ok(());
    }
    let (names, name) = (request.names(), &request.info.name);
    let path = Path::new("metadata").child("resourceVersion");
    if unset {
        let error = Error::invalid(path, 0, "must be specified for an update");
        return Err(ApiError::invalid(names.group, names.plural, name, vec![error]));
    }
    if let Err(error) = crate::request::list_options::revision(given) {
        // An error of Go's own, without a Status (k8s.io/apiserver pkg/registry/generic/registry/store.go, Update).
        return Err(ApiError::new(500, "", error.detail, None));
    }
    Err(ApiError::modified(names.group, names.plural, name))
}

/// Returns 409 if the object names a uid other than the present one. `present` is empty if there is no object
/// (k8s.io/apiserver pkg/storage/errors.go, StorageError).
pub fn check_uid(request: &RequestContext, given: &str, present: &str) -> Result<(), ApiError> {
    if given.is_empty() || given == present {
        return Ok(());
    }
    let key = request.key();
    Err(request.conflict(format_args!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
         failed: UID in precondition: {given}, UID in object meta: {present}"
    )))
}

/// Increments the generation if anything but metadata and status changes.
pub fn count_generation(new: &mut Object, old: &Object) {
    let changed = spec_fields(&new.0).ne(spec_fields(&old.0));
    let generation = old.generation() + i64::from(changed);
    if generation > 0 {
        new.set_meta("generation", Some(generation.into()));
    }
}

fn spec_fields(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let kept = ["apiVersion", "kind", "metadata", "status"];
    object.iter().filter(move |(key, _)| !kept.contains(&key.as_str()))
}

/// Keeps the old labels, annotations, finalizers and owner references in a write to the status.
pub fn keep_metadata(new: &mut Object, old: &Object) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let kept = old.meta().and_then(|m| m.get(field));
        // Most clients send them unchanged.
        if new.meta().and_then(|m| m.get(field)) != kept {
            new.set_meta(field, kept.cloned());
        }
    }
}

/// Marks an object for deletion. The first time it increments the generation, if the object has one. The grace period
/// is always 0.
pub fn mark_deleting(object: &mut Object, now: Now) {
    if object.deletion_timestamp().is_none() {
        if object.generation() > 0 {
            object.set_meta("generation", Some((object.generation() + 1).into()));
        }
        object
            .set_meta("deletionTimestamp", Some(drydock_machinery::metav1::time::format_seconds(now).into()));
    }
    object.set_meta("deletionGracePeriodSeconds", Some(0.into()));
}

/// Whether an object that is being deleted has nothing to wait for after an update.
pub fn is_finished(new: &Object, old: &Object) -> bool {
    let grace = old.meta().and_then(|m| m.get("deletionGracePeriodSeconds")).and_then(Value::as_i64);
    new.finalizers().is_empty() && old.deletion_timestamp().is_some() && grace.unwrap_or(0) == 0
}

/// Removes duplicate owner references, and warns of them.
pub fn dedup_owner_references(request: &RequestContext, object: &mut Object) {
    dedup(request, object, "contains duplicate entries");
}

/// The same after admission, with the warning that Kubernetes has for that.
pub fn dedup_owner_references_after_admission(request: &RequestContext, object: &mut Object) {
    dedup(request, object, "contains duplicate entries after mutating admission happens");
}

fn dedup(request: &RequestContext, object: &mut Object, what: &str) {
    let Some(Value::Array(references)) = object.meta().and_then(|m| m.get("ownerReferences")) else { return };
    let (mut kept, mut twice) = (Vec::<Value>::new(), Vec::<String>::new());
    // A body has room for tens of thousands of them: each is looked up, not compared with all before it.
    let mut seen = HashSet::new();
    for reference in references {
        if seen.insert(reference) {
            kept.push(reference.clone());
        } else {
            twice.push(reference.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
    }
    if !twice.is_empty() {
        request.warnings.add(format!(
            ".metadata.ownerReferences {what}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
        object.set_meta("ownerReferences", Some(kept.into()));
    }
}
