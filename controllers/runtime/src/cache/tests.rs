//! What the caches keep of the host's objects, and their indexes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashSet;
use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::PodType;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::testing::with_its_daemon_set;

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
    assert!(pod.names_daemon_set() && pod.in_group && pod.ready);
    assert_eq!((pod.is_undecided(), pod.is_daemon_set_pod(), pod.is_mirror()), (true, false, false));
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
    assert_eq!(none.covers(&Pod::default()), Some(false));
    assert_eq!(all.covers(&Pod::default()), Some(true));
}

/// What a pod takes by its texts, each with what the allocator and the map have beside it.
fn held_bytes(pod: &Pod) -> usize {
    const BESIDE: usize = 150;
    let maps = pod.labels.iter().chain(pod.annotations.iter()).flat_map(|(key, value)| [key, value]);
    let owner = pod.controller.iter().flat_map(|it| [&it.api_version, &it.kind, &it.name, &it.uid]);
    let unschedulable = pod.unschedulable.as_ref().map_or(0, |text| text.len());
    let texts = maps.chain(owner).chain(&pod.finalizers);
    size_of::<Pod>() + unschedulable + texts.map(|text| text.len() + BESIDE).sum::<usize>()
}

/// A host takes a pod of 1.5 MiB, of whatever its tenant likes: 70,000 labels took 10 MiB.
#[test]
fn the_largest_pod_that_a_host_takes_is_small_in_a_cache() {
    let many =
        |count: usize| (0..count).map(|at| (format!("k{at}"), json!(""))).collect::<serde_json::Map<_, _>>();
    let named =
        |name: String| json!({"apiVersion": "v1", "kind": "A", "name": name, "uid": "1", "controller": true});
    let interceptors: serde_json::Map<_, _> = (0..4_000)
        .map(|at| {
            (format!("interceptor.evictionrequest.coordination.k8s.io/priority_i{at}.example"), json!("1/a"))
        })
        .collect();
    let all: Vec<_> = (0..100_000).map(|at| format!("a/{at}")).collect();
    let metadata = json!({
        "name": "p", "namespace": "ns", "labels": many(70_000), "annotations": interceptors, "finalizers": all,
        "ownerReferences": [named("x".repeat(1 << 20))],
    });
    let message = "x".repeat(1 << 20);
    let conditions =
        json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]);
    let pod: Pod =
        serde_json::from_value(json!({"metadata": metadata, "status": {"conditions": conditions}})).unwrap();
    assert!(pod.labels_cut_from.is_some() && pod.controller.is_none());
    assert_eq!((pod.annotations.len(), pod.annotations_left_out), (15, 3_985));
    assert!(held_bytes(&pod) < 256 << 10, "{} bytes", held_bytes(&pod));

    let longest = |bytes: usize| {
        let metadata = json!({"name": "p", "ownerReferences": [named("r".repeat(bytes))]});
        serde_json::from_value::<Pod>(json!({ "metadata": metadata })).unwrap().controller.is_some()
    };
    assert!(longest(512) && !longest(513));
    let usual = json!({"name": "p", "labels": {"app": "a"}, "ownerReferences": [named("r".into())]});
    let usual: Pod = serde_json::from_value(json!({ "metadata": usual })).unwrap();
    assert!(usual.labels_cut_from.is_none() && usual.controller.is_some());
}

#[test]
fn the_labels_by_which_our_pods_and_revisions_are_known_are_kept_whatever_else_a_pod_has() {
    let own = ["app.kubernetes.io/name", "pod-template-hash"];
    let hiding = (0..20_000).map(|at| format!("a{at:05}")).chain(own.map(str::to_owned));
    let labels: serde_json::Map<_, _> = hiding.map(|key| (key, json!("7"))).collect();
    let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "labels": labels}})).unwrap();
    assert!(pod.labels_cut_from.is_some());
    assert!(own.iter().all(|key| pod.labels.get(*key).is_some_and(|value| value == "7")));
}

#[test]
fn only_the_host_knows_what_covers_a_pod_whose_labels_are_cut_or_whether_a_huge_budget_covers_any() {
    let of = |selector: serde_json::Value| -> PodDisruptionBudget {
        serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap()
    };
    let values: Vec<_> = (0..480_000).map(|at| format!("{at:x}")).collect();
    let huge = of(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}));
    assert_eq!(huge.covers(&Pod::default()), None);
    let cut = Pod { labels_cut_from: Some("aa".into()), ..Pod::default() };
    assert_eq!(of(json!({"matchLabels": {"a": "a"}})).covers(&cut), Some(false));
    assert_eq!(of(json!({"matchLabels": {"app": "a"}})).covers(&cut), None);
    assert_eq!(of(json!(null)).covers(&cut), Some(false));
}

/// Of 300 interceptors the first by name were kept, and the one with the highest priority had no turn.
#[test]
fn of_too_many_interceptors_those_of_the_highest_priorities_are_kept() {
    let key = |name: &str| format!("interceptor.evictionrequest.coordination.k8s.io/priority_{name}");
    let named =
        |at: usize| (key(&format!("i{at:03}.example")), json!(format!("{at}/{}", "interceptor".repeat(50))));
    let mut annotations: serde_json::Map<_, _> = (0..300).map(named).collect();
    annotations.insert("kubernetes.io/config.mirror".to_owned(), json!("m"));
    annotations.insert(key("job.batch.k8s.io"), json!("-1/controller"));
    annotations.insert(key("bad"), json!("1000/interceptor"));
    annotations.insert(key("worse.example"), json!("1000"));
    let pod: Pod = serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
    let first: Vec<_> = (285..300).map(|at| key(&format!("i{at:03}.example"))).collect();
    let mirror = "kubernetes.io/config.mirror".to_owned();
    let is_kept = pod.annotations.get(&mirror).is_some_and(|value| value == "m");
    let kept: Vec<_> = first.into_iter().chain([key("job.batch.k8s.io"), mirror]).collect();
    assert_eq!(pod.annotations.keys().cloned().collect::<Vec<_>>(), kept);
    assert_eq!((pod.annotations_left_out, is_kept), (287, true));
}

#[test]
fn of_the_interceptors_in_the_spec_of_a_pod_as_many_are_kept_as_can_have_turns() {
    let names: Vec<_> = (0..20_000).map(|at| json!({"name": format!("i{at}.example")})).collect();
    let responders: Vec<_> =
        (0..20_000).map(|at| json!({"name": "x".repeat(500), "priority": at % 500})).collect();
    let spec = json!({"evictionInterceptors": names, "evictionResponders": responders});
    let pod: Pod = serde_json::from_value(json!({ "spec": spec })).unwrap();
    let (interceptors, responders) = (pod.interceptors.unwrap(), pod.responders.unwrap());
    assert_eq!((interceptors.len(), interceptors[99].as_str()), (100, "i99.example"));
    assert!(
        responders.len() == 100 && responders.iter().all(|it| it.priority >= 497 && it.name.len() <= 256)
    );
}

/// The status and most labels of a node are its kubelet's to write.
#[test]
fn the_largest_node_that_a_host_takes_is_small_in_a_cache() {
    let labels: serde_json::Map<_, _> = (0..70_000).map(|at| (format!("a{at}"), json!(""))).collect();
    let long = "x".repeat(100_000);
    let condition = |type_: &str| json!({"type": type_, "status": "True", "reason": long, "message": long});
    let types = ["Ready", "MaintenanceInProgress", "example.com/Other", "Drained"];
    let metadata = json!({"name": "n", "labels": labels});
    let again = std::iter::repeat_n("Ready", 1000);
    let conditions: Vec<_> = types.into_iter().chain(again).map(condition).collect();
    let status = json!({ "conditions": conditions });
    let node: Node = serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap();
    assert_eq!((node.labels.len(), node.labels_cut_from.is_some()), (1024, true));
    let kept: Vec<_> = node.conditions.iter().map(|it| it.type_.as_str()).collect();
    assert_eq!(kept, ["Ready", "MaintenanceInProgress", "Drained"]);
    assert!(node.conditions.iter().all(|it| it.reason.len() + it.message.len() <= 16 << 10));
}

/// A stolen kubelet gave its node thousands of labels: the one by which it was drained, which it may not change, was left out, and
/// the node was made schedulable in the middle of the drain.
#[test]
fn a_kubelet_hides_no_label_of_its_node_that_it_may_not_set() {
    let own = [
        "node-restriction.kubernetes.io/rack",
        "node-role.kubernetes.io/worker",
        "topology.kubernetes.io/zone",
    ];
    let hiding = (0..20_000).map(|at| format!("a{at:05}")).chain(own.map(str::to_owned));
    let labels: serde_json::Map<_, _> = hiding.map(|key| (key, json!("7"))).collect();
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n", "labels": labels}})).unwrap();
    assert!(node.labels_cut_from.is_some());
    for key in own {
        assert_eq!((node.labels[key].as_str(), node.known_labels().may_hide(key)), ("7", false), "{key}");
    }
    let known = node.known_labels();
    assert!(!known.may_hide("node-restriction.kubernetes.io/other") && known.may_hide("rack"));
}

/// A host takes a percentage with a megabyte of leading zeros.
#[test]
fn a_number_of_pods_is_short_and_means_the_same() {
    let zeros = "0".repeat(1 << 20);
    for (long, short) in [
        (format!("{zeros}50%"), "50%"),
        (format!("{zeros}%"), "0%"),
        (zeros.clone(), "0"),
        ("25%".to_owned(), "25%"),
        ("7".repeat(40), "7777777777777\u{2026}"),
    ] {
        assert_eq!(short_amount(IntOrString::String(long)), IntOrString::String(short.to_owned()));
    }
    assert_eq!(short_amount(IntOrString::Int(3)), IntOrString::Int(3));
    let spec = json!({"minAvailable": format!("{zeros}1%"), "maxUnavailable": format!("{zeros}2%")});
    let budget: PodDisruptionBudget = serde_json::from_value(json!({ "spec": spec })).unwrap();
    let amounts = [budget.min_available, budget.max_unavailable];
    assert_eq!(amounts, ["1%", "2%"].map(|text| Some(IntOrString::String(text.to_owned()))));
}

#[test]
fn of_the_annotations_of_a_node_those_of_node_maintenance_are_kept() {
    let annotations =
        json!({"nodemaintenance.k8s.io/cordoned-by": "other", "example.com/a": "x".repeat(1 << 20)});
    let node: Node =
        serde_json::from_value(json!({"metadata": {"name": "n", "annotations": annotations}})).unwrap();
    assert_eq!(
        node.annotations.into_iter().collect::<Vec<_>>(),
        [("nodemaintenance.k8s.io/cordoned-by".to_owned(), "other".to_owned())]
    );
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
        with_its_daemon_set(serde_json::from_value(pod).unwrap())
    };
    assert_eq!(pod("a").daemon_set().as_deref(), Some("a/u"));
    assert_ne!(pod("a").daemon_set(), pod("b").daemon_set());
    assert_eq!(Pod::default().daemon_set(), None);
}

/// The annotation is the word of whoever writes the pod: with it a workload was no workload to a drain.
#[test]
fn a_mirror_pod_is_controlled_by_the_node_on_which_it_is() {
    let of = |owner: serde_json::Value, annotation: &str| -> Pod {
        let metadata = json!({"name": "p", "annotations": {annotation: "x"}, "ownerReferences": [owner]});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"nodeName": "n"}})).unwrap()
    };
    let node = |version: &str, kind: &str, name: &str, controller: bool| json!({"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": controller});
    let written_by_a_kubelet = of(node("v1", "Node", "n", true), MIRROR_ANNOTATION);
    assert!(written_by_a_kubelet.is_mirror());
    assert_eq!(written_by_a_kubelet.pod_type(), PodType::Static);
    for pod in [
        of(node("v1", "Node", "n", true), "example.com/other"),
        of(node("v1", "Node", "n", false), MIRROR_ANNOTATION),
        of(node("v1", "Node", "m", true), MIRROR_ANNOTATION),
        of(node("v2", "Node", "n", true), MIRROR_ANNOTATION),
        of(node("v1", "Pod", "n", true), MIRROR_ANNOTATION),
        Pod { controller: None, ..written_by_a_kubelet.clone() },
    ] {
        assert_eq!((pod.is_mirror(), pod.pod_type()), (false, PodType::Default), "{pod:?}");
    }
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
