//! Decodes the operations of a JSON patch.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::decode::{DecodeError, json_value};
use crate::go_json;
use crate::schema::common::{list, object, optional, string};
use crate::schema::{ListType, Schema, Shape};

/// One operation.
pub(super) struct PatchOperation {
    pub(super) op: String,
    pub(super) path: Option<String>,
    pub(super) from: Option<String>,
    /// Null if absent.
    pub(super) value: Value,
}

/// Returns the schema of `[]jsonPatchOp`.
pub(super) fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let text = |name, number| optional(name, number, string());
        let value = optional("value", 4, Schema::new("", Shape::Raw));
        let operation = object("", "", vec![text("op", 1), text("path", 2), text("from", 3), value]);
        list("", operation, ListType::Atomic)
    });
    &SCHEMA
}

/// Decodes the operations of a patch; of duplicate keys, the last one counts. Errors have Go's messages for
/// `[]jsonPatchOp` (k8s.io/apiserver pkg/endpoints/handlers/patch.go).
pub(super) fn read(patch: &[u8]) -> Result<Vec<PatchOperation>, DecodeError> {
    match json_value(patch)? {
        Value::Array(operations) => {
            operations.into_iter().map(operation).collect::<Result<_, _>>().map_err(DecodeError::Reason)
        }
        Value::Null => Ok(Vec::new()),
        other => Err(DecodeError::Reason(mismatch(&other, "value", "[]handlers.jsonPatchOp"))),
    }
}

/// Decodes the operations of a webhook's patch; only those that are reached must be valid
/// (gopkg.in/evanphx/json-patch.v4, DecodePatch).
pub(super) fn read_any(patch: &[u8]) -> Result<Vec<PatchOperation>, String> {
    let read = json_value(patch).map_err(|refusal| match refusal {
        DecodeError::Reason(why) => why,
        DecodeError::Status(answer) => answer.status.message,
    })?;
    match read {
        Value::Array(operations) => operations.into_iter().map(any).collect(),
        Value::Null => Ok(Vec::new()),
        other => Err(mismatch(&other, "value", "jsonpatch.Patch")),
    }
}

fn any(value: Value) -> Result<PatchOperation, String> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        other => return Err(mismatch(&other, "value", "jsonpatch.Operation")),
    };
    let mut text = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (op, path, from) = (text("op").unwrap_or_else(|| "unknown".to_owned()), text("path"), text("from"));
    Ok(PatchOperation { op, path, from, value: fields.remove("value").unwrap_or_default() })
}

fn operation(value: Value) -> Result<PatchOperation, String> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        // It has no op, and is refused for that reason.
        Value::Null => Map::new(),
        other => return Err(mismatch(&other, "value", "handlers.jsonPatchOp")),
    };
    let mut text = |name: &str| match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(mismatch(&other, &format!("struct field jsonPatchOp.{name}"), "string")),
    };
    let (op, path, from) = (text("op")?.unwrap_or_default(), text("path")?, text("from")?);
    Ok(PatchOperation { op, path, from, value: fields.remove("value").unwrap_or_default() })
}

fn mismatch(value: &Value, place: &str, type_: &str) -> String {
    format!("json: cannot unmarshal {} into Go {place} of type {type_}", go_json::kind_of(value))
}
