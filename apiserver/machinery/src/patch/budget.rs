//! What one JSON patch may cost, however few bytes ask for it.

use serde_json::Value;

use crate::memory;

/// Bytes that all `copy` operations of a patch may add (kube-apiserver: JSONPatchMaxCopyBytes).
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;
/// Bytes of memory that the copies may take.
const MAX_COPIED_MEMORY: usize = 64 << 20;
/// Values that are moved within lists, at a few bytes of memory each.
const MAX_WORK: usize = 20_000_000;
/// What it costs to look at a value: some ten times as much as to move one.
const LOOK: usize = 10;
/// Nesting that still decodes (serde_json refuses more).
const MAX_DEPTH: usize = 120;

/// What is left to spend.
pub(super) struct Budget {
    bytes: usize,
    memory: usize,
    work: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { bytes: MAX_COPIED_BYTES, memory: MAX_COPIED_MEMORY, work: MAX_WORK }
    }

    /// Pays for shifting `items` list items.
    pub(super) fn shift(&mut self, items: usize) -> Result<(), String> {
        self.work = self.work.checked_sub(items).ok_or("the patch moves more values than is allowed")?;
        Ok(())
    }

    /// Pays for a copy of `value`.
    pub(super) fn copy(&mut self, value: &Value) -> Result<(), String> {
        self.spend_bytes(value)?;
        let left = self.memory.checked_sub(memory::content(value));
        self.memory = left.ok_or("the patch copies more than there is memory for")?;
        Ok(())
    }

    /// Checks that `value` may stand `depth` levels down.
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
