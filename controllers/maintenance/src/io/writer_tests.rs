//! What is written to the host, and what the host is asked first.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::{Arc, Mutex};

use drydock_runtime::testing::context;

use super::*;
use crate::actions::RequestLane;
use crate::observed::asked_again::AskedAgain;

type Seen = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A writer whose API server answers each request with what `answer` makes of its number, method and path.
fn writer(answer: impl Fn(usize, &str, &str) -> Value + Send + Sync + 'static) -> (ActionWriter, Seen) {
    let seen = Seen::default();
    let log = seen.clone();
    let context = context(move |method, path, body| {
        let mut log = log.lock().unwrap();
        log.push((method.to_owned(), path.to_owned(), body));
        (200, answer(log.len(), method, path))
    });
    (ActionWriter { context, config: Config::default(), observed: ObservedChanges::default() }, seen)
}

fn request(requesters: &[&str], version: &str) -> Value {
    let requesters: Vec<Value> = requesters.iter().map(|name| json!({ "name": name })).collect();
    json!({ "metadata": { "name": "u", "namespace": "ns", "uid": "own", "resourceVersion": version },
        "spec": { "target": { "pod": { "name": "p", "uid": "u" } }, "requesters": requesters } })
}

fn withdrawal() -> Action {
    let change = RequestChange::Withdraw { pod: "p".into(), request: "own".into() };
    Action::Request { namespace: "ns".into(), pod: "u".into(), change, lane: RequestLane::default() }
}

#[tokio::test]
async fn a_withdrawal_is_an_apply_without_our_entry() {
    let (writer, seen) = writer(|_, _, _| request(&["other.example.com"], "8"));
    let action = withdrawal();
    assert!(matches!(writer.write(&action).await.unwrap(), WriteResult::At(8)));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].2["metadata"]["uid"], "own");
    assert!(seen[0].2["spec"].get("requesters").is_none());
}

fn with_labels(mut request: Value, keys: &[&str]) -> EvictionRequest {
    let owned: BTreeMap<String, Value> = keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
    request["metadata"]["labels"] = json!({ "app": "web", "own": "x" });
    request["metadata"]["managedFields"] = json!([{ "manager": REQUESTER, "operation": "Apply",
        "fieldsV1": { "f:metadata": { "f:labels": owned } } }]);
    serde_json::from_value(request).unwrap()
}

/// They were synchronized by another write for each pod.
#[tokio::test]
async fn a_request_is_made_with_the_labels_of_its_pod_and_keeps_them_when_we_withdraw() {
    let (writer, seen) = writer(|_, _, _| request(&["other.example.com"], "8"));
    let caches = &writer.context.caches;
    let labels: BTreeMap<String, String> = [("app".to_owned(), "web".to_owned())].into();
    let (name, namespace, uid) = ("p".into(), "ns".into(), "u".into());
    caches.pods.apply(Pod { name, namespace, uid, labels: labels.clone().into(), ..Pod::default() });
    let ask =
        RequestChange::Ask { pod: "p".into(), request: None, maintenances: "".into(), asked_again: None };
    let lane = RequestLane::default();
    writer
        .write(&Action::Request { namespace: "ns".into(), pod: "u".into(), change: ask, lane })
        .await
        .unwrap();
    caches.requests.apply(with_labels(request(&[REQUESTER, "other.example.com"], "7"), &["app"]));
    writer.write(&withdrawal()).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        (&seen[0].2["metadata"]["labels"], &seen[1].2["metadata"]["labels"]),
        (&json!(labels), &json!(labels))
    );
}

#[tokio::test]
async fn an_evicted_request_is_deleted_only_as_it_was_seen() {
    let (writer, seen) =
        writer(|_, _, _| json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }));
    let change = RequestChange::Delete { request: "own".into(), resource_version: "7".into() };
    let lane = RequestLane::default();
    writer.write(&Action::Request { namespace: "ns".into(), pod: "u".into(), change, lane }).await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].0, "DELETE");
    assert_eq!(seen[0].2["preconditions"], json!({ "uid": "own", "resourceVersion": "7" }));
}

/// An entry of our name that somebody had also set with kubectl stayed in the list: the maintenance never
/// ended, and each planning applied it again.
#[tokio::test]
async fn an_entry_of_our_name_that_others_hold_too_is_taken_out() {
    let (writer, seen) = writer(|n, _, _| match n {
        1 => request(&[REQUESTER, "other.example.com"], "8"),
        _ => request(&["other.example.com"], "9"),
    });
    let action = withdrawal();
    assert!(matches!(writer.write(&action).await.unwrap(), WriteResult::At(9)));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    let wanted = json!({ "metadata": { "uid": "own", "resourceVersion": "8" },
        "spec": { "requesters": [{ "name": "other.example.com" }] } });
    assert_eq!(seen[1].2, wanted);
}

/// Without the first annotation people could not see why there is a request; without the second, how often
/// the pod had been asked for.
#[tokio::test]
async fn an_ask_carries_why_it_is_made_and_how_often_it_was_in_the_same_write() {
    let maintenances = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
    let mut lost = EvictionRequest::named("ns", "u");
    lost.metadata.creation_timestamp = Some("2026-01-01T12:00:00Z".parse().unwrap());
    let again = json!({ "times": 1, "firstTime": "2026-01-01T12:00:00Z" }).to_string();
    for (asked_again, told) in [(None, None), (AskedAgain::after(&lost), Some(again))] {
        let (writer, seen) = writer(|_, _, _| request(&[REQUESTER], "8"));
        let change = RequestChange::Ask {
            pod: "p".into(),
            request: None,
            maintenances: maintenances.as_str().into(),
            asked_again,
        };
        let action =
            Action::Request { namespace: "ns".into(), pod: "u".into(), change, lane: RequestLane::default() };
        assert!(matches!(writer.write(&action).await.unwrap(), WriteResult::At(8)));
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 1);
        let annotations = &seen[0].2["metadata"]["annotations"];
        assert_eq!(annotations[MAINTENANCES_ANNOTATION], json!(maintenances));
        assert_eq!(annotations.get(ASKED_AGAIN_ANNOTATION), told.map(Value::from).as_ref());
        assert_eq!(seen[0].2["spec"]["requesters"], json!([{ "name": REQUESTER }]));
    }
}

fn drained(confirm: Option<PodType>) -> Action {
    let (node, uid) = ("n".into(), "n".into());
    Action::Conditions { node, uid, set: vec![], remove: vec![], confirm }
}

#[tokio::test]
async fn a_node_on_which_the_host_still_knows_a_pod_is_not_called_drained() {
    for (phase, written) in [("Running", false), ("Succeeded", true)] {
        let (writer, seen) = writer(move |_, _, path| {
            if path.starts_with("/api/v1/nodes") {
                return json!({ "metadata": { "name": "n", "resourceVersion": "5" } });
            }
            let pod = json!({ "metadata": { "name": "p", "namespace": "ns" }, "status": { "phase": phase } });
            json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod] })
        });
        let action = drained(Some(PodType::Static));
        let result = writer.write(&action).await.unwrap();
        assert_eq!(matches!(result, WriteResult::At(5)), written, "{phase}");
        assert_eq!(
            writer.observed.take().confirmed.contains(&("n".to_owned(), PodType::Static)),
            written,
            "{phase}"
        );
        let seen = seen.lock().unwrap();
        let fields =
            "fieldSelector=spec.nodeName%3Dn%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
        assert!(seen[0].1.contains(fields) && seen[0].1.contains("limit="), "{}", seen[0].1);
        assert!(!seen[0].1.contains("resourceVersion"), "the read must not be served from an old state");
    }
}

/// The cache of DaemonSets knows nothing of a pod that is read from the host before it has come there.
#[tokio::test]
async fn the_host_is_asked_for_the_daemon_set_of_a_pod_that_it_still_knows() {
    for (uid, written) in [("d", true), ("made-up", false)] {
        let (writer, seen) = writer(move |_, _, path| {
            let named = |name: &str, uid: &str| json!({ "metadata": { "name": name, "namespace": "ns", "uid": uid } });
            if path.starts_with("/api/v1/nodes") {
                return json!({ "metadata": { "name": "n", "resourceVersion": "5" } });
            }
            if path.contains("/daemonsets/") {
                return named("agent", "d");
            }
            let mut pod = named("p", "p");
            pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": uid, "controller": true }]);
            json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod] })
        });
        let result = writer.write(&drained(Some(PodType::Default))).await.unwrap();
        assert_eq!(matches!(result, WriteResult::At(5)), written, "{uid}");
        let asked = |path: &str| path == "/apis/apps/v1/namespaces/ns/daemonsets/agent";
        assert_eq!(seen.lock().unwrap().iter().filter(|(_, path, _)| asked(path)).count(), 1, "{uid}");
    }
}

/// All pods of the node were read at once, of up to 1.5 MiB each, for eight nodes at a time.
#[tokio::test]
async fn a_node_is_read_in_pages_up_to_the_first_pod_that_is_left() {
    for (left_on, written) in [(Some(2), false), (None, true)] {
        let (writer, seen) = writer(move |n, _, path| {
            if path.starts_with("/api/v1/nodes") {
                return json!({ "metadata": { "name": "n", "resourceVersion": "5" } });
            }
            let phase = if left_on == Some(n) { "Running" } else { "Succeeded" };
            let pod = json!({ "metadata": { "name": "p", "namespace": "ns" }, "status": { "phase": phase } });
            let more = if n < 3 { format!("page-{n}") } else { String::new() };
            json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "continue": more }, "items": [pod] })
        });
        let result = writer.write(&drained(Some(PodType::Static))).await.unwrap();
        assert_eq!(matches!(result, WriteResult::At(5)), written);
        let seen = seen.lock().unwrap();
        let lists = seen.iter().filter(|(_, path, _)| path.starts_with("/api/v1/pods")).count();
        assert_eq!(lists, left_on.unwrap_or(3));
        assert!(seen[1].1.contains("continue=page-1"), "{}", seen[1].1);
    }
}

/// A merge patch does not change fields that it does not name, also inside nested objects.
#[test]
fn a_count_that_goes_back_is_written() {
    let meta = NodeMaintenance::default().metadata;
    let (none, mut some) = (NodeMaintenanceStatus::default(), NodeMaintenanceStatus::default());
    some.gone_nodes.drained = 2;
    assert_eq!(patch::status(&meta, &some, &none, &[])["status"], json!({ "goneNodes": null }));
    let wanted = json!({ "goneNodes": { "drained": 2, "undrained": 0 } });
    assert_eq!(patch::status(&meta, &none, &some, &[])["status"], wanted);
}
