//! Estimates the memory of decoded values before they are created: a body of `{},{},...` becomes some two hundred
//! times larger once each item is a map.

use serde_json::Value;

use crate::error::ApiError;

/// Bytes of memory granted for each byte of a body. Objects as clients write them need at most 21 a byte: a field
/// with a few letters in a struct of its own.
const PER_BYTE: usize = 24;
/// Bytes of memory granted for the shortest body.
const LEAST: usize = 1 << 20;
/// Bytes of memory granted for the result of a patch: as much as for the longest body.
const PATCH_RESULT_BYTES: usize = LEAST + PER_BYTE * (3 << 20);

/// Bytes of an item in a list; lists double their capacity when they grow.
const ITEM: usize = 2 * size_of::<Value>();
/// Bytes of a node of a map. A node has space for eleven entries, and holds about six once there are several nodes.
const NODE: usize = 11 * (size_of::<Value>() + size_of::<String>()) + 24;
const ENTRIES: usize = 6;
/// Bytes that the allocator adds to a text.
const TEXT: usize = 16;

/// The memory that may still be taken.
#[derive(Debug)]
pub(crate) struct DecodeMemory {
    left: usize,
    limit: usize,
}

impl DecodeMemory {
    /// The memory for decoding a body of so many bytes.
    pub(crate) fn of_body(bytes: usize) -> Self {
        Self::of(LEAST.saturating_add(bytes.saturating_mul(PER_BYTE)))
    }

    /// The memory for the result of a patch.
    pub(crate) fn of_patched() -> Self {
        Self::of(PATCH_RESULT_BYTES)
    }

    fn of(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Takes memory. Returns `false` if not enough is left; from then on nothing is left.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    /// Whether more memory was requested than there was.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// Returns the 413.
    pub(crate) fn refusal(&self) -> ApiError {
        let limit = self.limit;
        ApiError::request_entity_too_large(format_args!(
            "decoded, it takes more than {limit} bytes of memory"
        ))
    }
}

/// Returns the bytes of a text.
pub(crate) fn text(length: usize) -> usize {
    TEXT.saturating_add(length)
}

/// Returns the bytes of one more list item, without its content.
pub(crate) fn item() -> usize {
    ITEM
}

/// Returns the bytes of one more entry of a map with so many entries, without its content.
pub(crate) fn entry(entries: usize, key: &str) -> usize {
    let node = if entries.is_multiple_of(ENTRIES) { NODE } else { 0 };
    text(key.len()) + node
}

/// Returns the bytes of a value's content, without those of the value itself.
pub(crate) fn content(value: &Value) -> usize {
    match value {
        Value::String(string) => text(string.len()),
        Value::Array(items) => items.iter().map(|value| item() + content(value)).sum(),
        Value::Object(map) => {
            let entries = map.iter().enumerate();
            entries.map(|(index, (key, value))| entry(index, key) + content(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
