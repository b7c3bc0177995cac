//! What keeps pods from leaving.

use jiff::SignedDuration;

use super::*;

#[test]
fn a_request_canceled_by_validation_is_a_blocker_and_not_a_loop() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    let message =
        "Target Pod p is part of a Workload/PodGroup. Eviction of such pods is currently not supported.";
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "ValidationFailed", message));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.blocked_pods, node.blockers[0].reason.as_str()), (1, "WorkloadPod"));
    assert_eq!(node.blockers[0].message, message);
    assert!(sim.requested().is_empty());
}

/// The controller of requests removes what failed validation. The pod was asked for again at once, and failed again, as
/// fast as the two controllers could write; and it was no blocker meanwhile.
#[test]
fn a_pod_whose_failed_request_was_removed_stays_a_blocker_and_is_asked_for_with_backoff() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let start = sim.now;
    let minutes = |sim: &Sim| sim.now.duration_since(start).as_mins();
    let mut asked_at = Vec::new();
    for round in 0..6 {
        let since = sim.now.to_string();
        sim.request("p", |r| {
            r.metadata.uid = format!("request-{round}");
            r.status.conditions = conditions("Canceled", "ValidationFailed", "part of a Workload/PodGroup");
            r.status.conditions[0].last_transition_time = Some(since.parse().unwrap());
        });
        sim.settle();
        sim.world.requests.clear();
        sim.settle();
        let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
        sim.now = decision.wake.unwrap();
        let node = &sim.status("m").node_statuses[0];
        assert_eq!((node.blocked_pods, node.blockers[0].reason.as_str()), (1, "WorkloadPod"), "{round}");
        assert!(sim.requested().is_empty(), "asked too early in round {round}");
        sim.settle();
        assert_eq!(sim.requested(), ["p"], "{round}");
        assert_eq!(sim.status("m").node_statuses[0].blocked_pods, 1, "nothing is known of the new request");
        asked_at.push(minutes(&sim));
    }
    assert_eq!(asked_at, [5, 15, 35, 75, 135, 195]);
    let turn = json!({ "targetInterceptors": [{ "name": "a.b" }], "activeInterceptors": ["a.b"] });
    sim.request("p", |r| r.status = serde_json::from_value(turn).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blocked_pods, 0, "it was taken up");
}

#[test]
fn a_failed_request_that_nobody_removes_is_replaced_with_the_same_backoff_also_after_a_restart() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let failed_at = sim.now;
    sim.request("p", |r| {
        r.status.conditions = conditions("Canceled", "ValidationFailed", "no");
        r.status.conditions[0].last_transition_time = Some(failed_at);
    });
    for second in [0, 60, 299] {
        sim.now = failed_at + SignedDuration::from_secs(second);
        sim.memory = Memory::default();
        let actions = sim.step();
        assert!(!actions.contains_key(&Task::Request("ns".into(), "uid-p".into())), "{second}: {actions:?}");
    }
    sim.now = failed_at + SignedDuration::from_mins(5);
    let actions = sim.step();
    assert!(matches!(actions[&Task::Request("ns".into(), "uid-p".into())], Action::Replace { .. }));
}

#[test]
fn blockers_say_what_blocks_and_since_when() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let text = "Could not evict a pod due to failing eviction requests, number of retries: 7: PodDisruptionBudget b allows 0";
    let eviction = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": text }] });
    sim.request("p", |r| r.status = serde_json::from_value(eviction).unwrap());
    sim.settle();
    sim.now = "2026-01-01T13:00:00Z".parse().unwrap();
    sim.memory = Memory::default();
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!((blocker.reason.as_str(), blocker.message.as_str()), ("PodDisruptionBudget", text));
    assert_eq!(blocker.since_time, Some(NOW.parse().unwrap()), "kept over a restart");
    assert_eq!(blocker.pod.name, "p");
}

#[test]
fn silent_interceptors_and_pods_that_do_not_die_block() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "late", &json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:00Z" } }));
    let kept = json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:00Z", "finalizers": ["x/y"] } });
    sim.pod("a", "kept", &kept);
    sim.pod("a", "soon", &json!({ "metadata": { "deletionTimestamp": NOW } }));
    sim.pod("a", "quiet", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let quiet = json!({ "activeInterceptors": ["a.b"], "activationTime": "2026-01-01T11:50:00Z",
        "interceptors": [{ "name": "a.b", "message": "" }] });
    sim.request("quiet", |r| r.status = serde_json::from_value(quiet).unwrap());
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    let mut reasons: Vec<_> =
        node.blockers.iter().map(|b| (b.pod.name.as_str(), b.reason.as_str())).collect();
    reasons.sort_unstable();
    assert_eq!(reasons, [("kept", "Finalizer"), ("late", "Terminating"), ("quiet", "Interceptor")]);
    assert_eq!(node.pods_evacuating, 4, "terminating pods get a request too");
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert_eq!(decision.wake, Some("2026-01-01T12:00:10Z".parse().unwrap()));
}

#[test]
fn a_daemon_set_that_puts_its_pod_back_is_named() {
    let mut sim = Sim::new(&["a"]);
    let owner = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] } });
    sim.pod("a", "one", &owner);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blocked_pods, 0);
    sim.remove_pod("one");
    sim.pod("a", "two", &owner);
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!(blocker.reason, "DaemonSetReturns");
    assert!(blocker.message.contains("DaemonSet d"));
}

#[test]
fn a_static_pod_without_an_agent_is_a_blocker() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "s", &json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let passed = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "processedInterceptors": ["kubelet.k8s.io"],
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": "" }] });
    sim.request("s", |r| r.status = serde_json::from_value(passed).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blockers[0].reason, "NoNodeAgent");
}

#[test]
fn at_most_ten_blockers_are_named_and_all_are_counted() {
    let mut sim = Sim::new(&["a"]);
    for i in 0..12 {
        sim.pod(
            "a",
            &format!("p{i}"),
            &json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:00:00Z" } }),
        );
    }
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.blockers.len(), node.blocked_pods), (10, 12));
}
