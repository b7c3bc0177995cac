//! JSON pointers (RFC 6901), with the negative list indices that kube-apiserver accepts.

use std::num::IntErrorKind;

use serde_json::Value;

use crate::quote::go_quote;

/// A parsed pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Parses `/a/b~1c/0`; the empty text is the whole document.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let rest = text.strip_prefix('/')?;
        Some(Self(rest.split('/').map(|t| t.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// Number of steps.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// Returns the steps to the container, and the last step; `None` for the whole document.
    pub(super) fn split(&self) -> Option<(&[String], &str)> {
        self.0.split_last().map(|(last, parents)| (parents, last.as_str()))
    }

    /// Whether this pointer is strictly below `other`.
    pub(super) fn below(&self, other: &Self) -> bool {
        self.0.len() > other.0.len() && self.0.starts_with(&other.0)
    }
}

/// Returns the container that `steps` lead to.
pub(super) fn container<'a>(doc: &'a mut Value, steps: &[String]) -> Option<&'a mut Value> {
    steps.iter().try_fold(doc, |value, step| match value {
        Value::Object(map) => map.get_mut(step),
        Value::Array(items) => {
            let at = index(number(step).ok()?, items.len()).ok()?;
            items.get_mut(at)
        }
        _ => None,
    })
}

/// Parses a step as a number, with Go's error message (strconv.Atoi).
pub(super) fn number(step: &str) -> Result<i64, String> {
    step.parse::<i64>().map_err(|error| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.Atoi: parsing {}: {why}", go_quote(step))
    })
}

/// Converts a number to an index of a list of `len` positions; -1 is the last one.
pub(super) fn index(number: i64, len: usize) -> Result<usize, String> {
    let places = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = if number < 0 { number.saturating_add(places) } else { number };
    let at = usize::try_from(from_start).ok().filter(|at| *at < len);
    at.ok_or_else(|| format!("Unable to access invalid index: {number}: invalid index referenced"))
}
