//! What the controller's patches carry.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::eviction_request::{Interceptor, InterceptorStatus};

use super::*;

fn request() -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", "uid");
    request.metadata.resource_version = "7".into();
    request.metadata.uid = "own".into();
    request.status.target_interceptors = vec![Interceptor { name: "a.example.com".into() }];
    request.status.interceptors =
        vec![InterceptorStatus { name: "a.example.com".into(), ..Default::default() }];
    request.status.active_interceptors = vec!["a.example.com".into()];
    request
}

#[test]
fn patch_names_only_what_changes_and_the_version_it_was_decided_on() {
    let request = request();
    let mut status = request.status.clone();
    status.observed_generation = 3;
    let patch = status_patch(&request, &status);
    assert_eq!(
        patch,
        json!({"metadata": {"resourceVersion": "7", "uid": "own"}, "status": {"observedGeneration": 3}})
    );
}

#[test]
fn patch_clears_with_null() {
    let request = request();
    let mut status = request.status.clone();
    status.active_interceptors.clear();
    assert_eq!(status_patch(&request, &status)["status"], json!({"activeInterceptors": null}));
}

#[test]
fn patch_never_names_the_entries_of_interceptors_once_they_are_there() {
    let request = request();
    let mut status = request.status.clone();
    status.interceptors[0].message = "not ours to write".into();
    assert_eq!(status_patch(&request, &status)["status"], json!({}));
}

#[test]
fn patch_initialises_the_entries_with_the_targets() {
    let mut fresh = request();
    let status = std::mem::take(&mut fresh.status);
    let patch = status_patch(&fresh, &status);
    assert_eq!(patch["status"]["interceptors"], json!([{"name": "a.example.com", "message": ""}]));
}
