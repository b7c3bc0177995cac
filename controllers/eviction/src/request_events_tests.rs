//! Events for the owner of a pod, and log lines for the admin.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::maintenances::MAINTENANCES_ANNOTATION;
use drydock_api::eviction_request::{Interceptor, InterceptorStatus, PodInfo};
use drydock_logging::target;
use drydock_logging::testing::log;
use drydock_runtime::testing;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::*;

const SAVER: &str = "saver.example.com";

/// A request whose active interceptor began at a time, or has not begun.
fn request(active: &str, began: Option<Timestamp>) -> Arc<EvictionRequest> {
    let mut request = EvictionRequest::named("shop", "3f0e-uid");
    request.metadata.uid = "own".into();
    request.spec.target.pod = serde_json::from_value(json!({ "name": "web-0", "uid": "3f0e-uid" })).unwrap();
    request.status.pod_info = Some(PodInfo { node_name: "n1".into(), ..Default::default() });
    request.status.target_interceptors = vec![Interceptor { name: active.into() }];
    request.status.interceptors =
        vec![InterceptorStatus { name: active.into(), start_time: began, ..Default::default() }];
    request.status.active_interceptors = vec![active.into()];
    Arc::new(request)
}

fn context() -> ControllerContext {
    testing::context(|_, _, _| testing::failure(500, "nothing is written"))
}

/// The reasons of the events that a change brings, in a term that began now.
fn events(old: Option<Arc<EvictionRequest>>, new: Option<Arc<EvictionRequest>>) -> Vec<&'static str> {
    let context = context();
    publish_start(&context, &ObjectChange::between(old, new));
    context.recorder.take_all().into_iter().map(|(reason, _)| reason).collect()
}

#[tokio::test]
async fn an_interceptor_of_others_that_begins_gets_one_event_on_request_and_pod() {
    let (before, now) = (request(SAVER, None), request(SAVER, Some(Timestamp::now())));
    let both = ["InterceptorStarted", "InterceptorStarted"];
    assert_eq!(events(Some(before.clone()), Some(now.clone())), both);
    assert_eq!(events(Some(now.clone()), Some(now)), [""; 0]);
    assert_eq!(events(Some(before.clone()), Some(before)), [""; 0]);
}

#[tokio::test]
async fn the_beginning_of_a_default_interceptor_is_no_news() {
    let (before, now) =
        (request(IMPERATIVE_EVICTION, None), request(IMPERATIVE_EVICTION, Some(Timestamp::now())));
    assert_eq!(events(Some(before), Some(now)), [""; 0]);
}

/// A start while no process held the lease never got an event; one of the previous term must not get a second
/// one.
#[tokio::test]
async fn what_began_before_this_term_gets_an_event_only_if_the_term_before_did_not_see_it() {
    let long_ago = Timestamp::now() - SignedDuration::from_secs(60);
    assert_eq!(events(None, Some(request(SAVER, Some(long_ago)))), [""; 0]);
    let in_the_gap = Timestamp::now() + SignedDuration::from_secs(1);
    assert_eq!(events(None, Some(request(SAVER, Some(in_the_gap)))).len(), 2);
}

/// The log line named the eviction by UIDs, which mean nothing to an admin.
#[tokio::test]
async fn what_is_passed_over_is_logged_by_pod_node_and_maintenance() {
    let (log, _guard) = log(&target::directives(0));
    let mut request = (*request(SAVER, None)).clone();
    let annotation = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
    request.metadata.annotations.insert(MAINTENANCES_ANNOTATION.into(), annotation);
    let warning = Warning { reason: "InterceptorTimedOut", message: "it is passed over".into() };
    publish_warnings(&context(), &request, &request.status, vec![warning]);
    let lines = log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let told = "Eviction of pod web-0 for NodeMaintenance tidy (RAM swap) on node n1: it is passed over";
    assert!(lines[0].contains(told) && lines[0].contains("shop"), "{lines:?}");
    assert!(!lines[0].contains("3f0e-uid"), "{lines:?}");
}

/// The levels of `-v`, by lines of this controller.
#[tokio::test]
async fn each_level_shows_a_line_that_the_level_below_lacks() {
    let (old, key) = (request(SAVER, None), ObjectKey::new("shop", "3f0e-uid"));
    let mut next = (*request("next.example.com", None)).clone();
    next.status.processed_interceptors = vec![SAVER.into()];
    let of_levels =
        [(0, "it is passed over"), (2, "interceptor's turn"), (4, "status written: the turn passes on")];
    for level in 0..=5 {
        let (log, _guard) = log(&target::directives(level));
        report(&key, &old.status, &next.status);
        let warning = Warning { reason: "InterceptorTimedOut", message: "it is passed over".into() };
        publish_warnings(&context(), &next, &next.status, vec![warning]);
        let lines = log.lines().join("\n");
        for (from, line) in of_levels {
            assert_eq!(lines.contains(line), from <= level, "-v {level}: {line}: {lines}");
        }
    }
}
