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
    let in_the_gap = Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(events(None, Some(request(SAVER, Some(in_the_gap)))).len(), 2);
}

/// A request whose active interceptor has reported, and completed its turn or not; these field managers own its entry.
fn written_by(managers: &[&str], begun: bool, completed: bool) -> Arc<EvictionRequest> {
    let now = Timestamp::now() + SignedDuration::from_hours(1);
    let mut request = (*request(SAVER, begun.then_some(now))).clone();
    request.status.interceptors[0].completion_time = completed.then_some(now);
    let fields = json!({"f:status": {"f:interceptors": {(format!("k:{{\"name\":\"{SAVER}\"}}")): {}}}});
    let entry = |manager: &&str| {
        serde_json::from_value(json!({"manager": manager, "operation": "Update", "fieldsV1": fields}))
            .unwrap()
    };
    request.metadata.managed_fields = managers.iter().map(entry).collect();
    Arc::new(request)
}

fn skips(old: Option<Arc<EvictionRequest>>, new: Arc<EvictionRequest>) -> Vec<(&'static str, String)> {
    let context = context();
    publish_skip(&context, &ObjectChange::between(old, Some(new)));
    context.recorder.take_all()
}

/// A turn that somebody ended by hand looked like one that its interceptor had declined.
#[tokio::test]
async fn a_turn_that_others_end_gets_one_event_on_request_and_pod_that_names_their_field_manager() {
    let before = written_by(&[], false, false);
    let skipped = written_by(&["kubectl-patch"], false, true);
    let told = skips(Some(before), skipped.clone());
    let words = "Eviction of pod web-0 on node n1: the turn of saver.example.com was ended by others, with the field \
                 manager \"kubectl-patch\". The audit log of drydock-apiserver names the user";
    assert_eq!(told, [("InterceptorSkipped", words.to_owned()), ("InterceptorSkipped", words.to_owned())]);
    assert_eq!(skips(Some(skipped.clone()), skipped.clone()), [], "it is told once");
    assert_eq!(skips(None, skipped).len(), 2, "it happened after the term before");
    let begun = written_by(&["its-own"], true, false);
    assert_eq!(skips(Some(begun), written_by(&["kubectl-patch"], true, true)).len(), 2, "it had begun");
}

#[tokio::test]
async fn an_interceptor_that_ends_its_own_turn_is_not_skipped() {
    let untouched = || written_by(&[], false, false);
    assert_eq!(skips(Some(untouched()), written_by(&[SAVER], false, true)), [], "it declines");
    let both = written_by(&[SAVER, "other"], true, true);
    assert_eq!(skips(Some(written_by(&[SAVER], true, false)), both), [], "it is done");
    let own_name = written_by(&["its-own"], true, false);
    assert_eq!(skips(Some(own_name), written_by(&["its-own"], true, true)), [], "under another name");
    assert_eq!(skips(None, written_by(&["its-own"], true, true)), [], "who began is not known");
}

/// The log line named the eviction by UIDs, which mean nothing to an admin.
#[tokio::test]
async fn what_is_passed_over_is_logged_by_pod_node_and_maintenance() {
    let (log, _guard) = log(&target::directives(0));
    let mut request = (*request(SAVER, None)).clone();
    let annotation = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
    Arc::make_mut(&mut request.metadata.annotations).insert(MAINTENANCES_ANNOTATION.into(), annotation);
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
