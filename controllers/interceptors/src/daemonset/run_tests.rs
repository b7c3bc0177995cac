//! The interceptor and the taint together, on a host that takes every write and shows none of them.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::{Interceptor, InterceptorStatus, LocalPodReference, Requester};
use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeReference, PodType,
};
use drydock_runtime::cache::Taint;
use drydock_runtime::testing;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::super::state::TAINT_SHOWS_WITHIN;
use super::*;
use crate::daemonset;

fn pod(uid: &str) -> Pod {
    let pod = Pod {
        name: uid.into(),
        namespace: "ns".into(),
        uid: uid.into(),
        node_name: "n".into(),
        ..Default::default()
    };
    testing::of_daemon_set("agent", "ds", pod)
}

fn request(uid: &str, targets: &[&str], active: &str) -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", uid);
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request.spec.target.pod = Some(LocalPodReference { name: uid.into(), uid: uid.into() });
    let named = |name: &&str| Interceptor { name: (*name).into() };
    let blank = |name: &&str| InterceptorStatus { name: (*name).into(), ..Default::default() };
    request.status.target_interceptors = targets.iter().map(named).collect();
    request.status.interceptors = targets.iter().map(blank).collect();
    request.status.active_interceptors = vec![active.into()];
    request.status.activation_time = Some(Timestamp::now());
    request
}

fn node(tainted: bool) -> Node {
    let taint = Taint { key: taint::TAINT.into(), effect: taint::EFFECT.into(), ..Default::default() };
    Node { name: "n".into(), taints: tainted.then_some(taint).into_iter().collect(), ..Default::default() }
}

fn maintenance(pod_priority: i32) -> NodeMaintenance {
    let mut m = NodeMaintenance::default();
    m.spec.stage = NodeMaintenanceStage::Drain;
    m.status.node_statuses = vec![NodeMaintenanceNodeStatus {
        node_ref: NodeReference { name: "n".into() },
        drain_targets: vec![DrainPlanEntry {
            pod_priority,
            pod_type: PodType::DaemonSet,
            ..Default::default()
        }],
        ..Default::default()
    }];
    m
}

/// The calls that reach the host: method, the end of the path, and what blocks in a report.
fn host() -> (ControllerContext, Receiver<String>) {
    host_that(|_, _| None)
}

/// A host that gives an answer of its own to some calls, by method and the end of the path.
fn host_that(
    result: impl Fn(&str, &str) -> Option<(u16, Value)> + Send + Sync + 'static,
) -> (ControllerContext, Receiver<String>) {
    let (sender, calls) = channel(64);
    let context = testing::context(move |method, path, body| {
        let name = path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let blocked = &body["status"]["interceptors"][0]["blocked"];
        let blocked = blocked.as_object().map(|by| format!(" {} {}", by["reason"], by["name"]));
        let _ = sender.try_send(format!("{method} {name}{}", blocked.unwrap_or_default()));
        let kind = if method == "DELETE" { "Pod" } else { "Node" };
        let done = || (200, json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": name}}));
        result(method, name).unwrap_or_else(done)
    });
    let caches = &context.caches;
    caches.daemon_sets.finish_list(&Default::default());
    caches.pods.finish_list(&Default::default());
    caches.nodes.finish_list(&Default::default());
    caches.requests.finish_list(&Default::default());
    caches.maintenances.finish_list(&Default::default());
    (context, calls)
}

const REPORT: &str = "PATCH status";

async fn call(calls: &mut Receiver<String>) -> String {
    tokio::time::timeout(Duration::from_secs(30), calls.recv()).await.unwrap().unwrap()
}

/// The next call that is not a report.
async fn next(calls: &mut Receiver<String>) -> String {
    loop {
        let call = call(calls).await;
        if call != REPORT {
            return call;
        }
    }
}

/// The taint and the deletion were sent side by side: the DaemonSet put its pod back before the taint stood.
#[tokio::test(start_paused = true)]
async fn a_pod_is_deleted_after_the_taint_is_seen_on_its_node() {
    let (context, mut calls) = host();
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(pod("p"));
    context.caches.pods.apply(Pod { tolerates_drain_taint: true, ..pod("q") });
    for pod in ["p", "q"] {
        context.caches.requests.apply(request(pod, &[NAME, IMPERATIVE_EVICTION], NAME));
    }
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    // The pod that the taint does not keep away is deleted without it, after the other pod was looked at.
    let mut first = [next(&mut calls).await, next(&mut calls).await];
    first.sort();
    assert_eq!(first, ["DELETE q", "PATCH n"]);
    context.caches.nodes.apply(node(true));
    assert_eq!(next(&mut calls).await, "DELETE p");
}

/// A webhook refused the taint, the pod waited for it without an end, and nothing that programs read said so.
#[tokio::test(start_paused = true)]
async fn a_taint_that_is_refused_is_what_blocks_its_pods() {
    let denied = || testing::failure(403, "denied by a webhook");
    let (context, mut calls) = host_that(move |method, name| (method == "PATCH" && name == "n").then(denied));
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(pod("p"));
    context.caches.requests.apply(request("p", &[NAME, IMPERATIVE_EVICTION], NAME));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!(next(&mut calls).await, "PATCH n");
    let blocked = loop {
        let call = next(&mut calls).await;
        if call != "PATCH n" {
            break call;
        }
    };
    assert_eq!(blocked, "PATCH status \"NodeUpdateRefused\" \"n\"");
}

/// DaemonSets did not get their pods back on the node, and nothing said why.
#[tokio::test(start_paused = true)]
async fn a_taint_that_cannot_be_removed_gets_an_event_on_its_node() {
    let denied = || testing::failure(403, "denied by a webhook");
    let (context, mut calls) = host_that(move |method, name| (method == "PATCH" && name == "n").then(denied));
    context.caches.nodes.apply(node(true));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!([call(&mut calls).await, call(&mut calls).await], ["PATCH n", "PATCH n"], "it is tried again");
    let events = context.recorder.take_all();
    assert!(
        matches!(events.as_slice(), [("NodeUpdateRefused", words)] if words.contains("denied by a webhook")),
        "{events:?}"
    );
}

/// The deletion was tried again and again, and the request went on to say what it said before.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_a_webhook_refuses_is_reported() {
    let denied = || testing::failure(403, "admission webhook \"w.example.com\" denied the request: no");
    let (context, mut calls) = host_that(move |method, _| (method == "DELETE").then(denied));
    context.caches.nodes.apply(node(true));
    context.caches.pods.apply(pod("p"));
    context.caches.requests.apply(request("p", &[NAME, IMPERATIVE_EVICTION], NAME));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!(next(&mut calls).await, "DELETE p");
    assert_eq!(call(&mut calls).await, "PATCH status \"AdmissionWebhook\" \"w.example.com\"");
    let events = context.recorder.take_all();
    let about =
        |(reason, words): &(&str, String)| *reason == "EvictionBlocked" && words.contains("w.example.com");
    assert_eq!(events.iter().filter(|event| about(event)).count(), 2, "on request and pod: {events:?}");
}

/// A worker whose pod is `low` on a node with a higher DaemonSet, which is to stay.
fn reconciler(context: &ControllerContext) -> (DaemonSetReconciler, ObjectKey) {
    let state = Arc::new(DaemonSetState::new(context));
    state.targets.follow(&context.caches.maintenances);
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(Pod { priority: 7, uid: "high".into(), ..pod("high") });
    context.caches.pods.apply(pod("low"));
    context.caches.maintenances.apply(maintenance(0));
    context.caches.requests.apply(request("low", &[NAME, IMPERATIVE_EVICTION], NAME));
    let reconciler = DaemonSetReconciler::new(context.clone(), state);
    (reconciler, ObjectKey::new("ns", "low"))
}

/// The answer to a deletion was slow, and the new pod appeared before it. So the taint was decided before it
/// was known that the pod had returned, and was not decided again.
#[tokio::test(start_paused = true)]
async fn a_pod_that_awaits_a_taint_that_nobody_looks_at_has_it_looked_at() {
    let (context, _calls) = host();
    let (reconciler, low) = reconciler(&context);
    reconciler.state.deletions.lock().deleted(&pod("before"), reconciler.context.clock.now());
    reconciler.reconcile(low.clone()).await.unwrap();
    let queue = reconciler.state.queue.clone();
    let looked_at = async || tokio::time::timeout(Duration::from_secs(60), queue.get()).await.ok().flatten();
    assert_eq!(looked_at().await.as_deref(), Some("n"));
    queue.done(&"n".to_owned());
    reconciler.state.waits.record_missing("n", reconciler.context.clock.now());
    reconciler.reconcile(low).await.unwrap();
    assert_eq!(looked_at().await, None, "it waits for its own retries");
}

/// Only a taint that was refused was reported: one that came late, or that others removed again, kept its
/// pods for an hour without a report.
#[tokio::test(start_paused = true)]
async fn a_taint_that_comes_late_is_what_blocks_its_pods() {
    let (context, mut calls) = host();
    let (reconciler, low) = reconciler(&context);
    reconciler.state.deletions.lock().deleted(&pod("before"), reconciler.context.clock.now());
    reconciler.state.waits.record_missing("n", reconciler.context.clock.now() - TAINT_SHOWS_WITHIN);
    reconciler.reconcile(low).await.unwrap();
    assert_eq!(call(&mut calls).await, "PATCH status \"Other\" \"n\"");
}

/// The taint was set again at once, each time, and no event said so.
#[tokio::test(start_paused = true)]
async fn others_that_take_the_taint_away_again_and_again_are_reported_and_waited_for() {
    let (context, mut calls) = host();
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(pod("p"));
    context.caches.requests.apply(request("p", &[NAME, IMPERATIVE_EVICTION], NAME));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!(next(&mut calls).await, "PATCH n");
    context.caches.nodes.apply(node(true));
    assert_eq!(next(&mut calls).await, "DELETE p");
    context.caches.nodes.apply(node(false));
    assert_eq!(next(&mut calls).await, "PATCH n", "once may be a mistake");
    assert!(context.recorder.take_all().is_empty());
    context.caches.nodes.apply(node(true));
    context.caches.nodes.apply(node(false));
    assert_eq!(next(&mut calls).await, "PATCH status \"Other\" \"n\"", "before it is set again");
    let events = context.recorder.take_all();
    assert!(
        matches!(events.as_slice(), [("TaintConflict", words)] if words.contains("2 times")),
        "{events:?}"
    );
    assert_eq!(next(&mut calls).await, "PATCH n");
}

/// A server that answered in place of the host for a moment, and knows no nodes, ended the work on the taint:
/// its pods waited for it forever.
#[tokio::test(start_paused = true)]
async fn a_taint_that_is_answered_with_a_404_that_names_no_node_is_sent_again() {
    let first = AtomicBool::new(true);
    let (context, mut calls) =
        host_that(move |_, name| (name == "n" && first.swap(false, SeqCst)).then(testing::unknown_path));
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(pod("p"));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!([next(&mut calls).await, next(&mut calls).await], ["PATCH n", "PATCH n"]);
}

/// The higher DaemonSet must be able to put its pod back: there is no taint to wait for, until the lower one
/// has come back.
#[tokio::test(start_paused = true)]
async fn a_pod_below_one_that_is_not_covered_is_deleted_first_and_kept_away_when_it_comes_back() {
    let (context, mut calls) = host();
    context.caches.nodes.apply(node(false));
    context.caches.pods.apply(Pod { priority: 7, uid: "high".into(), ..pod("high") });
    context.caches.pods.apply(pod("low"));
    context.caches.requests.apply(request("low", &[NAME, IMPERATIVE_EVICTION], NAME));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    assert_eq!(next(&mut calls).await, "DELETE low");
    assert_eq!(call(&mut calls).await, REPORT, "then the deletion is remembered");
    context.caches.pods.delete(&ObjectKey::new("ns", "low"));
    context.caches.requests.apply(request("again", &[NAME, IMPERATIVE_EVICTION], NAME));
    context.caches.pods.apply(pod("again"));
    assert_eq!(next(&mut calls).await, "PATCH n");
    context.caches.nodes.apply(node(true));
    assert_eq!(next(&mut calls).await, "DELETE again");
}

/// A change of a pod woke only requests that had us among their interceptors.
#[tokio::test(start_paused = true)]
async fn a_pod_that_a_daemon_set_adopts_late_is_deleted() {
    let (context, mut calls) = host();
    context.caches.nodes.apply(node(true));
    context.caches.pods.apply(Pod { controller: None, ..pod("p") });
    context.caches.requests.apply(request("p", &[IMPERATIVE_EVICTION], IMPERATIVE_EVICTION));
    context.caches.maintenances.apply(maintenance(0));
    tokio::spawn(daemonset::run(context.clone()));
    context.caches.pods.apply(pod("p"));
    assert_eq!(next(&mut calls).await, "DELETE p");
}
