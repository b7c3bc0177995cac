//! Which entry is written after the last one.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use drydock_api::eviction_request::Blocked;
use drydock_api::eviction_request::interceptors::DAEMON_SET as NAME;
use drydock_api::eviction_request::maintenances::MAINTENANCES_ANNOTATION;
use drydock_api::reasons::ADMISSION_WEBHOOK;
use drydock_runtime::testing::{context, failure, unknown_path};
use serde_json::{Value, json};

use super::*;
use crate::testing::{at_second, progress, reporter, request};

/// An aggregator that has just started answers 404 to every path of an API that it does not know yet. If the
/// decline got such an answer, the turn stayed ours until its heartbeat deadline of twenty minutes.
#[tokio::test]
async fn a_turn_that_could_not_be_declined_is_declined_again() {
    let context = context(|_, _, _| unknown_path());
    assert!(reporter(&context).decline(&request(), "no", at_second(0)).await.is_err());
}

/// The second report was made from the cached entry and set another startTime: the API server answered 422, and the
/// interceptor was silent for half a minute.
#[tokio::test]
async fn a_report_follows_the_one_before_it_though_the_cache_does_not_show_that_yet() {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let writes = sent.clone();
    let context = context(move |_, _, body| {
        writes.lock().push(body["status"]["interceptors"][0].clone());
        (200, json!({"metadata": {"name": "uid"}}))
    });
    let reporter = reporter(&context);
    let stale = request();
    reporter
        .publish_and_report(&stale, ProgressUpdate::of(progress("one"), Audience::Readers), at_second(0))
        .await
        .unwrap();
    reporter
        .publish_and_report(&stale, ProgressUpdate::of(progress("two"), Audience::Readers), at_second(5))
        .await
        .unwrap();
    reporter
        .publish_and_report(&stale, ProgressUpdate::of(progress("two"), Audience::Readers), at_second(6))
        .await
        .unwrap();
    let sent = sent.lock().clone();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1]["message"], "two");
    for field in ["startTime", "heartbeatTime"] {
        assert_eq!(sent[1][field], sent[0][field], "{field}");
    }
}

/// The report about what blocks failed, the pod then left within ten seconds, and its request was removed at once.
#[tokio::test]
async fn what_the_owner_had_an_event_about_is_owed_until_the_entry_says_it() {
    let is_away = Arc::new(AtomicBool::new(true));
    let answer = is_away.clone();
    let context = context(move |_, _, _| match answer.load(SeqCst) {
        true => failure(503, "ServiceUnavailable"),
        false => (200, json!({"metadata": {"name": "uid"}})),
    });
    let reporter = reporter(&context);
    let blocked =
        Blocked { reason: ADMISSION_WEBHOOK.to_owned(), name: "w".to_owned(), ..Blocked::default() };
    let progress = ProgressReport { blocked: Some(blocked), ..progress("no") };
    let report = async || {
        let update = ProgressUpdate::of(progress.clone(), Audience::Owner);
        reporter.publish_and_report(&request(), update, at_second(0)).await
    };
    assert!(!reporter.owes_report(&request()));
    assert!(report().await.is_err() && reporter.owes_report(&request()));
    is_away.store(false, SeqCst);
    assert!(report().await.is_ok() && !reporter.owes_report(&request()));
}

#[tokio::test]
async fn what_was_refused_is_forgotten_and_tried_again_soon() {
    let context = context(|_, _, _| failure(422, "Invalid"));
    let reporter = reporter(&context);
    let outcome = reporter
        .publish_and_report(&request(), ProgressUpdate::of(progress("one"), Audience::Readers), at_second(0))
        .await
        .unwrap();
    assert!(outcome.is_refused && outcome.wake.is_none());
    assert_eq!(reporter.entry(&request()), request().interceptor(NAME).cloned(), "the cache knows better");
}

#[tokio::test]
async fn a_report_waits_for_the_interval_and_the_last_one_does_not() {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let writes = sent.clone();
    let context = context(move |_, _, body| {
        writes.lock().push(body["status"]["interceptors"][0]["message"].clone());
        (200, json!({"metadata": {"name": "uid"}}))
    });
    let reporter = Reporter::new(context, NAME, Duration::from_secs(100));
    let tell = async |progress| {
        let told = reporter
            .publish_and_report(&request(), ProgressUpdate::of(progress, Audience::Readers), at_second(0))
            .await;
        told.unwrap().wake.unwrap_or_default() < at_second(101)
    };
    assert!(!tell(progress("one")).await, "a heartbeat");
    assert!(tell(progress("two")).await, "when the interval is over");
    tell(ProgressReport { completed: true, ..progress("three") }).await;
    assert_eq!(*sent.lock(), ["one", "three"]);
}

#[test]
fn a_report_begins_with_why_there_is_a_request() {
    let mut request = EvictionRequest::named("ns", "u");
    assert_eq!(with_reason(progress("it goes"), &request), progress("it goes"));
    let annotation = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
    Arc::make_mut(&mut request.metadata.annotations).insert(MAINTENANCES_ANNOTATION.into(), annotation);
    let reported = with_reason(progress("it goes"), &request);
    assert_eq!(reported.message, "for NodeMaintenance tidy (RAM swap): it goes");
}
