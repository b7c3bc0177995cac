//! Field paths and validation errors as Kubernetes words them (k8s.io/apimachinery/pkg/util/validation/field).

use std::fmt;

use serde_json::Value;

/// A path to a field: `spec.requesters[0].name`, `metadata.labels[a.b/c]`.
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
    /// `FieldValueTooMany`: actual number and maximum.
    TooMany(usize, usize),
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
        Self { kind: ErrorType::NotSupported(supported), path, value: Some(value.into()), detail: String::new() }
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
    /// `path: Too many: actual: must have at most max items`
    pub fn too_many(path: Path, actual: usize, max: usize) -> Self {
        Self { kind: ErrorType::TooMany(actual, max), path, value: None, detail: String::new() }
    }
}
