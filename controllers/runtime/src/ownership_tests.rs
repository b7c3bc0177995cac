//! What the host is asked of DaemonSets that pods name.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::cache::{ObjectKey, PodPhase};
use crate::testing::{context, failure, of_daemon_set};

type Asked = Arc<Mutex<Vec<String>>>;

/// A context whose host has one DaemonSet, ns/agent of UID `a`.
fn host() -> (ControllerContext, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let context = context(move |_, path, _| {
        log.lock().unwrap().push(path.to_owned());
        if path != "/apis/apps/v1/namespaces/ns/daemonsets/agent" {
            return failure(404, "NotFound");
        }
        let kind = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"});
        let mut found: Value = kind;
        found["metadata"] = json!({"name": "agent", "namespace": "ns", "uid": "a"});
        (200, found)
    });
    (context, asked)
}

fn pod(name: &str, daemon_set: &str, uid: &str) -> Pod {
    let pod = Pod {
        name: name.into(),
        namespace: "ns".into(),
        uid: name.into(),
        node_name: "n".into(),
        ..Pod::default()
    };
    Pod { daemon_set_owner: DaemonSetOwner::Undecided, ..of_daemon_set(daemon_set, uid, pod) }
}

#[tokio::test]
async fn a_pod_that_was_read_from_the_host_is_decided_by_the_host() {
    let (context, asked) = host();
    for (daemon_set, uid, owner) in [
        ("agent", "a", DaemonSetOwner::Alive),
        ("agent", "b", DaemonSetOwner::Gone),
        ("other", "a", DaemonSetOwner::Gone),
    ] {
        let pod = decided(&context, pod("p", daemon_set, uid)).await.unwrap();
        assert_eq!(pod.daemon_set_owner, owner, "{daemon_set} {uid}");
    }
    assert_eq!(asked.lock().unwrap().len(), 3);
    decided(&context, Pod::default()).await.unwrap();
    let known =
        DaemonSet { name: "agent".into(), namespace: "ns".into(), uid: "a".into(), ..DaemonSet::default() };
    context.caches.daemon_sets.apply(known);
    let known = decided(&context, pod("p", "agent", "a")).await.unwrap();
    assert_eq!((known.daemon_set_owner, asked.lock().unwrap().len()), (DaemonSetOwner::Alive, 3));
}

/// The name would become part of another path.
#[tokio::test]
async fn the_host_is_not_asked_for_what_no_object_can_be_called() {
    let (context, asked) = host();
    for name in ["a%b", "a/b", "../deployments/web", "?watch=true", "a b", ".."] {
        let named = NamedDaemonSet::of(&pod("p", name, "a")).unwrap();
        assert_eq!(answer(&context.client, &named).await.unwrap(), DaemonSetOwner::Gone, "{name}");
        let pod = decided(&context, pod("p", name, "a")).await.unwrap();
        assert_eq!(pod.daemon_set_owner, DaemonSetOwner::Gone, "{name}");
    }
    assert!(asked.lock().unwrap().is_empty(), "{:?}", asked.lock().unwrap());
}

/// Each of these pods would wait forever, and so would a request for the one without a node.
#[tokio::test(start_paused = true)]
async fn each_daemon_set_that_the_cache_lacks_is_asked_for_once_while_pods_name_it() {
    let (context, asked) = host();
    let caches = context.caches.clone();
    for (name, daemon_set, uid) in [("p", "agent", "a"), ("q", "agent", "a"), ("r", "made-up", "x")] {
        caches.pods.apply(pod(name, daemon_set, uid));
    }
    caches.pods.apply(Pod { node_name: String::new(), ..pod("unbound", "unbound", "u") });
    caches.pods.apply(Pod { phase: PodPhase::Failed, ..pod("over", "over", "o") });
    caches.daemon_sets.finish_list(&Default::default());
    caches.pods.finish_list(&caches.pods.all().iter().map(|pod| ObjectKey::new("ns", &pod.name)).collect());
    let running = tokio::spawn(run(context.clone()));
    let owner = |name: &str| caches.pods.find("ns", name).unwrap().daemon_set_owner;
    let (decided, wake) = (Arc::new(tokio::sync::Notify::new()), caches.pods.clone());
    let heard = decided.clone();
    wake.subscribe(move |_| heard.notify_one());
    while ["p", "r", "unbound"].iter().any(|name| owner(name) == DaemonSetOwner::Undecided) {
        decided.notified().await;
    }
    assert_eq!((owner("p"), owner("q")), (DaemonSetOwner::Alive, DaemonSetOwner::Alive));
    assert_eq!((owner("r"), owner("unbound")), (DaemonSetOwner::Gone, DaemonSetOwner::Gone));
    assert_eq!(owner("over"), DaemonSetOwner::Undecided, "nobody looks at it");
    assert_eq!(asked.lock().unwrap().len(), 3, "{:?}", asked.lock().unwrap());
    context.tasks.shutdown().cancel();
    running.await.unwrap();
}

/// The list with which the cache begins anew may be older than the DaemonSet, or newer than its end.
#[tokio::test]
async fn what_the_cache_does_not_show_is_asked_for_again() {
    let (context, asked) = host();
    let named = NamedDaemonSet::of(&pod("p", "agent", "a")).unwrap();
    assert_eq!(ask(&context, &named).await.unwrap(), Requeue::Never, "no pod names it");
    context.caches.pods.apply(pod("p", "agent", "a"));
    assert_eq!(ask(&context, &named).await.unwrap(), Requeue::After(SHOWS_WITHIN));
    assert_eq!(ask(&context, &named).await.unwrap(), Requeue::After(SHOWS_WITHIN));
    let shown =
        DaemonSet { name: "agent".into(), namespace: "ns".into(), uid: "a".into(), ..DaemonSet::default() };
    context.caches.daemon_sets.apply(shown);
    assert_eq!(ask(&context, &named).await.unwrap(), Requeue::Never);
    assert_eq!(asked.lock().unwrap().len(), 2);
}
