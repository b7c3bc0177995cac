//! What a webhook makes of an object.

use drydock_machinery::decode;
use drydock_machinery::kind::Kind;
use drydock_machinery::patch::json_patch;
use drydock_machinery::quote::go_quote;
use drydock_machinery::{ApiError, Object};
use serde_json::Value;

use super::failure::Failure;

/// The object with the patch applied, decoded and defaulted; `None` if the patch is empty. `hook` sent it.
pub fn patched(
    hook: &str,
    kind: &dyn Kind,
    object: Option<&Object>,
    patch: &[u8],
) -> Result<Option<Object>, Failure> {
    if patch.is_empty() {
        return Ok(None);
    }
    let operations: Vec<Value> = serde_json::from_slice(patch).map_err(|error| {
        Failure::calling(hook, format_args!("received undecodable patch in webhook response: {error}"))
    })?;
    if operations.is_empty() {
        return Ok(None);
    }
    let internal = |why: &dyn std::fmt::Display| Failure::Refused(ApiError::internal(why));
    let Some(object) = object else {
        let hook = go_quote(hook);
        return Err(internal(&format!(
            "admission webhook {hook} attempted to modify the object, which is not supported for this operation"
        )));
    };
    let changed = json_patch(&Value::Object(object.0.clone()), patch).map_err(|error| internal(&error))?;
    let Value::Object(fields) = changed else {
        return Err(internal(&"json: cannot unmarshal into Go value of a struct type"));
    };
    let mut changed = Object(fields);
    // What the schema does not know is dropped, as for any client that does not ask for more.
    decode::conform(&mut changed, kind.schema()).map_err(|error| internal(&error))?;
    kind.default(&mut changed);
    Ok(Some(changed))
}
