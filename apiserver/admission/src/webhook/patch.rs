//! Applies the patch of a webhook to an object.

use drydock_machinery::decode;
use drydock_machinery::kind::{Kind, Names};
use drydock_machinery::patch::WebhookPatch;
use drydock_machinery::quote::go_quote;
use drydock_machinery::{ApiError, Object, go_json};
use serde_json::Value;

use super::error::WebhookError;

/// Returns the object with the patch applied, decoded and defaulted; `None` if the patch is empty. `hook` is the name
/// of the webhook.
pub fn patched(
    hook: &str,
    kind: &dyn Kind,
    object: Option<&Object>,
    patch: &[u8],
) -> Result<Option<Object>, WebhookError> {
    if patch.is_empty() {
        return Ok(None);
    }
    let patch = WebhookPatch::decode(patch).map_err(|why| {
        WebhookError::calling(
            hook,
            503,
            format_args!("received undecodable patch in webhook response: {why}"),
        )
    })?;
    if patch.is_empty() {
        return Ok(None);
    }
    let internal = |why: &dyn std::fmt::Display| WebhookError::Internal(ApiError::internal(why));
    let Some(object) = object else {
        let hook = go_quote(hook);
        return Err(internal(&format!(
            "admission webhook {hook} attempted to modify the object, which is not supported for this operation"
        )));
    };
    let changed = patch.apply(&object.to_value()).map_err(|why| internal(&why))?;
    let Value::Object(fields) = changed else {
        return Err(internal(&"json: cannot unmarshal into Go value of a struct type"));
    };
    let mut changed = Object::raw(fields);
    identify(&mut changed, kind.names()).map_err(|why| internal(&why))?;
    // Unknown fields are dropped, as for a client without strict field validation.
    decode::decode_patched(&mut changed, kind.names(), kind.schema()).map_err(|error| internal(&error))?;
    kind.set_defaults(&mut changed);
    changed.keep_defaulted(object);
    Ok(Some(changed))
}

/// Fails if the patch changed the object's apiVersion or kind; restores them if the patch removed them
/// (k8s.io/apimachinery pkg/runtime/serializer/json/json.go, Decode).
fn identify(object: &mut Object, names: &Names) -> Result<(), String> {
    let (version, kind) = (text(object, "apiVersion")?, text(object, "kind")?);
    if version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    let ours = names.api_version();
    let kind = if kind.is_empty() { names.kind.to_owned() } else { kind };
    let version = if version.is_empty() { ours.clone() } else { version };
    if kind != names.kind || version != ours {
        return Err(decode::not_registered(&kind, &version));
    }
    object.0.insert("apiVersion".to_owned(), version.into());
    object.0.insert("kind".to_owned(), kind.into());
    Ok(())
}

fn text(object: &Object, field: &str) -> Result<String, String> {
    match object.0.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => {
            let what = go_json::kind_of(other);
            let why = format!("json: cannot unmarshal {what} into Go struct field .{field} of type string");
            Err(format!("couldn't get version/kind; json parse error: {why}"))
        }
    }
}
