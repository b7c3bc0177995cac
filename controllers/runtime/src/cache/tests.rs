//! What the caches keep of the host's objects, and their indexes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use parking_lot::Mutex;
use serde_json::json;

use super::*;

fn pod(name: &str, node: &str, rv: &str) -> Pod {
    Pod {
        name: name.into(),
        namespace: "ns".into(),
        uid: format!("uid-{name}"),
        resource_version: rv.into(),
        node_name: node.into(),
        ..Default::default()
    }
}

#[test]
fn pod_keeps_only_known_annotations_and_its_controller() {
    let pod: Pod = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "labels": {"app": "a"},
            "annotations": {
                "kubernetes.io/config.mirror": "x",
                "other": "dropped",
                "interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com": "1/worker"
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1"},
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "2", "controller": true,
                 "blockOwnerDeletion": true}
            ]
        },
        "spec": {"nodeName": "n", "priority": 5, "containers": [{"name": "c"}],
                 "schedulingGroup": {"podGroupName": "g"},
                 "evictionInterceptors": [{"name": "a.example.com"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    }))
    .unwrap();
    assert_eq!(pod.annotations.len(), 2);
    assert!(pod.is_mirror() && pod.is_daemon_set_pod() && pod.in_group && pod.ready);
    assert_eq!(pod.controller.unwrap().name, "d");
    assert_eq!(pod.interceptors.unwrap(), ["a.example.com"]);
    assert_eq!((pod.priority, pod.phase), (5, PodPhase::Running));
    assert_eq!(pod.unschedulable, None);
}

#[test]
fn equal_parts_of_two_objects_are_one_allocation() {
    let pod = |name: &str| -> Pod {
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true});
        let annotations =
            json!({"interceptor.evictionrequest.coordination.k8s.io/priority_a.example.com": "1/worker"});
        let labels = json!({"app": "a"});
        let metadata = json!({
            "name": name, "labels": labels, "annotations": annotations, "ownerReferences": [owner],
        });
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let request = |name: &str| -> EvictionRequest {
        let entry = json!({"manager": "m", "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}}});
        let (labels, annotations) = (json!({"app": "a"}), json!({"example.com/a": "b"}));
        let metadata = json!({
            "name": name, "labels": labels, "annotations": annotations, "managedFields": [entry],
        });
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    };
    let mut parts = SharedParts::default();
    let (mut pods, mut requests) = (["a", "b"].map(pod), ["a", "b"].map(request));
    pods.iter_mut().for_each(|pod| pod.compact(&mut parts));
    requests.iter_mut().for_each(|request| request.compact(&mut parts));
    let [a, b] = pods;
    assert!(Arc::ptr_eq(&a.labels, &b.labels) && Arc::ptr_eq(&a.annotations, &b.annotations));
    assert!(Arc::ptr_eq(&a.controller.unwrap(), &b.controller.unwrap()));
    let [a, b] = requests.map(|request| request.metadata);
    assert!(Arc::ptr_eq(&a.labels, &b.labels) && Arc::ptr_eq(&a.annotations, &b.annotations));
    assert!(Arc::ptr_eq(&a.managed_fields, &b.managed_fields) && a.managed_fields.len() == 1);
}

#[test]
fn pod_that_finds_no_node_says_why() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "status": {"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]},
    }))
    .unwrap();
    assert_eq!((pod.unschedulable.as_deref(), pod.node()), (Some("0/1 nodes are available"), Some("")));
}

#[test]
fn pod_tolerates_the_taint_of_drains_as_the_host_says() {
    let tolerates = |toleration: serde_json::Value| {
        let pod: Pod = serde_json::from_value(json!({"spec": {"tolerations": [toleration]}})).unwrap();
        pod.tolerates_drain_taint
    };
    assert!(tolerates(json!({"operator": "Exists"})));
    assert!(tolerates(json!({"operator": "Exists", "effect": "NoSchedule"})));
    assert!(tolerates(json!({"key": DRAIN_TAINT, "operator": "Exists"})));
    assert!(tolerates(json!({"key": DRAIN_TAINT})));
    assert!(!tolerates(json!({"key": DRAIN_TAINT, "value": "x"})));
    assert!(!tolerates(json!({"operator": "Exists", "effect": "NoExecute"})));
    // What the DaemonSet controller adds to every pod.
    assert!(!tolerates(
        json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"})
    ));
    let without: Pod = serde_json::from_value(json!({"spec": {"tolerations": null}})).unwrap();
    assert!(!without.tolerates_drain_taint);
}

#[test]
fn pod_with_nulls_and_unknown_phase_is_read() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "labels": null, "annotations": null, "ownerReferences": null},
        "spec": {"workloadRef": null}, "status": {"phase": "Sleeping", "conditions": null}
    }))
    .unwrap();
    assert!(!pod.in_group && !pod.is_terminal());
    assert_eq!(pod.phase, PodPhase::Unknown);
}

#[test]
fn pod_of_a_workload_or_of_a_pod_group_is_in_a_group() {
    for (field, in_group) in [("workloadRef", true), ("schedulingGroup", true), ("nodeSelector", false)] {
        let pod = json!({"metadata": {"name": "p"}, "spec": {field: {"name": "w", "podGroup": "g"}}});
        assert_eq!(serde_json::from_value::<Pod>(pod).unwrap().in_group, in_group, "{field}");
    }
}

#[test]
fn budget_without_selector_covers_nothing_and_empty_selector_everything() {
    let none: PodDisruptionBudget = serde_json::from_value(json!({"spec": {}})).unwrap();
    let all: PodDisruptionBudget = serde_json::from_value(json!({"spec": {"selector": {}}})).unwrap();
    assert!(!none.covers(&Default::default()));
    assert!(all.covers(&Default::default()));
}

#[test]
fn indexes_follow_an_object_that_moves_and_goes() {
    let store = Store::default();
    store.apply(pod("a", "", "1"));
    assert!(store.on_node("n1").is_empty());
    let versions =
        |node| store.on_node(node).iter().map(|pod| pod.resource_version.clone()).collect::<Vec<_>>();
    for (node, version) in [("n1", "2"), ("n1", "3"), ("n2", "4")] {
        store.apply(pod("a", node, version));
        assert_eq!(versions(node), [version]);
        assert!(["", "n1", "n2"].iter().all(|other| *other == node || versions(other).is_empty()));
        assert_eq!(store.by_uid("uid-a").unwrap().resource_version, version);
    }
    store.apply(Pod { uid: "new".into(), ..pod("a", "n2", "5") });
    assert_eq!(versions("n2"), ["5"]);
    store.delete(&ObjectKey::new("ns", "a"));
    assert!(versions("n2").is_empty() && store.by_uid("new").is_none() && store.is_empty());
}

#[test]
fn objects_of_a_namespace_are_found_without_those_of_namespaces_with_similar_names() {
    let store = Store::default();
    for (namespace, name) in [("n", "b"), ("n", "a"), ("m", "c"), ("n-1", "d"), ("n1", "e")] {
        store.apply(Pod { namespace: namespace.into(), ..pod(name, "", "1") });
    }
    let names =
        |namespace| store.in_namespace(namespace).iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    assert_eq!((names("n"), names("n-1")), (vec!["a".to_owned(), "b".to_owned()], vec!["d".to_owned()]));
    assert!(names("o").is_empty());
}

#[test]
fn replaced_object_is_not_found_by_its_old_uid() {
    let store = Store::default();
    store.apply(pod("a", "n1", "1"));
    store.apply(Pod { uid: "new".into(), ..pod("a", "n1", "2") });
    assert!(store.by_uid("uid-a").is_none());
    assert_eq!(store.by_uid("new").unwrap().name, "a");
}

#[test]
fn handlers_hear_what_is_there_and_each_change_once() {
    let store = Store::default();
    store.apply(pod("a", "", "1"));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    store.subscribe(move |change| {
        let version = |p: &Arc<Pod>| p.resource_version.clone();
        log.lock().push((change.old.as_ref().map(version), change.new.as_ref().map(version)));
    });
    store.apply(pod("a", "", "2"));
    store.apply(pod("a", "", "2"));
    store.delete(&ObjectKey::new("ns", "a"));
    store.delete(&ObjectKey::new("ns", "a"));
    let some = |v: &str| Some(v.to_owned());
    assert_eq!(*heard.lock(), [(None, some("1")), (some("1"), some("2")), (some("2"), None)]);
}

#[test]
fn finished_list_removes_what_it_did_not_contain() {
    let store = Store::default();
    store.apply(pod("a", "", "1"));
    store.apply(pod("b", "", "1"));
    assert!(!store.is_synced());
    store.finish_list(&HashSet::from([ObjectKey::new("ns", "b")]));
    assert!(store.is_synced());
    assert_eq!(store.all()[0].name, "b");
}

/// The writer of a pod chooses its owner reference. A pod that named a DaemonSet of another namespace
/// counted as that DaemonSet's pod: the DaemonSet was blamed for its return, and its own pods waited.
#[test]
fn a_daemon_set_is_known_by_its_namespace_too() {
    let pod = |namespace: &str| -> Pod {
        let owner = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true});
        let pod = json!({"metadata": {"name": "p", "namespace": namespace, "ownerReferences": [owner]}});
        serde_json::from_value(pod).unwrap()
    };
    assert_eq!(pod("a").daemon_set().as_deref(), Some("a/u"));
    assert_ne!(pod("a").daemon_set(), pod("b").daemon_set());
    assert_eq!(Pod::default().daemon_set(), None);
}

#[test]
fn a_budget_keeps_when_it_let_a_pod_go_last_and_not_which() {
    let budget = |disrupted: serde_json::Value| -> PodDisruptionBudget {
        let status = serde_json::json!({ "disruptedPods": disrupted });
        serde_json::from_value(serde_json::json!({ "metadata": { "name": "b" }, "status": status })).unwrap()
    };
    let times = serde_json::json!({ "p": "2026-01-01T00:00:05Z", "q": "2026-01-01T00:00:07Z", "r": null });
    let disrupting = budget(times);
    assert_eq!(disrupting.last_disruption, Some("2026-01-01T00:00:07Z".parse().unwrap()));
    assert_eq!(disrupting.disrupted_until(), Some("2026-01-01T00:02:07Z".parse().unwrap()));
    assert_eq!(disrupting.disrupted_pods, 3);
    let calm = budget(serde_json::json!({}));
    assert_eq!((calm.last_disruption, calm.disrupted_until(), calm.disrupted_pods), (None, None, 0));
}
