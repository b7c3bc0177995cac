//! Bodies of Status, with the messages that clients match.

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
