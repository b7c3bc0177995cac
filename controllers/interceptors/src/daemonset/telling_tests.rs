//! What is written, by what was written before.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use drydock_api::eviction_request::Requester;
use drydock_runtime::testing::{context, failure, unknown_path};
use serde_json::{Value, json};

use super::*;

fn request() -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", "uid");
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request.status.active_interceptors = vec![NAME.into()];
    request.status.interceptors = vec![InterceptorStatus { name: NAME.into(), ..Default::default() }];
    request
}

fn news(message: &str) -> News {
    News { message: message.into(), ..News::default() }
}

fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// An aggregator that has just started answers 404 to every path of an API that it does not know yet. Declined then,
/// the turn was ours until its heartbeat deadline of twenty minutes.
#[tokio::test]
async fn a_turn_that_could_not_be_declined_is_declined_again() {
    let context = context(|_, _, _| unknown_path());
    assert!(Reporter::default().decline(&context, &request(), at_second(0)).await.is_err());
}

/// The second one, made from the cache, set another startTime: 422, and silence for half a minute.
#[tokio::test]
async fn a_report_follows_the_one_before_it_though_the_cache_does_not_show_that_yet() {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let writes = sent.clone();
    let context = context(move |_, _, body| {
        writes.lock().push(body["status"]["interceptors"][0].clone());
        (200, json!({"metadata": {"name": "uid"}}))
    });
    let reporter = Reporter::default();
    let stale = request();
    reporter.tell(&context, &stale, &news("one"), Audience::Readers, at_second(0)).await.unwrap();
    reporter.tell(&context, &stale, &news("two"), Audience::Readers, at_second(5)).await.unwrap();
    reporter.tell(&context, &stale, &news("two"), Audience::Readers, at_second(6)).await.unwrap();
    let sent = sent.lock().clone();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[1]["message"], "two");
    for field in ["startTime", "heartbeatTime"] {
        assert_eq!(sent[1][field], sent[0][field], "{field}");
    }
}

#[tokio::test]
async fn what_was_refused_is_forgotten_and_tried_again_soon() {
    let context = context(|_, _, _| failure(422, "Invalid"));
    let reporter = Reporter::default();
    let outcome =
        reporter.tell(&context, &request(), &news("one"), Audience::Readers, at_second(0)).await.unwrap();
    assert_eq!(outcome, Outcome::Retry);
    assert_eq!(reporter.entry(&request()), request().interceptor(NAME).cloned(), "the cache knows better");
}

#[test]
fn what_is_said_of_a_taint_that_is_awaited_names_who_keeps_it() {
    let pod = Pod { node_name: "n".into(), ..Pod::default() };
    let awaited = |refused: Option<&str>, taken| Awaited {
        since: at_second(0),
        refused: refused.map(ToOwned::to_owned),
        taken,
    };
    for (awaited, reason, words) in [
        (
            awaited(Some("denied by a webhook"), Some((3, at_second(0)))),
            NODE_UPDATE_REFUSED,
            "cannot be set: denied by a webhook",
        ),
        (awaited(None, Some((3, at_second(0)))), OTHER, "taken it away 3 times since 1970-01-01T00:00:00Z"),
        (awaited(None, None), OTHER, "since 1970-01-01T00:00:00Z"),
    ] {
        let news = awaits_taint(&pod, &awaited);
        let blocked = news.blocked.unwrap();
        assert_eq!((blocked.reason.as_str(), blocked.name.as_str()), (reason, "n"));
        assert!(news.message.contains(words), "{}", news.message);
    }
}

#[test]
fn only_a_daemon_set_that_tolerates_the_taint_is_told_of_as_coming_back() {
    assert_eq!(returned(&Pod::default(), 3), None);
    let tolerates = Pod { tolerates_drain_taint: true, ..Pod::default() };
    let news = returned(&tolerates, 3).unwrap();
    assert!(news.message.contains("3 times in a row"));
    assert_eq!(news.blocked.unwrap().reason, "DaemonSetReturns");
}

/// A pod's owner never heard that a webhook refused the deletion, and the request went with the drain.
#[tokio::test]
async fn the_owner_is_told_once_of_what_refuses_the_deletion_and_the_entry_keeps_it() {
    let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
    let writes = sent.clone();
    let context = context(move |_, _, body| {
        writes.lock().push(body["status"]["interceptors"][0].clone());
        (200, json!({"metadata": {"name": "uid"}}))
    });
    let (code, mut status) = failure(403, "Forbidden");
    status["message"] = "admission webhook \"w.example.com\" denied the request: no".into();
    let error = kube::Error::Api(serde_json::from_value(status).unwrap());
    assert_eq!(code, 403);
    let (reporter, denied) = (Reporter::default(), refused(&error).unwrap());
    for second in [0, 5] {
        reporter.tell(&context, &request(), &denied, Audience::Owner, at_second(second)).await.unwrap();
    }
    let reasons = || context.recorder.take_all().into_iter().map(|(reason, _)| reason).collect::<Vec<_>>();
    assert_eq!(reasons(), ["EvictionBlocked"], "on the request, which names no pod here");
    assert_eq!(sent.lock()[0]["lastBlocked"]["name"], "w.example.com");
    reporter.tell(&context, &request(), &news("it goes"), Audience::Owner, at_second(9)).await.unwrap();
    assert_eq!(reasons(), ["EvictionUnblocked"]);
    assert_eq!(sent.lock().last().unwrap()["lastBlocked"]["name"], "w.example.com", "it is kept");
}

#[tokio::test]
async fn what_is_a_matter_of_the_node_or_the_daemon_set_is_no_event_for_the_owner() {
    let context = context(|_, _, _| (200, json!({"metadata": {"name": "uid"}})));
    let pod = Pod { tolerates_drain_taint: true, ..Pod::default() };
    let reporter = Reporter::default();
    for second in [0, 120] {
        let news = returned(&pod, 3).unwrap();
        reporter.tell(&context, &request(), &news, Audience::Readers, at_second(second)).await.unwrap();
    }
    assert_eq!(context.recorder.take_all(), []);
}

#[test]
fn a_daemon_set_pod_that_a_finalizer_holds_says_so_ten_seconds_after_its_grace_period() {
    let pod =
        Pod { deletion_timestamp: Some(at_second(30)), finalizers: vec!["f/x".into()], ..Pod::default() };
    assert_eq!(terminating(&pod, "", at_second(39)).blocked, None);
    let late = terminating(&pod, "", at_second(40));
    assert_eq!(late.blocked.unwrap().reason, "Finalizer");
    assert!(late.message.contains("it has the finalizers f/x"), "{}", late.message);
}
