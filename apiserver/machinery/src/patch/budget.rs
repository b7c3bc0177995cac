//! Limits the cost of a JSON patch, because a short one can be expensive.

use serde_json::Value;

use crate::memory;

/// Bytes that all `copy` operations of a patch may add (kube-apiserver: JSONPatchMaxCopyBytes).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// Bytes of memory that all copies together may take.
const MAX_COPIED_MEMORY: usize = 64 << 20;
/// Number of values that may be moved within lists, at a few bytes of memory each.
const MAX_WORK: usize = 20_000_000;
/// The cost of visiting a value: some ten times that of moving one.
const LOOK: usize = 10;
/// Deepest nesting that can be decoded again (serde_json refuses more).
const MAX_DEPTH: usize = 120;

/// The budget that is left.
pub(super) struct PatchBudget {
    bytes: usize,
    memory: usize,
    work: usize,
}

impl PatchBudget {
    pub(super) fn new() -> Self {
        Self { bytes: MAX_COPIED_BYTES, memory: MAX_COPIED_MEMORY, work: MAX_WORK }
    }

    /// Pays for shifting `items` list items. Fails if the budget is used up.
    pub(super) fn shift(&mut self, items: usize) -> Result<(), String> {
        self.work = self.work.checked_sub(items).ok_or("the patch moves more values than is allowed")?;
        Ok(())
    }

    /// Pays for a copy of `value`. Fails if the budget is used up.
    pub(super) fn copy(&mut self, value: &Value) -> Result<(), String> {
        self.spend_bytes(value)?;
        let left = self.memory.checked_sub(memory::content(value));
        self.memory = left.ok_or("the patch copies more than there is memory for")?;
        Ok(())
    }

    /// Checks that `value` may be placed `depth` levels deep, and pays for visiting it.
    pub(super) fn place(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("the patch nests values more than {MAX_DEPTH} deep"));
        }
        self.shift(LOOK)?;
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
