//! What one JSON patch may cost, however few bytes ask for it.

use serde_json::Value;

/// Bytes that all `copy` operations of a patch may add (kube-apiserver: JSONPatchMaxCopyBytes).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// Values visited or moved within lists.
const MAX_WORK: usize = 20_000_000;
/// Nesting that still decodes (serde_json refuses more).
const MAX_DEPTH: usize = 120;

/// What is left to spend.
pub(super) struct Budget {
    bytes: usize,
    work: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { bytes: MAX_COPIED_BYTES, work: MAX_WORK }
    }

    /// Pays for shifting `items` list items.
    pub(super) fn shift(&mut self, items: usize) -> Result<(), String> {
        self.work = self.work.checked_sub(items).ok_or("the patch moves more values than is allowed")?;
        Ok(())
    }

    /// Pays for a copy of `value`.
    pub(super) fn copy(&mut self, value: &Value) -> Result<(), String> {
        self.spend_bytes(value)
    }

    /// Checks that `value` may stand `depth` levels down.
    pub(super) fn place(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the patch nests values more than {MAX_DEPTH} deep"));
        }
        self.shift(1)?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|v| self.place(v, depth + 1)),
            Value::Object(map) => map.values().try_for_each(|v| self.place(v, depth + 1)),
            _ => Ok(()),
        }
    }

    fn spend_bytes(&mut self, value: &Value) -> Result<(), String> {
        let own = match value {
            Value::String(s) => s.len() + 2,
            Value::Object(map) => 2 + map.keys().map(|k| k.len() + 4).sum::<usize>(),
            Value::Array(items) => 2 + items.len(),
            _ => 4,
        };
        self.bytes = self.bytes.checked_sub(own).ok_or_else(|| {
            format!("Unable to complete the copy, the accumulated size increase of copy is exceeding the limit {MAX_COPIED_BYTES}")
        })?;
        match value {
            Value::Array(items) => items.iter().try_for_each(|v| self.spend_bytes(v)),
            Value::Object(map) => map.values().try_for_each(|v| self.spend_bytes(v)),
            _ => Ok(()),
        }
    }
}
