//! How much an error repeats of what it is about.
//!
//! Kubernetes has no such bounds: there a body of 100 KB can ask for an answer of gigabytes. No answer to an ordinary
//! object reaches them.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Error;
use crate::quote::go_quote;

/// Errors that validation collects: it does not look at further items, keys or characters once it has so many.
pub const ERRORS_MAX: usize = 250;
/// Bytes that an error shows of a value or of a detail; ` ...` stands for the rest.
pub const SHOWN_MAX: usize = 8 << 10;

/// Whether there are as many errors as one answer tells.
pub fn is_full(errors: &[Error]) -> bool {
    errors.len() >= ERRORS_MAX
}

/// A value as an error shows it: strings quoted as Go quotes them, the rest as Go's JSON; at most [`SHOWN_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(Arc<str>);

impl Shown {
    /// Of a value. Errors that show the same value share one.
    pub fn of(value: &Value) -> Self {
        let text = match value {
            Value::String(text) => {
                let part = beginning(text, SHOWN_MAX);
                let rest = if part.len() < text.len() { " ..." } else { "" };
                go_quote(part) + rest
            }
            other => {
                let text = cut(other.to_string(), SHOWN_MAX);
                text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
            }
        };
        Self(cut(text, 2 * SHOWN_MAX).into())
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text, or its first `max` bytes and ` ...`.
pub fn cut(mut text: String, max: usize) -> String {
    let end = beginning(&text, max).len();
    if end < text.len() {
        text.truncate(end);
        text.push_str(" ...");
        text.shrink_to_fit();
    }
    text
}

/// At most the first `max` bytes of a text.
pub fn beginning(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}
