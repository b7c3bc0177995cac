//! Which ends of requests leave turns behind, and for how long.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use drydock_runtime::Cacheable;
use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T12:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A request for a pod on node n, with a turn of a.b behind it and one of c.d that goes on.
fn request(uid: &str) -> EvictionRequest {
    serde_json::from_value(json!({
        "metadata": {"name": "pod", "namespace": "ns", "uid": uid, "creationTimestamp": "2026-01-01T12:00:00Z"},
        "spec": {"requesters": [{"name": "nodemaintenance.k8s.io"}]},
        "status": {
            "targetInterceptors": [{"name": "a.b"}, {"name": "c.d"}, {"name": "imperative-eviction.k8s.io"}],
            "processedInterceptors": ["a.b"], "activeInterceptors": ["c.d"],
            "podInfo": {"nodeName": "n", "priority": 0, "podType": "Default"},
        },
    }))
    .unwrap()
}

fn maintenance(uid: &str, stage: &str) -> NodeMaintenance {
    serde_json::from_value(json!({
        "metadata": {"name": uid, "uid": uid}, "spec": {"stage": stage},
        "status": {"nodeStatuses": [{"nodeRef": {"name": "n"}}]},
    }))
    .unwrap()
}

/// Caches with the pod, and with a maintenance of its node.
fn caches(stage: &str) -> HostCaches {
    let caches = HostCaches::default();
    caches.pods.apply(Pod { name: "p".into(), namespace: "ns".into(), uid: "pod".into(), ..Pod::default() });
    caches.maintenances.apply(maintenance("m", stage));
    caches
}

fn change(old: EvictionRequest, new: Option<EvictionRequest>) -> ObjectChange<EvictionRequest> {
    ObjectChange::between(Some(Arc::new(old)), new.map(Arc::new))
}

fn canceled(reason: &str) -> EvictionRequest {
    let mut canceled = request("1");
    let condition = json!([{"type": "Canceled", "status": "True", "reason": reason, "message": ""}]);
    canceled.status.conditions = serde_json::from_value(condition).unwrap();
    canceled
}

#[test]
fn a_request_that_others_end_during_a_drain_leaves_its_turns_behind() {
    let caches = caches("Drain");
    for end in [None, Some(request("2")), Some(canceled("NoRequesters")), Some(canceled("RequestDeleted"))] {
        let past = PastTurns::default();
        past.note(&change(request("1"), end.clone()), &caches, now());
        let turns = past.of("pod", &caches).unwrap();
        assert_eq!(
            (turns.interceptors, turns.seconds),
            (vec!["a.b".to_owned(), "c.d".to_owned()], 600),
            "{end:?}"
        );
    }
    let past = PastTurns::default();
    past.note(&change(request("1"), Some(request("1"))), &caches, now());
    past.note(&change(canceled("NoRequesters"), None), &caches, now());
    assert_eq!(past.of("pod", &caches), None, "it goes on, or had ended before");
}

/// A checkpoint that is being written when the request is deleted is written to its end.
#[test]
fn an_interceptor_that_was_interrupted_while_it_worked_gets_its_turn_again() {
    let caches = caches("Drain");
    let past = PastTurns::default();
    let mut works = request("1");
    let entry = |fields: serde_json::Value| serde_json::from_value(json!([fields])).unwrap();
    works.status.interceptors =
        entry(json!({"name": "c.d", "message": "half", "startTime": NOW, "heartbeatTime": NOW}));
    past.note(&change(works.clone(), None), &caches, now());
    assert_eq!(past.of("pod", &caches).unwrap().interceptors, ["a.b"]);
    works.status.interceptors =
        entry(json!({"name": "c.d", "message": "", "startTime": NOW, "completionTime": NOW}));
    past.note(&change(works, None), &caches, now());
    assert_eq!(past.of("pod", &caches).unwrap().interceptors, ["a.b", "c.d"], "it had ended its turn");
}

/// An admin cancels a maintenance and begins another one: a checkpoint is written again.
#[test]
fn when_the_drain_is_over_all_begins_anew() {
    let caches = caches("Drain");
    let past = PastTurns::default();
    past.note(&change(request("1"), None), &caches, now());
    caches.maintenances.apply(maintenance("m", "Complete"));
    caches.maintenances.apply(maintenance("next", "Drain"));
    assert_eq!(past.of("pod", &caches), None);
    let idle = self::caches("Cordon");
    past.note(&change(request("1"), None), &idle, now());
    assert_eq!(past.of("pod", &idle), None, "nothing drains the node");
}

/// A node whose label was taken off leaves the drain, and its interceptors undo their work; when it is selected again, the
/// pod's checkpoint is written again.
#[test]
fn when_the_node_leaves_the_drain_all_begins_anew_and_in_another_drain_of_it_nothing_does() {
    let mut left = maintenance("m", "Drain");
    left.status.node_statuses.clear();
    let leaves =
        ObjectChange::between(Some(Arc::new(maintenance("m", "Drain"))), Some(Arc::new(left.clone())));
    for has_other in [false, true] {
        let caches = caches("Drain");
        if has_other {
            caches.maintenances.apply(maintenance("other", "Drain"));
        }
        let past = PastTurns::default();
        past.note(&change(request("1"), None), &caches, now());
        caches.maintenances.apply(left.clone());
        assert_eq!(past.of("pod", &caches).is_some(), has_other);
        past.forget_drained(&leaves, &caches);
        caches.maintenances.apply(maintenance("m", "Drain"));
        assert_eq!(past.of("pod", &caches).is_some(), has_other);
    }
}

#[test]
fn a_request_that_no_maintenance_makes_leaves_nothing_and_one_that_is_taken_from_it_does() {
    let caches = caches("Drain");
    let past = PastTurns::default();
    let mut others = request("1");
    others.spec.requesters = serde_json::from_value(json!([{"name": "descheduler.example.com"}])).unwrap();
    past.note(&change(others.clone(), None), &caches, now());
    assert_eq!(past.of("pod", &caches), None);
    past.note(&change(request("1"), Some(others)), &caches, now());
    assert_eq!(past.of("pod", &caches).unwrap().interceptors, ["a.b", "c.d"]);
}

#[test]
fn where_there_is_no_room_the_pods_that_are_gone_are_forgotten() {
    let caches = caches("Drain");
    let past = PastTurns::default();
    let gone = (0..MAX_PODS).map(|at| (format!("gone-{at}"), NotedTurns::default()));
    past.0.lock().extend(gone);
    past.note(&change(request("1"), None), &caches, now());
    assert!(past.of("pod", &caches).is_some());
    assert_eq!(past.0.lock().len(), 1);
}

#[test]
fn after_a_restart_the_status_of_the_maintenance_tells() {
    let caches = caches("Drain");
    let mut shows = maintenance("m", "Drain");
    let turns = json!([{"uid": "pod", "turns": {"interceptors": ["x.y"], "seconds": 5}}]);
    shows.status.pod_turns = serde_json::from_value(turns).unwrap();
    caches.maintenances.apply(shows);
    let past = PastTurns::default();
    assert_eq!(past.of("pod", &caches).unwrap().interceptors, ["x.y"]);
    assert_eq!(past.of("other", &caches), None);
    past.note(&change(request("1"), None), &caches, now());
    assert_eq!(past.of("pod", &caches).unwrap().interceptors, ["x.y", "a.b", "c.d"]);
}

/// While nobody held the lease a request was deleted and made anew, and the next leader gave all turns again.
#[tokio::test]
async fn a_stand_by_remembers_what_ends_while_nobody_leads() {
    let context = drydock_runtime::testing::context(|_, _, _| (500, serde_json::Value::Null));
    context.caches.pods.apply(Pod {
        name: "p".into(),
        namespace: "ns".into(),
        uid: "pod".into(),
        ..Pod::default()
    });
    context.caches.maintenances.apply(maintenance("m", "Drain"));
    let past = PastTurns::follow(&context);
    context.caches.requests.apply(request("1"));
    context.caches.requests.delete(&request("1").key());
    assert_eq!(past.of("pod", &context.caches).unwrap().interceptors, ["a.b", "c.d"]);
    context.caches.pods.delete(&drydock_runtime::ObjectKey::new("ns", "p"));
    assert_eq!(past.of("pod", &context.caches), None);
}

/// A pod of a StatefulSet that a new list showed with another UID was remembered until the next start.
#[tokio::test]
async fn a_pod_whose_name_another_one_has_is_forgotten_and_so_is_the_pod_of_a_node_that_left_the_drain() {
    let context = drydock_runtime::testing::context(|_, _, _| (500, serde_json::Value::Null));
    let pod = |uid: &str| Pod { name: "p".into(), namespace: "ns".into(), uid: uid.into(), ..Pod::default() };
    context.caches.maintenances.apply(maintenance("m", "Drain"));
    let past = PastTurns::follow(&context);
    let begin_and_end = || {
        context.caches.pods.apply(pod("pod"));
        context.caches.requests.apply(request("1"));
        context.caches.requests.delete(&request("1").key());
        assert_eq!(past.0.lock().len(), 1);
    };
    begin_and_end();
    context.caches.pods.apply(pod("another"));
    assert!(past.0.lock().is_empty());
    begin_and_end();
    context.caches.maintenances.apply(maintenance("m", "Complete"));
    assert!(past.0.lock().is_empty());
}

#[test]
fn a_pod_that_is_gone_is_forgotten_and_one_that_is_not_known_is_not_noted() {
    let caches = caches("Drain");
    let past = PastTurns::default();
    past.note(&change(request("1"), None), &caches, now());
    past.forget("pod");
    assert_eq!(past.of("pod", &caches), None);
    let mut strange = request("1");
    strange.metadata.name = "strange".into();
    past.note(&change(strange, None), &caches, now());
    assert_eq!(past.of("strange", &caches), None);
}
