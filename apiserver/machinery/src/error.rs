//! API errors as metav1.Status.

mod constructors;

pub use constructors::{CAUSES_MAX_BYTES, RESOURCE_VERSION_TOO_LARGE};

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// An error that the client receives as a `Status`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", status.message)]
pub struct ApiError {
    /// The response.
    pub status: Box<Status>,
}

impl ApiError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.status.code
    }
    /// The machine-readable reason: `NotFound`, `Conflict`, ...
    pub fn reason(&self) -> &str {
        &self.status.reason
    }
    /// Seconds for a `Retry-After` header; `None` if the client need not wait.
    pub fn retry_after(&self) -> Option<u32> {
        self.status.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0)
    }
    /// Returns the body of the response: a `Status` object in JSON.
    pub fn to_json(&self) -> Bytes {
        self.status.to_json()
    }
}

/// metav1.Status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `Success` or `Failure`.
    pub status: String,
    /// A message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// A reason for programs: `NotFound`, `Conflict`, ...
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The object that the status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// HTTP status; 0 is left out.
    #[serde(default, skip_serializing_if = "is_zero_code")]
    pub code: u16,
    /// `metadata.continue`: the token with which an expired list can be continued.
    #[serde(skip)]
    pub continue_token: String,
}

impl Status {
    /// The response to a completed delete.
    pub fn success(details: StatusDetails) -> Self {
        Self { status: "Success".into(), details: Some(details), code: 0, ..Self::default() }
    }
    /// Returns a `Status` object in JSON: `kind`, `apiVersion` and `metadata` first, as Kubernetes writes it.
    pub fn to_json(&self) -> Bytes {
        let token = Some(self.continue_token.as_str()).filter(|token| !token.is_empty());
        let metadata = token.map(|token| ("continue", token)).into_iter().collect();
        let object = StatusObject { kind: "Status", api_version: "v1", metadata, status: self };
        // A struct of strings and numbers always serializes.
        Bytes::from(serde_json::to_vec(&object).unwrap_or_default())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusObject<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: BTreeMap<&'static str, &'a str>,
    #[serde(flatten)]
    status: &'a Status,
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
    /// The resource; the kind if the reason is Invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One cause for each invalid field.
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
    /// A message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_zero_code(n: &u16) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::field::{Error, Path};

    const G: &str = "coordination.k8s.io";

    #[test]
    fn status_json_starts_with_kind_version_and_metadata() {
        let json = ApiError::not_found(G, "leases", "x").to_json();
        let text = std::str::from_utf8(&json).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"leases.coordination.k8s.io \"x\" not found","reason":"NotFound","details":{"name":"x","group":"coordination.k8s.io","kind":"leases"},"code":404}"#
        );
    }

    #[test]
    fn one_validation_error_stands_without_brackets() {
        let errors = vec![Error::required(Path::new("spec"), "")];
        assert_eq!(
            ApiError::invalid(G, "Lease", "x", errors).status.message,
            r#"Lease.coordination.k8s.io "x" is invalid: spec: Required value"#
        );
    }

    #[test]
    fn several_validation_errors_stand_in_brackets_without_repeats() {
        let error = || Error::invalid(Path::new("spec").child("a"), "v", "must be w");
        let errors = vec![error(), Error::forbidden(Path::new("spec"), "no"), error()];
        let error = ApiError::invalid(G, "Lease", "x", errors);
        assert_eq!(
            error.status.message,
            r#"Lease.coordination.k8s.io "x" is invalid: [spec.a: Invalid value: "v": must be w, spec: Forbidden: no]"#
        );
        assert_eq!(error.status.details.unwrap().causes.len(), 3);
    }

    #[test]
    fn conflict_has_the_words_that_clients_match() {
        assert_eq!(
            ApiError::modified(G, "leases", "x").status.message,
            r#"Operation cannot be fulfilled on leases.coordination.k8s.io "x": the object has been modified; please apply your changes to the latest version and try again"#
        );
    }

    #[test]
    fn too_large_resource_version_can_be_told_by_its_cause() {
        let error = ApiError::resource_version_too_large(9, 3);
        assert_eq!(error.code(), 504);
        assert_eq!(error.retry_after(), Some(1));
        assert_eq!(error.status.message, "Timeout: Too large resource version: 9, current: 3");
        assert_eq!(error.status.details.unwrap().causes[0].reason, RESOURCE_VERSION_TOO_LARGE);
    }
}
