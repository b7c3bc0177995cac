//! Field paths and validation errors with Kubernetes' messages (k8s.io/apimachinery/pkg/util/validation/field).

mod kind;
mod shown_value;

use std::fmt;

use serde_json::Value;

use crate::error::StatusCause;

pub use kind::ErrorType;
pub use shown_value::{ERRORS_MAX, SHOWN_MAX, ShownValue, beginning, cut, is_full};

/// One validation error.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The type of the error.
    pub kind: ErrorType,
    /// The path of the field.
    pub path: Path,
    /// The invalid value, if the message shows it.
    pub value: Option<ShownValue>,
    /// The explanation.
    pub detail: String,
}

/// The validation errors of an object, in field order, up to [a limit](is_full).
pub type ErrorList = Vec<Error>;

impl Error {
    /// `path: Required value: detail`
    pub fn required(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Required, path, value: None, detail: cut(detail.into(), SHOWN_MAX) }
    }
    /// `path: Invalid value: "value": detail`
    pub fn invalid(path: Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self {
            kind: ErrorType::Invalid,
            path,
            value: Some(ShownValue::of(&value.into())),
            detail: cut(detail.into(), SHOWN_MAX),
        }
    }
    /// As [`Self::invalid`], for a value that several errors show.
    pub fn invalid_shown(path: Path, value: ShownValue, detail: impl Into<String>) -> Self {
        let detail = cut(detail.into(), SHOWN_MAX);
        Self { kind: ErrorType::Invalid, path, value: Some(value), detail }
    }
    /// `path: Unsupported value: "value": supported values: "A", "B"`
    pub fn not_supported(path: Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|s| (*s).to_owned()).collect();
        Self {
            kind: ErrorType::NotSupported(supported),
            path,
            value: Some(ShownValue::of(&value.into())),
            detail: String::new(),
        }
    }
    /// `path: Forbidden: detail`
    pub fn forbidden(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Forbidden, path, value: None, detail: cut(detail.into(), SHOWN_MAX) }
    }
    /// `path: Duplicate value: "value"`
    pub fn duplicate(path: Path, value: impl Into<Value>) -> Self {
        Self {
            kind: ErrorType::Duplicate,
            path,
            value: Some(ShownValue::of(&value.into())),
            detail: String::new(),
        }
    }
    /// `path: Too long: may not be more than max bytes`
    pub fn too_long(path: Path, max: usize) -> Self {
        Self { kind: ErrorType::TooLong(max), path, value: None, detail: String::new() }
    }
    /// `path: Too long: may not be more than max characters`
    pub fn too_long_characters(path: Path, max: usize) -> Self {
        Self { kind: ErrorType::TooLongCharacters(max), path, value: None, detail: String::new() }
    }
    /// `path: Too many: actual: must have at most max items`
    pub fn too_many(path: Path, actual: usize, max: usize) -> Self {
        Self { kind: ErrorType::TooMany(actual, max), path, value: None, detail: String::new() }
    }
    /// `path: Not found: "value"`
    pub fn not_found(path: Path, value: impl Into<Value>) -> Self {
        Self {
            kind: ErrorType::NotFound,
            path,
            value: Some(ShownValue::of(&value.into())),
            detail: String::new(),
        }
    }
    /// `path: Internal error: detail`
    pub fn internal(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Internal, path, value: None, detail: cut(detail.into(), SHOWN_MAX) }
    }

    /// Returns the message without the path, as in a cause.
    pub fn body(&self) -> String {
        let mut body = self.kind.title().to_owned();
        let value = match (&self.kind, &self.value) {
            (ErrorType::TooMany(actual, _), _) => Some(actual.to_string()),
            (kind, Some(value)) if kind.shows_value() => Some(value.to_string()),
            _ => None,
        };
        for part in value
            .into_iter()
            .chain(self.kind.rule())
            .chain((!self.detail.is_empty()).then(|| self.detail.clone()))
        {
            body.push_str(": ");
            body.push_str(&part);
        }
        body
    }

    /// The error as a cause of a Status.
    pub fn to_cause(&self) -> StatusCause {
        StatusCause {
            reason: self.kind.cause().to_owned(),
            message: self.body(),
            field: self.path.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// Joins the errors in one line, without duplicates; in brackets if there are several. `None` if there are none.
pub fn aggregate(errors: &[Error]) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    let messages: Vec<_> = errors.iter().map(Error::to_string).filter(|m| seen.insert(m.clone())).collect();
    match messages.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("[{}]", all.join(", "))),
    }
}

/// A path to a field: `spec.items[0].name`, `metadata.labels[a.b/c]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(String);

impl Path {
    /// The path that starts at `name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The field `name` below this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self::new(name) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// The list item at `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The map entry at `key`.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// Returns the path with another list index, if it leads to an item of the list at `list`, or below one.
    #[must_use]
    pub fn renumbered(&self, list: &str, number: impl FnOnce(usize) -> usize) -> Self {
        let below = self.0.strip_prefix(list).and_then(|rest| rest.strip_prefix('['));
        let split = below.and_then(|rest| rest.split_once(']'));
        match split.and_then(|(index, rest)| Some((index.parse().ok()?, rest))) {
            Some((index, rest)) => Self(format!("{list}[{}]{rest}", number(index))),
            None => self.clone(),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_kubernetes_writes_them() {
        let path = || Path::new("spec").child("items").index(0);
        let cases = [
            (Error::required(path(), ""), "spec.items[0]: Required value"),
            (Error::invalid(path(), 3, "must be 4"), "spec.items[0]: Invalid value: 3: must be 4"),
            (Error::duplicate(path(), "a"), r#"spec.items[0]: Duplicate value: "a""#),
            (
                Error::not_supported(path(), "c", &["a", "b"]),
                r#"spec.items[0]: Unsupported value: "c": supported values: "a", "b""#,
            ),
            (Error::too_long(path(), 1), "spec.items[0]: Too long: may not be more than 1 byte"),
            (Error::too_many(path(), 17, 15), "spec.items[0]: Too many: 17: must have at most 15 items"),
            (Error::forbidden(path(), "no"), "spec.items[0]: Forbidden: no"),
            (Error::internal(path(), "oh"), "spec.items[0]: Internal error: oh"),
            (
                Error::invalid(path(), serde_json::json!(["<"]), ""),
                r#"spec.items[0]: Invalid value: ["\u003c"]"#,
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
