//! What decoded values take of memory, counted before they are made: a body of `{},{},...` is some two hundred times
//! larger once each of them is a map.

use serde_json::Value;

use crate::error::ApiError;

/// Bytes of memory for each byte of a body. Objects as clients write them take at most 21 a byte: a field of a few
/// letters in a struct of its own.
const PER_BYTE: usize = 24;
/// Bytes of memory for the shortest body.
const LEAST: usize = 1 << 20;
/// Bytes of memory for what a patch made: as much as for the longest body.
const MOST: usize = LEAST + PER_BYTE * (3 << 20);

/// A place in a list; lists double when they grow.
const ITEM: usize = 2 * size_of::<Value>();
/// A node of a map, which has room for eleven entries, and about six of them once there are several nodes.
const NODE: usize = 11 * (size_of::<Value>() + size_of::<String>()) + 24;
const ENTRIES: usize = 6;
/// What the allocator adds to a text.
const TEXT: usize = 16;

/// How much memory may still be taken.
#[derive(Debug)]
pub(crate) struct Memory {
    left: usize,
    limit: usize,
}

impl Memory {
    /// For what is decoded of a body of so many bytes.
    pub(crate) fn of_body(bytes: usize) -> Self {
        Self::of(LEAST.saturating_add(bytes.saturating_mul(PER_BYTE)))
    }

    /// For what a patch made.
    pub(crate) fn of_patched() -> Self {
        Self::of(MOST)
    }

    fn of(limit: usize) -> Self {
        Self { left: limit, limit }
    }

    /// Takes some; false if there is not as much, nor will be again.
    #[must_use]
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or_default();
        left.is_some()
    }

    /// Whether more was asked for than there was.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// 413
    pub(crate) fn refusal(&self) -> ApiError {
        let limit = self.limit;
        ApiError::request_entity_too_large(format_args!(
            "decoded, it takes more than {limit} bytes of memory"
        ))
    }
}

/// Bytes of a text.
pub(crate) fn text(length: usize) -> usize {
    TEXT.saturating_add(length)
}

/// Bytes of one more item of a list, without what is in it.
pub(crate) fn item() -> usize {
    ITEM
}

/// Bytes of one more entry of a map that has so many, without what is in it.
pub(crate) fn entry(entries: usize, key: &str) -> usize {
    let node = if entries.is_multiple_of(ENTRIES) { NODE } else { 0 };
    text(key.len()) + node
}

/// Bytes of what is in a value, without its own place.
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
