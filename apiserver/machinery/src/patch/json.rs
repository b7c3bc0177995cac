//! RFC 6902.

use serde_json::Value;

use super::budget::{Budget, Refused};
use super::operation::{self, Operation};
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
    let ops =
        operation::read(ops).map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
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

impl Operation {
    fn apply(self, doc: &mut Value, budget: &mut Budget) -> Result<(), Refused> {
        let path = Pointer::parse(self.path.as_deref().ok_or(Refused)?)?;
        match self.op.as_str() {
            "add" => add(doc, &path, self.value, budget),
            "remove" => remove(doc, &path, budget).map(drop),
            "replace" => replace(doc, &path, self.value, budget),
            "move" => {
                let from = self.source()?;
                if path.below(&from) {
                    return Err(Refused);
                }
                let value = remove(doc, &from, budget)?;
                add(doc, &path, value, budget)
            }
            "copy" => {
                // Of a struct or a map, what is absent is null.
                let value = self.source()?.member(doc)?.unwrap_or(&Value::Null);
                budget.copy(value)?;
                let value = value.clone();
                add(doc, &path, value, budget)
            }
            "test" => test(doc, &path, &self.value),
            _ => Err(Refused),
        }
    }

    fn source(&self) -> Result<Pointer, Refused> {
        Pointer::parse(self.from.as_deref().ok_or(Refused)?)
    }
}

fn add(doc: &mut Value, path: &Pointer, value: Value, budget: &mut Budget) -> Result<(), Refused> {
    budget.place(&value, path.depth())?;
    let (parents, last) = path.split().ok_or(Refused)?;
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
        if !value.is_object() && !value.is_array() {
            return Err(Refused);
        }
        *doc = value;
        return Ok(());
    };
    let slot = match container(doc, parents)? {
        // What is absent is replaced too.
        Value::Object(map) => Some(map.entry(last).or_insert(Value::Null)),
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
    let have = path.member(doc)?.unwrap_or(&Value::Null);
    if have == want { Ok(()) } else { Err(Refused) }
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
