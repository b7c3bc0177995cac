//! Field paths and validation errors as Kubernetes words them (k8s.io/apimachinery/pkg/util/validation/field).

use std::fmt;

use serde_json::Value;

use crate::error::StatusCause;
use crate::quote::go_quote;

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
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// What is wrong with a field; the variants are the causes of a Status of reason Invalid.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorType {
    /// `FieldValueRequired`
    Required,
    /// `FieldValueInvalid`
    Invalid,
    /// `FieldValueNotSupported`: the accepted values.
    NotSupported(Vec<String>),
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueTooLong`: the maximum number of bytes.
    TooLong(usize),
    /// `FieldValueTooLong`: the maximum number of characters.
    TooLongCharacters(usize),
    /// `FieldValueTooMany`: actual number and maximum.
    TooMany(usize, usize),
    /// `FieldValueTooFew`: actual number and minimum.
    TooFew(usize, usize),
    /// `FieldValueTooShort`: the minimum number of characters.
    TooShort(usize),
    /// `FieldValueTypeInvalid`
    TypeInvalid,
    /// `FieldValueNotFound`
    NotFound,
    /// `InternalError`
    Internal,
}

/// One validation error.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorType,
    /// Where.
    pub path: Path,
    /// The offending value, where the message shows it.
    pub value: Option<Value>,
    /// Why.
    pub detail: String,
}

/// Validation accumulates: every error of an object, in field order.
pub type ErrorList = Vec<Error>;

impl Error {
    /// `path: Required value: detail`
    pub fn required(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Required, path, value: None, detail: detail.into() }
    }
    /// `path: Invalid value: "value": detail`
    pub fn invalid(path: Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Invalid, path, value: Some(value.into()), detail: detail.into() }
    }
    /// `path: Unsupported value: "value": supported values: "A", "B"`
    pub fn not_supported(path: Path, value: impl Into<Value>, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|s| (*s).to_owned()).collect();
        Self {
            kind: ErrorType::NotSupported(supported),
            path,
            value: Some(value.into()),
            detail: String::new(),
        }
    }
    /// `path: Forbidden: detail`
    pub fn forbidden(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Forbidden, path, value: None, detail: detail.into() }
    }
    /// `path: Duplicate value: "value"`
    pub fn duplicate(path: Path, value: impl Into<Value>) -> Self {
        Self { kind: ErrorType::Duplicate, path, value: Some(value.into()), detail: String::new() }
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
    /// `path: Too few: actual: must have at least min items`
    pub fn too_few(path: Path, actual: usize, min: usize) -> Self {
        Self { kind: ErrorType::TooFew(actual, min), path, value: None, detail: String::new() }
    }
    /// `path: Invalid value: "value": detail`, with the cause `FieldValueTypeInvalid`
    pub fn type_invalid(path: Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::TypeInvalid, path, value: Some(value.into()), detail: detail.into() }
    }
    /// `path: Not found: "value"`
    pub fn not_found(path: Path, value: impl Into<Value>) -> Self {
        Self { kind: ErrorType::NotFound, path, value: Some(value.into()), detail: String::new() }
    }
    /// `path: Internal error: detail`
    pub fn internal(path: Path, detail: impl Into<String>) -> Self {
        Self { kind: ErrorType::Internal, path, value: None, detail: detail.into() }
    }

    /// The message without the path, as it stands in a cause.
    pub fn body(&self) -> String {
        let mut body = self.kind.title().to_owned();
        let value = match (&self.kind, &self.value) {
            (ErrorType::TooMany(actual, _) | ErrorType::TooFew(actual, _), _) => Some(actual.to_string()),
            (kind, Some(value)) if kind.shows_value() => Some(show(value)),
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

impl ErrorType {
    fn title(&self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported(_) => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong(_) | Self::TooLongCharacters(_) => "Too long",
            Self::TooMany(..) => "Too many",
            Self::TooFew(..) => "Too few",
            Self::TooShort(_) => "Too short",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }

    fn cause(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported(_) => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong(_) | Self::TooLongCharacters(_) => "FieldValueTooLong",
            Self::TooMany(..) => "FieldValueTooMany",
            Self::TooFew(..) => "FieldValueTooFew",
            Self::TooShort(_) => "FieldValueTooShort",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn shows_value(&self) -> bool {
        matches!(
            self,
            Self::Invalid | Self::TypeInvalid | Self::NotSupported(_) | Self::NotFound | Self::Duplicate
        )
    }

    /// What the variant's numbers or values say.
    fn rule(&self) -> Option<String> {
        Some(match self {
            Self::NotSupported(values) if !values.is_empty() => {
                let quoted: Vec<_> = values.iter().map(|v| go_quote(v)).collect();
                format!("supported values: {}", quoted.join(", "))
            }
            Self::TooLong(max) => format!("may not be more than {max} {}", plural(*max, "byte")),
            Self::TooLongCharacters(max) => {
                format!("may not be more than {max} {}", plural(*max, "character"))
            }
            Self::TooMany(_, max) => format!("must have at most {max} {}", plural(*max, "item")),
            Self::TooFew(_, min) => format!("must have at least {min} {}", plural(*min, "item")),
            Self::TooShort(min) => format!("must be at least {min} {}", plural(*min, "character")),
            _ => return None,
        })
    }
}

/// The errors in one line, without repeats, in brackets if more than one; `None` if there are none.
pub fn aggregate(errors: &[Error]) -> Option<String> {
    let mut seen = std::collections::HashSet::new();
    let messages: Vec<_> = errors.iter().map(Error::to_string).filter(|m| seen.insert(m.clone())).collect();
    match messages.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        all => Some(format!("[{}]", all.join(", "))),
    }
}

/// A value as an error shows it: strings quoted as Go quotes them, the rest as Go's JSON.
fn show(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        other => other.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    }
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 { word.to_owned() } else { format!("{word}s") }
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
