//! The metadata fields that only the server sets.

use serde_json::Value;

use crate::error::ApiError;
use crate::kind::Now;
use crate::object::Object;

/// generateName is cut to this length, so that the name with its suffix has at most 63 bytes.
const BASE_MAX: usize = 58;
const SUFFIX: usize = 5;
/// Without vowels and without characters that look like others.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Removes the fields that a client may not set on a new object.
pub fn wipe_system_fields(object: &mut Object) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        object.set_meta(field, None);
    }
}

/// Sets the uid and creation time of a new object; removes what the client sent for them.
pub fn fill_system_fields(object: &mut Object, uid: &str, now: Now) {
    wipe_system_fields(object);
    object.set_meta("uid", Some(uid.into()));
    object.set_meta("creationTimestamp", Some(crate::metav1::time::format_seconds(now).into()));
}

/// Before an update, restores generation, creation and deletion from the stored object, whatever the client sent
/// (rest.BeforeUpdate). An absent uid or grace period is filled in; another one stays, and validation refuses it.
pub fn carry_system_fields(new: &mut Object, old: &Object) {
    let stored = |field: &str| old.meta().and_then(|m| m.get(field)).cloned();
    new.set_meta("generation", stored("generation"));
    if new.uid().is_empty() {
        new.set_meta("uid", stored("uid"));
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = stored(field) {
            new.set_meta(field, Some(value));
        }
    }
    let grace = "deletionGracePeriodSeconds";
    if let (Some(value), None) = (stored(grace), new.meta().and_then(|m| m.get(grace))) {
        new.set_meta(grace, Some(value));
    }
}

/// Sets the namespace of the request on the object. Fails if the object has another one.
pub fn ensure_namespace(object: &mut Object, request_namespace: &str) -> Result<(), ApiError> {
    if object.namespace().is_empty() || request_namespace.is_empty() {
        object.set_meta("namespace", (!request_namespace.is_empty()).then(|| Value::from(request_namespace)));
        return Ok(());
    }
    if object.namespace() == request_namespace {
        return Ok(());
    }
    let message = "the namespace of the provided object does not match the namespace sent on the request";
    Err(ApiError::bad_request(message))
}

/// Returns `base`, cut to 58 bytes, and five characters derived from `random`.
pub fn generate_name(base: &str, mut random: u64) -> String {
    let end = (0..=BASE_MAX.min(base.len())).rev().find(|i| base.is_char_boundary(*i)).unwrap_or_default();
    let mut name = base[..end].to_owned();
    for _ in 0..SUFFIX {
        // The remainder is below 27.
        let index = usize::try_from(random % 27).unwrap_or_default();
        name.push(char::from(ALPHABET[index]));
        random /= 27;
    }
    name
}
