//! What the controller writes, and when it tries again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use drydock_api::eviction_request::{Interceptor, InterceptorStatus};
use drydock_runtime::HostCaches;
use drydock_runtime::cache::PodPhase;
use drydock_runtime::testing::{context, context_ahead, failure, unknown_path};
use jiff::SignedDuration;
use parking_lot::Mutex;

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

/// A worker with one request that is wanted, whose pod is not cached, and its key.
fn reconciler(context: ControllerContext) -> (RequestReconciler, ObjectKey) {
    let mut fresh = EvictionRequest::named("ns", "uid");
    fresh.spec.target.pod = serde_json::from_value(json!({ "name": "p", "uid": "uid" })).unwrap();
    fresh.spec.requesters = serde_json::from_value(json!([{ "name": "r.example.com" }])).unwrap();
    let key = fresh.key();
    context.caches.requests.apply(fresh);
    let turns = WorkQueue::new("turns", &context.metrics, ExponentialBackoff::WRITES);
    let removals = Removals::new(&context, &Config::default(), &turns);
    let deleted_pods = DeletedPods::default();
    let past_turns = PastTurns::default();
    (RequestReconciler { context, config: Config::default(), deleted_pods, past_turns, removals }, key)
}

/// The clock was read before the pod: if the host took more than ten seconds to answer, each first turn was
/// refused, and the retry took as long.
#[tokio::test]
async fn the_time_of_a_turn_is_read_after_the_pod_was() {
    let (read, written) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
    let (at_read, at_write) = (read.clone(), written.clone());
    // The clock of the context, which is made with this host.
    let clock = Arc::new(std::sync::OnceLock::<Clock>::new());
    let hosts = clock.clone();
    let (reconciler, key) = reconciler(context(move |method, path, body| {
        if method == "PATCH" {
            *at_write.lock() = body["status"]["activationTime"].as_str().map(ToOwned::to_owned);
            return (200, serde_json::to_value(request()).unwrap());
        }
        assert!(path.contains("/pods/p"), "{path}");
        *at_read.lock() = hosts.get().map(Clock::now);
        (200, json!({ "metadata": { "name": "p", "namespace": "ns", "uid": "uid" }, "spec": {} }))
    }));
    clock.set(reconciler.context.clock).unwrap();
    assert_eq!(reconciler.reconcile(key).await.unwrap(), Requeue::Never);
    let written: Timestamp = written.lock().as_ref().expect("the first turn is written").parse().unwrap();
    assert!(written >= drydock_api::time::truncate_to_micros(read.lock().unwrap()), "{written}");
}

/// A pod that was asked for again had all turns once more.
#[tokio::test]
async fn the_first_turn_is_that_of_an_interceptor_that_had_none_in_an_earlier_request() {
    let written = Arc::new(Mutex::new(Value::Null));
    let at_write = written.clone();
    let (reconciler, key) = reconciler(context(move |_, _, body| {
        *at_write.lock() = body["status"].clone();
        (200, serde_json::to_value(request()).unwrap())
    }));
    let caches = &reconciler.context.caches;
    let names = ["a.example.com", "b.example.com"].map(str::to_owned);
    let pod =
        json!({"metadata": {"name": "p", "namespace": "ns", "uid": "uid"}, "status": {"phase": "Running"}});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    caches.pods.apply(Pod { interceptors: Some(names.to_vec()), ..pod });
    let turns = json!([{"uid": "uid", "turns": {"interceptors": ["a.example.com"], "seconds": 9}}]);
    let drain = json!({"metadata": {"name": "m"}, "spec": {"stage": "Drain"}, "status": {"podTurns": turns}});
    caches.maintenances.apply(serde_json::from_value(drain).unwrap());
    assert_eq!(reconciler.reconcile(key).await.unwrap(), Requeue::Never);
    let status = written.lock().take();
    assert_eq!(status["activeInterceptors"], json!(["b.example.com"]));
    assert_eq!(status["earlierTurns"], turns[0]["turns"]);
    assert_eq!(status["targetInterceptors"].as_array().unwrap().len(), 2);
}

/// If the clocks of the controller and the API server differed by too much, no request ever started, and
/// nothing said so.
#[tokio::test]
async fn clocks_too_far_apart_bring_one_warning_on_the_request() {
    let refuses = |method: &str, _: &str, _: Value| failure(if method == "PATCH" { 422 } else { 200 }, "");
    let (reconciler, key) = reconciler(context_ahead(SignedDuration::from_secs(42), refuses));
    let pod = Pod {
        name: "p".into(),
        namespace: "ns".into(),
        uid: "uid".into(),
        phase: PodPhase::Running,
        ..Pod::default()
    };
    reconciler.context.caches.pods.apply(pod);
    for _ in 0..3 {
        assert!(reconciler.reconcile(key.clone()).await.is_err());
    }
    let events = reconciler.context.recorder.take_all();
    assert!(
        matches!(events.as_slice(), [("ClockSkew", message)] if message.contains("s ahead of")),
        "{events:?}"
    );
}

/// An aggregator that has just started answers 404 to every path of an API that it does not know yet: the
/// controller concluded that the request was deleted, and never tried again.
#[tokio::test]
async fn a_write_that_is_answered_404_is_tried_again_while_the_cache_has_the_request() {
    let (reconciler, key) = reconciler(context(|method, _, _| match method {
        "PATCH" => unknown_path(),
        _ => failure(404, "NotFound"),
    }));
    assert!(reconciler.reconcile(key.clone()).await.is_err());
    reconciler.context.caches.requests.delete(&key);
    assert_eq!(reconciler.reconcile(key).await.unwrap(), Requeue::Never);
}

/// The request was ended because a server that answered in place of the host for a moment, and knows no pods,
/// said that the pod does not exist.
#[tokio::test]
async fn a_pod_is_gone_only_where_the_host_says_so_of_this_pod() {
    let (reconciler, key) = reconciler(context(|method, _, _| {
        assert_eq!(method, "GET", "nothing is decided");
        unknown_path()
    }));
    assert!(reconciler.reconcile(key).await.is_err());
}

/// A list that lacks a pod may have missed it; a DELETED event is the host's own word.
#[tokio::test]
async fn a_deleted_event_of_the_pod_takes_the_place_of_the_live_read_and_a_new_list_does_not() {
    for (by_event, reads) in [(true, 0), (false, 1)] {
        let live = Arc::new(Mutex::new(0));
        let count = live.clone();
        let (reconciler, key) = reconciler(context(move |method, _, _| match method {
            "GET" => {
                *count.lock() += 1;
                failure(404, "NotFound")
            }
            _ => failure(409, "Conflict"),
        }));
        let turns = WorkQueue::new("turns", &reconciler.context.metrics, ExponentialBackoff::WRITES);
        subscribe(&reconciler.context, &turns, &reconciler.removals, &reconciler.deleted_pods);
        let pod = Pod { name: "p".into(), namespace: "ns".into(), uid: "uid".into(), ..Pod::default() };
        let pods = &reconciler.context.caches.pods;
        pods.apply(pod.clone());
        if by_event {
            pods.delete(&pod.key());
        } else {
            pods.finish_list(&Default::default());
        }
        // The write is refused: what matters is what was asked before it.
        assert_eq!(reconciler.reconcile(key.clone()).await.unwrap(), Requeue::After(STALE_RETRY_AFTER));
        assert_eq!(*live.lock(), reads, "{by_event}");
        reconciler.context.caches.requests.delete(&key);
        assert!(!reconciler.deleted_pods.contains(&key), "nothing is remembered for a request that is gone");
    }
}

/// The write was tried again after 5, 10, 20 ms and so on, until the cache showed what had changed.
#[tokio::test]
async fn a_write_that_was_decided_on_an_old_state_waits_for_the_cache_to_show_a_newer_one() {
    let (reconciler, key) = reconciler(context(|method, _, _| match method {
        "PATCH" => failure(409, "Conflict"),
        _ => failure(404, "NotFound"),
    }));
    assert_eq!(reconciler.reconcile(key.clone()).await.unwrap(), Requeue::After(STALE_RETRY_AFTER));
    let turns = WorkQueue::new("woken", &reconciler.context.metrics, ExponentialBackoff::WRITES);
    subscribe(&reconciler.context, &turns, &reconciler.removals, &reconciler.deleted_pods);
    assert_eq!(turns.get().await, Some(key.clone()));
    turns.done(&key);
    let mut newer = (*reconciler.context.caches.requests.get(&key).unwrap()).clone();
    newer.metadata.resource_version = "8".into();
    reconciler.context.caches.requests.apply(newer);
    assert_eq!(turns.depth(), 1);
}

/// What an API server keeps, as the cache shows it. DELETE is refused while `removes` is not set.
fn api_server(removes: &Arc<AtomicBool>) -> ControllerContext {
    let caches = Arc::new(OnceLock::<HostCaches>::new());
    let (stored, removes) = (caches.clone(), removes.clone());
    let context = context(move |method, path, body| {
        let requests = &stored.get().expect("it runs").requests;
        let name = path.split(['/', '?']).find(|part| part.starts_with("uid-")).unwrap_or_default();
        let key = ObjectKey::new("ns", name);
        match method {
            "PATCH" => {
                let mut request = (*requests.get(&key).expect("it is there")).clone();
                request.status.conditions =
                    serde_json::from_value(body["status"]["conditions"].clone()).unwrap();
                request.metadata.resource_version.push('1');
                requests.apply(request.clone());
                (200, serde_json::to_value(request).unwrap())
            }
            "DELETE" if removes.load(SeqCst) => {
                requests.delete(&key);
                failure(200, "")
            }
            "DELETE" => failure(503, "ServiceUnavailable"),
            // There is no such pod.
            _ => failure(404, "NotFound"),
        }
    });
    let _ = caches.set(context.caches.clone());
    context
}

/// Requests for pods that do not exist were ended four times as fast as they were removed: their number grew
/// without bound.
#[tokio::test]
async fn no_more_requests_are_ended_in_a_namespace_than_are_removed() {
    let removes = Arc::new(AtomicBool::new(false));
    let context = api_server(&removes);
    let turns = WorkQueue::new("turns", &context.metrics, ExponentialBackoff::WRITES);
    let config = Config { max_finished: 10, ..Config::default() };
    let removals = Removals::new(&context, &config, &turns);
    subscribe(&context, &turns, &removals, &DeletedPods::default());
    for pod in 0..1_000 {
        let mut request = EvictionRequest::named("ns", &format!("uid-{pod}"));
        request.metadata.resource_version = "1".into();
        request.spec.requesters = serde_json::from_value(json!([{ "name": "r.example.com" }])).unwrap();
        request.spec.target.pod = serde_json::from_value(json!({ "name": "p", "uid": "uid" })).unwrap();
        context.caches.requests.apply(request);
    }
    let reconciler = RequestReconciler {
        context: context.clone(),
        config,
        past_turns: PastTurns::default(),
        deleted_pods: DeletedPods::default(),
        removals: removals.clone(),
    };
    let finished = || context.caches.requests.all().iter().filter(|request| request.is_finished()).count();
    work_off(&turns, &reconciler).await;
    assert_eq!(finished(), 111, "those that are kept, and those that may wait to be removed");
    removes.store(true, SeqCst);
    while removals.remove_next().await {
        work_off(&turns, &reconciler).await;
        assert!(finished() <= 111, "{}", finished());
    }
    assert_eq!((finished(), context.caches.requests.len()), (10, 10), "all have ended");
}

async fn work_off(turns: &WorkQueue<ObjectKey>, reconciler: &RequestReconciler) {
    while turns.depth() > 0 {
        let key = turns.get().await.unwrap();
        reconciler.reconcile(key.clone()).await.unwrap();
        turns.done(&key);
    }
}
