//! Messages of reports, and who gets events.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use drydock_runtime::testing::{context, failure};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::report::{Audience, ProgressUpdate};
use crate::testing::{at_second, progress, reporter, request};

#[test]
fn what_is_said_of_a_taint_that_is_awaited_names_who_keeps_it() {
    let pod = Pod { node_name: "n".into(), ..Pod::default() };
    let awaited = |refused: Option<&str>, taken| PendingTaint {
        since: at_second(0),
        refused: refused.map(ToOwned::to_owned),
        taken,
    };
    for (awaited, reason, words) in [
        (
            awaited(Some("denied by a webhook"), Some((3, at_second(0)))),
            NODE_UPDATE_REFUSED,
            "cannot be set: \"denied by a webhook\"",
        ),
        (awaited(None, Some((3, at_second(0)))), OTHER, "taken it away 3 times since 1970-01-01T00:00:00Z"),
        (awaited(None, None), OTHER, "requested at 1970-01-01T00:00:00Z"),
    ] {
        let progress = awaits_taint(&pod, &awaited);
        let blocked = progress.blocked.unwrap();
        assert_eq!((blocked.reason.as_str(), blocked.name.as_str()), (reason, "n"));
        assert!(progress.message.contains(words), "{}", progress.message);
    }
}

#[test]
fn only_a_daemon_set_that_tolerates_the_taint_is_reported_as_coming_back() {
    assert_eq!(returned(&Pod::default(), 3), None);
    let tolerates = Pod { tolerates_drain_taint: true, ..Pod::default() };
    let progress = returned(&tolerates, 3).unwrap();
    assert!(progress.message.contains("3 times in a row"));
    assert_eq!(progress.blocked.unwrap().reason, "DaemonSetReturns");
}

/// A pod's owner got no event that a webhook refused the deletion, and the request was removed with the
/// drain.
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
    let (reporter, denied) = (reporter(&context), refused(&error).unwrap());
    for second in [0, 5] {
        reporter
            .publish_and_report(
                &request(),
                ProgressUpdate::of(denied.clone(), Audience::Owner),
                at_second(second),
            )
            .await
            .unwrap();
    }
    let reasons = || context.recorder.take_all().into_iter().map(|(reason, _)| reason).collect::<Vec<_>>();
    assert_eq!(reasons(), ["EvictionBlocked"], "on the request, which names no pod here");
    assert_eq!(sent.lock()[0]["lastBlocked"]["name"], "w.example.com");
    reporter
        .publish_and_report(
            &request(),
            ProgressUpdate::of(progress("it goes"), Audience::Owner),
            at_second(9),
        )
        .await
        .unwrap();
    assert_eq!(reasons(), ["EvictionUnblocked"]);
    assert_eq!(sent.lock().last().unwrap()["lastBlocked"]["name"], "w.example.com", "it is kept");
}

#[tokio::test]
async fn what_is_a_matter_of_the_node_or_the_daemon_set_is_no_event_for_the_owner() {
    let context = context(|_, _, _| (200, json!({"metadata": {"name": "uid"}})));
    let pod = Pod { tolerates_drain_taint: true, ..Pod::default() };
    let reporter = reporter(&context);
    for second in [0, 120] {
        let progress = returned(&pod, 3).unwrap();
        reporter
            .publish_and_report(
                &request(),
                ProgressUpdate::of(progress, Audience::Readers),
                at_second(second),
            )
            .await
            .unwrap();
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
