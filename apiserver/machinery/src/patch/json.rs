//! JSON patches (RFC 6902).

use serde_json::Value;

use super::budget::PatchBudget;
use super::location::Location;
use super::operation::{self, PatchOperation};
use super::pointer::Pointer;
use crate::decode;
use crate::error::{ApiError, StatusDetails};

/// Maximum number of operations in a patch (kube-apiserver: maxJSONPatchOperations).
const MAX_OPERATIONS: usize = 10_000;

/// Returns `doc` with all operations of the JSON text `ops` applied.
///
/// # Errors
/// 400 if `ops` is no patch, 413 for more than 10,000 operations or too much memory, 422 if an operation fails (a
/// `test`, a path that does not exist) or exceeds the limits of a patch.
pub fn json_patch(doc: &Value, ops: &[u8]) -> Result<Value, ApiError> {
    let undecodable = |why| ApiError::bad_request(format!("error decoding patch: {why}"));
    let ops = operation::read(ops).map_err(|refusal| refusal.into_error(undecodable))?;
    if ops.len() > MAX_OPERATIONS {
        return Err(too_many(ops.len()));
    }
    apply(doc, ops).map_err(|_| rejected())
}

/// Returns what fieldValidation finds in a JSON patch: members of its operations that are unknown or stand twice, at
/// most 100. Returns nothing for text that is no patch, which [`json_patch`] refuses.
pub fn json_patch_errors(ops: &[u8]) -> Vec<String> {
    let errors = decode::strict_errors(ops, operation::schema()).unwrap_or_default();
    errors.into_iter().map(|error| format!("json patch {error}")).collect()
}

/// The patch of an admission webhook: it may have any number of operations, and its errors are reported
/// (k8s.io/apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go).
pub struct WebhookPatch(Vec<PatchOperation>);

impl WebhookPatch {
    /// Decodes a patch.
    ///
    /// # Errors
    /// If it is no patch: Go's message.
    pub fn decode(text: &[u8]) -> Result<Self, String> {
        operation::read_any(text).map(Self)
    }

    /// Whether the patch has no operations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `doc` with all operations applied.
    ///
    /// # Errors
    /// If an operation fails: Go's message.
    pub fn apply(self, doc: &Value) -> Result<Value, String> {
        apply(doc, self.0)
    }
}

fn apply(doc: &Value, ops: Vec<PatchOperation>) -> Result<Value, String> {
    let mut out = doc.clone();
    let mut budget = PatchBudget::new();
    for op in ops {
        op.apply(&mut out, &mut budget)?;
    }
    Ok(out)
}

impl PatchOperation {
    fn apply(self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        match self.op.as_str() {
            "add" => self.add(doc, budget),
            "remove" => self.remove(doc, budget),
            "replace" => self.replace(doc, budget),
            "move" => self.move_(doc, budget),
            "copy" => self.copy(doc, budget),
            "test" => self.test(doc),
            op => Err(format!("Unexpected kind: {op}")),
        }
    }

    fn add(self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        let path = self.path.ok_or("add operation failed to decode path: missing value")?;
        let location = Location::find(doc, &path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        location.add(self.value, budget).map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        let path = self.path.ok_or("remove operation failed to decode path: missing value")?;
        let location = Location::find(doc, &path).ok_or_else(|| {
            format!("remove operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        location.remove(budget).map(drop).map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(mut self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        let value = self.value.take();
        let path = self.target()?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array".to_owned());
            }
            budget.place(&value, 0)?;
            *doc = value;
            return Ok(());
        }
        let missing = |what: &str| {
            format!("replace operation does not apply: doc is missing {what}: {path}: missing value")
        };
        let location = Location::find(doc, path).ok_or_else(|| missing("path"))?;
        location.get().map_err(|_| missing("key"))?;
        location.set(value, budget)
    }

    fn move_(self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        let from = self.source()?;
        let missing = |what: &str, path: &str| {
            format!("move operation does not apply: doc is missing {what} path: {path}: missing value")
        };
        let location = Location::find(doc, from).ok_or_else(|| missing("from", from))?;
        let failed =
            |why| format!("error in move for path: '{}': {why}", from.rsplit('/').next().unwrap_or_default());
        let value = location.remove(budget).map_err(failed)?;
        let path = self.target()?;
        let below = |path: &str| Some(Pointer::parse(path)?.below(&Pointer::parse(from)?));
        if below(path) == Some(true) {
            return Err(missing("destination", path));
        }
        let location = Location::find(doc, path).ok_or_else(|| missing("destination", path))?;
        location.add(value, budget).map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    /// In a struct or a map, an absent value is copied as null.
    fn copy(self, doc: &mut Value, budget: &mut PatchBudget) -> Result<(), String> {
        let from = self.source()?;
        let missing = |what: &str, path: &str| {
            format!("copy operation does not apply: doc is missing {what} path: {path}: missing value")
        };
        let location = Location::find(doc, from).ok_or_else(|| missing("from", from))?;
        let value = location.get().map_err(|why| format!("error in copy for from: '{from}': {why}"))?;
        budget.copy(value)?;
        let value = value.clone();
        let path = self.path.as_deref().ok_or("copy operation failed to decode path: missing value")?;
        let location = Location::find(doc, path).ok_or_else(|| missing("destination", path))?;
        location.add(value, budget).map_err(|why| format!("error while adding value during copy: {why}"))
    }

    /// An absent member equals null.
    fn test(self, doc: &mut Value) -> Result<(), String> {
        let path = self.target()?;
        let equal = if path.is_empty() {
            *doc == self.value
        } else {
            let location = Location::find(doc, path).ok_or_else(|| {
                format!("test operation does not apply: is missing path: {path}: missing value")
            })?;
            *location.get().map_err(|why| format!("error in test for path: '{path}': {why}"))? == self.value
        };
        if equal { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
    }

    fn target(&self) -> Result<&str, String> {
        self.path.as_deref().ok_or_else(|| {
            format!(
                "{} operation failed to decode path: operation missing path field: missing value",
                self.op
            )
        })
    }

    fn source(&self) -> Result<&str, String> {
        self.from.as_deref().ok_or_else(|| {
            format!(
                "{} operation failed to decode from: operation, missing from field: missing value",
                self.op
            )
        })
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
