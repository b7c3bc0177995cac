//! RFC 7386.

use serde_json::{Map, Value};

use crate::error::ApiError;

/// `doc` with the merge patch of the JSON text `patch` applied: null removes, objects merge, all else replaces.
///
/// # Errors
/// 400 if `patch` is not a JSON object.
pub fn merge_patch(doc: &Value, patch: &[u8]) -> Result<Value, ApiError> {
    let patch: Map<String, Value> = serde_json::from_slice(patch)
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
    let mut out = doc.clone();
    merge(&mut out, patch);
    Ok(out)
}

fn merge(target: &mut Value, patch: Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(map) = target else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                map.remove(&key);
            }
            Value::Object(inner) => merge(map.entry(key).or_insert(Value::Null), inner),
            other => {
                map.insert(key, other);
            }
        }
    }
}
