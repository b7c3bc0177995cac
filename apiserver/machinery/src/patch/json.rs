//! RFC 6902.

use serde::Deserialize;
use serde_json::Value;

use super::budget::{Budget, Refused};
use super::pointer::{Pointer, container, index};
use crate::error::{ApiError, StatusDetails};

/// Operations that one patch may hold (kube-apiserver: maxJSONPatchOperations).
const MAX_OPERATIONS: usize = 10_000;

/// `doc` with the operations of the JSON text `ops` applied, all or none.
///
/// # Errors
/// 400 if `ops` is no patch, 413 beyond 10,000 operations, 422 if an operation fails (a `test`, a path that is not
/// there) or asks for more than a patch may.
pub fn json_patch(doc: &Value, ops: &[u8]) -> Result<Value, ApiError> {
    // By way of values: of a key that stands twice the last counts, as in Go; serde's structs refuse it.
    let ops: Vec<Operation> = serde_json::from_slice(ops)
        .and_then(serde_json::from_value)
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
    if ops.len() > MAX_OPERATIONS {
        return Err(too_many(ops.len()));
    }
    let mut out = doc.clone();
    let mut budget = Budget::new();
    for op in ops {
        op.apply(&mut out, &mut budget).map_err(|Refused| rejected())?;
    }
    Ok(out)
}

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    op: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    from: Option<String>,
    #[serde(default, deserialize_with = "present")]
    value: Option<Value>,
}

/// Tells a `value` of null from none.
fn present<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(d).map(Some)
}

impl Operation {
    fn apply(self, doc: &mut Value, budget: &mut Budget) -> Result<(), Refused> {
        let path = Pointer::parse(self.path.as_deref().ok_or(Refused)?)?;
        match self.op.as_str() {
            "add" => add(doc, &path, self.value.ok_or(Refused)?, budget),
            "remove" => remove(doc, &path, budget).map(drop),
            "replace" => replace(doc, &path, self.value.ok_or(Refused)?, budget),
            "move" => {
                let from = self.source()?;
                if path.below(&from) {
                    return Err(Refused);
                }
                let value = remove(doc, &from, budget)?;
                add(doc, &path, value, budget)
            }
            "copy" => {
                let value = self.source()?.get(doc)?;
                budget.copy(value)?;
                let value = value.clone();
                add(doc, &path, value, budget)
            }
            "test" => test(doc, &path, &self.value.unwrap_or(Value::Null)),
            _ => Err(Refused),
        }
    }

    fn source(&self) -> Result<Pointer, Refused> {
        Pointer::parse(self.from.as_deref().ok_or(Refused)?)
    }
}

fn add(doc: &mut Value, path: &Pointer, value: Value, budget: &mut Budget) -> Result<(), Refused> {
    budget.place(&value, path.depth())?;
    let Some((parents, last)) = path.split() else {
        *doc = value;
        return Ok(());
    };
    match container(doc, parents)? {
        Value::Object(map) => {
            map.insert(last.to_owned(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            // A negative index counts from the place after the last item.
            let at = index(last, items.len() + 1)?;
            if at > items.len() {
                return Err(Refused);
            }
            budget.shift(items.len() - at)?;
            items.insert(at, value);
        }
        _ => return Err(Refused),
    }
    Ok(())
}

fn remove(doc: &mut Value, path: &Pointer, budget: &mut Budget) -> Result<Value, Refused> {
    let (parents, last) = path.split().ok_or(Refused)?;
    match container(doc, parents)? {
        Value::Object(map) => map.remove(last).ok_or(Refused),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            if at >= items.len() {
                return Err(Refused);
            }
            budget.shift(items.len() - at)?;
            Ok(items.remove(at))
        }
        _ => Err(Refused),
    }
}

fn replace(doc: &mut Value, path: &Pointer, value: Value, budget: &mut Budget) -> Result<(), Refused> {
    budget.place(&value, path.depth())?;
    let Some((parents, last)) = path.split() else {
        *doc = value;
        return Ok(());
    };
    let slot = match container(doc, parents)? {
        Value::Object(map) => map.get_mut(last),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            items.get_mut(at)
        }
        _ => None,
    };
    *slot.ok_or(Refused)? = value;
    Ok(())
}

/// An absent member equals null.
fn test(doc: &Value, path: &Pointer, want: &Value) -> Result<(), Refused> {
    match path.get(doc) {
        Ok(have) if have == want => Ok(()),
        Err(Refused) if want.is_null() => Ok(()),
        _ => Err(Refused),
    }
}

fn too_many(count: usize) -> ApiError {
    let limit = format!("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}");
    ApiError::request_entity_too_large(limit)
}

fn rejected() -> ApiError {
    ApiError::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
        Some(StatusDetails::default()),
    )
}
