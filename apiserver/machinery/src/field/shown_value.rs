//! Limits on how much of a value an error repeats.
//!
//! Kubernetes has no such limits: there a body of 100 KB can cause a response of gigabytes. Errors for ordinary
//! objects do not reach them.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::Error;
use crate::quote::go_quote;

/// Maximum number of errors that validation collects: after that it checks no further items, keys or characters.
pub const ERRORS_MAX: usize = 250;
/// Maximum number of bytes of a value or of a detail in an error; ` ...` replaces the rest.
pub const SHOWN_MAX: usize = 8 << 10;

/// Whether there are as many errors as a response may have.
pub fn is_full(errors: &[Error]) -> bool {
    errors.len() >= ERRORS_MAX
}

/// A value as an error shows it: strings quoted like Go's `%q`, other values as Go's JSON; at most [`SHOWN_MAX`] bytes
/// of it, which escapes can make twice as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownValue(Arc<str>);

impl ShownValue {
    /// Formats a value. Errors that show the same value can share it.
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

impl fmt::Display for ShownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the text; if it is longer than `max` bytes, its beginning and ` ...`.
pub fn cut(mut text: String, max: usize) -> String {
    let end = beginning(&text, max).len();
    if end < text.len() {
        text.truncate(end);
        text.push_str(" ...");
        text.shrink_to_fit();
    }
    text
}

/// Returns at most the first `max` bytes of a text.
pub fn beginning(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}
