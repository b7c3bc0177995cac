//! Errors of an API, as metav1.Status.

use serde::{Deserialize, Serialize};

/// An error that is answered to the client as a `Status`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", status.message)]
pub struct ApiError {
    /// The answer.
    pub status: Box<Status>,
}

/// metav1.Status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `Success` or `Failure`.
    pub status: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For machines: `NotFound`, `Conflict`, ...
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// HTTP status.
    #[serde(default)]
    pub code: u16,
}

/// metav1.StatusDetails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// Object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Object's group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Resource, or kind for Invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One per field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds after which the client may try again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// metav1.StatusCause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusCause {
    /// `FieldValueInvalid`, ...
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}
