//! What the controller's patches carry.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::eviction_request::{Interceptor, InterceptorStatus};
use drydock_runtime::testing::{context, failure};

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

/// An aggregator that has just started answers 404 to every path of an API that it does not know yet: such a request was
/// taken for one that is gone, and nobody looked at it again.
#[tokio::test]
async fn a_write_that_is_answered_404_is_tried_again_while_the_cache_has_the_request() {
    let context = context(|method, _, _| failure(if method == "GET" { 200 } else { 404 }, "NotFound"));
    let mut fresh = EvictionRequest::named("ns", "uid");
    fresh.spec.target.pod =
        Some(drydock_api::eviction_request::LocalPodReference { name: "p".into(), uid: "uid".into() });
    let key = fresh.key();
    context.caches.requests.apply(fresh);
    let removals = Removals::new(&context, &Config::default());
    let worker = Worker { context, config: Config::default(), removals };
    assert_eq!(worker.reconcile(key.clone()).await.unwrap(), Outcome::Retry);
    worker.context.caches.requests.remove(&key);
    assert_eq!(worker.reconcile(key).await.unwrap(), Outcome::Done);
}
