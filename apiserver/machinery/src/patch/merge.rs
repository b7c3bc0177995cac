//! Merge patches (RFC 7386).

use serde_json::{Map, Value};

use crate::decode::json_value;
use crate::error::ApiError;
use crate::go_json;

/// Returns `doc` with the merge patch of the JSON text `patch` applied: null removes, objects merge, other values
/// replace.
///
/// # Errors
/// 400 if `patch` is not a JSON object, 413 if it takes too much memory.
pub fn merge_patch(doc: &Value, patch: &[u8]) -> Result<Value, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
    let read = json_value(patch).map_err(|refusal| refusal.into_error(refused))?;
    let patch: Map<String, Value> = match read {
        Value::Object(patch) => patch,
        Value::Null => return Err(ApiError::bad_request("Invalid JSON Patch")),
        other => {
            let what = go_json::kind_of(&other);
            let why =
                format!("json: cannot unmarshal {what} into Go value of type map[string]interface {{}}");
            return Err(refused(why));
        }
    };
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
