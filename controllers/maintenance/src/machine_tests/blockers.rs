//! What keeps pods from leaving.

use jiff::SignedDuration;

use super::*;

#[test]
fn a_request_canceled_by_validation_is_a_blocker_and_not_a_loop() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({ "spec": { "schedulingGroup": { "podGroupName": "g" } } }));
    let message =
        "Target Pod p is part of a Workload/PodGroup. Eviction of such pods is currently not supported";
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "ValidationFailed", message));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.blocked_pods, node.blockers[0].reason.as_str()), (1, "WorkloadPod"));
    assert_eq!(bare(&node.blockers[0].message), message);
    assert!(sim.requested().is_empty());
}

/// The controller of requests removes what failed validation. The pod was asked for again at once, and failed again, as
/// fast as the two controllers could write; and it was no blocker meanwhile.
#[test]
fn a_pod_whose_failed_request_was_removed_stays_a_blocker_and_is_asked_for_with_backoff() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({ "spec": { "schedulingGroup": { "podGroupName": "g" } } }));
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
        sim.memory = MachineMemory::default();
        let actions = sim.step();
        assert!(!actions.contains_key(&Task::Request("ns".into(), "uid-p".into())), "{second}: {actions:?}");
    }
    sim.now = failed_at + SignedDuration::from_mins(5);
    let actions = sim.step();
    assert!(matches!(
        change_of(&actions[&Task::Request("ns".into(), "uid-p".into())]),
        RequestChange::Replace { .. }
    ));
}

#[test]
fn blockers_say_what_blocks_and_since_when() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let text = "PodDisruptionBudget b allows 0. Could not evict a pod due to failing eviction requests, number of retries: 7";
    let eviction = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": text,
            "blocked": { "reason": "PodDisruptionBudget", "name": "b", "state": "ShortNow" } }] });
    sim.request("p", |r| r.status = serde_json::from_value(eviction).unwrap());
    sim.settle();
    sim.now = "2026-01-01T13:00:00Z".parse().unwrap();
    sim.memory = MachineMemory::default();
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    let words = "PodDisruptionBudget b allows 0 (see ShortNow in controllers/README.md)";
    assert_eq!((blocker.reason.as_str(), blocker.message.as_str()), ("PodDisruptionBudget", words));
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

/// The DaemonSet was blamed until its pod was gone, also while the pod left within its grace period.
#[test]
fn a_daemon_set_that_puts_its_pod_back_is_named_while_its_interceptor_waits() {
    let mut sim = Sim::new(&["a"]);
    let owner = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] },
        "spec": { "tolerations": [{ "operator": "Exists" }] } });
    sim.pod("a", "one", &owner);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.remove_pod("one");
    sim.pod("a", "two", &owner);
    sim.settle();
    assert_eq!((sim.requested(), sim.status("m").node_statuses[0].blocked_pods), (vec!["two".to_owned()], 0));
    let entry = |blocked: Value| {
        json!({ "activeInterceptors": ["daemonset.apps.k8s.io"], "activationTime": NOW,
        "interceptors": [{ "name": "daemonset.apps.k8s.io", "message": "DaemonSet d has put", "blocked": blocked }] })
    };
    let waits = entry(json!({ "reason": "DaemonSetReturns", "name": "d" }));
    sim.request("two", |r| r.status = serde_json::from_value(waits).unwrap());
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!(blocker.reason, "DaemonSetReturns");
    let there =
        "DaemonSet d has put (see \"DaemonSets and static pods\" in controllers/README.md). To go on without";
    assert!(blocker.message.starts_with(there), "{}", blocker.message);
    sim.request("two", |r| r.status = serde_json::from_value(entry(Value::Null)).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blocked_pods, 0, "it is deleted");
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

fn ready(status: &str, reason: &str) -> drydock_runtime::cache::NodeCondition {
    drydock_runtime::cache::NodeCondition {
        type_: "Ready".into(),
        status: status.into(),
        reason: reason.into(),
        ..Default::default()
    }
}

/// The last pods of a drain may be those of the network, without which the kubelet reports the node as not ready:
/// the blocker called the node dead, and the command that it recommended would have killed what ran there.
#[test]
fn a_node_whose_kubelet_says_that_it_is_not_ready_is_not_away() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({ "metadata": { "deletionTimestamp": NOW } }));
    sim.change_node("a", |n| n.conditions.push(ready("False", "KubeletNotReady")));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blockers, []);
    sim.now += jiff::SignedDuration::from_secs(11);
    sim.settle();
    let [blocker] = &sim.status("m").node_statuses[0].blockers[..] else { panic!("one pod") };
    let told = "The pod is still terminating after its grace period; node a is not ready (KubeletNotReady: ";
    assert!(blocker.reason == "Terminating" && blocker.message.starts_with(told), "{blocker:?}");
}

/// The pod was shown as terminating ten seconds after its grace period, and nothing said that it would be forever.
#[test]
fn a_terminating_pod_on_a_node_whose_kubelet_is_away_names_the_node_and_the_way_out() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({ "metadata": { "deletionTimestamp": NOW } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert!(sim.status("m").node_statuses[0].blockers.is_empty());
    sim.change_node("a", |n| n.conditions.push(ready("Unknown", "NodeStatusUnknown")));
    sim.settle();
    let blocker = &sim.status("m").node_statuses[0].blockers[0];
    assert_eq!((blocker.reason.as_str(), blocker.pod.name.as_str()), ("NodeUnreachable", "p"));
    assert!(
        blocker.message.contains("kubectl taint nodes a node.kubernetes.io/out-of-service="),
        "{}",
        blocker.message
    );
}

/// Only the finalizers were blamed, although the cause was the node.
#[test]
fn a_pod_with_finalizers_on_a_node_that_is_not_ready_says_so() {
    let mut sim = Sim::new(&["a"]);
    let kept = json!({ "metadata": { "deletionTimestamp": "2026-01-01T11:59:00Z", "finalizers": ["x/y"] } });
    sim.pod("a", "p", &kept);
    sim.change_node("a", |n| n.conditions.push(ready("False", "KubeletNotReady")));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let message = bare(&sim.status("m").node_statuses[0].blockers[0].message);
    let told = "The pod is kept by its finalizers: x/y; node a is not ready (KubeletNotReady: )";
    assert_eq!(message, told);
}

/// It was passed over without an event, and the budget that blocked next was shown as if no interceptor had
/// been asked.
#[test]
fn whoever_was_passed_over_is_named_by_the_next_blocker() {
    let mut sim = drained_with_one_pod();
    let status = json!({
        "processedInterceptors": ["gone.example.com", "done.example.com"], "activeInterceptors": ["imperative-eviction.k8s.io"],
        "interceptors": [{ "name": "gone.example.com", "message": "" },
            { "name": "done.example.com", "message": "", "completionTime": NOW },
            { "name": "imperative-eviction.k8s.io", "message": "b allows 0", "startTime": NOW, "heartbeatTime": NOW,
                "blocked": { "reason": "PodDisruptionBudget", "name": "b", "state": "ShortNow" } }],
    });
    sim.request("p", |r| r.status = serde_json::from_value(status).unwrap());
    sim.settle();
    let told = &sim.status("m").node_statuses[0].blockers[0].message;
    assert_eq!(bare(told), "b allows 0; gone.example.com was passed over before, because it did not report");
}

/// Returns the first blocker of a pod `p` on a node that is drained, for a report of an interceptor.
fn said_by(sim: &mut Sim, interceptor: &str, message: &str, blocked: Value) -> Option<(String, String)> {
    let at = sim.now.to_string();
    let status = json!({ "activeInterceptors": [interceptor], "activationTime": at, "interceptors": [
        { "name": interceptor, "startTime": at, "heartbeatTime": at, "message": message, "blocked": blocked }] });
    sim.request("p", |r| r.status = serde_json::from_value(status).unwrap());
    sim.settle();
    let blocker = sim.status("m").node_statuses[0].blockers.first();
    blocker.map(|blocker| (blocker.reason.clone(), bare(&blocker.message)))
}

/// The old words stayed for another minute, and sent people to a budget that they had already mended.
#[test]
fn a_budget_that_blocks_in_another_way_is_shown_at_once() {
    let mut sim = drained_with_one_pod();
    for (state, words) in [("NeverAllows", "b never allows"), ("ShortNow", "b allows 0")] {
        let blocked = json!({ "reason": "PodDisruptionBudget", "name": "b", "state": state });
        let said = said_by(&mut sim, "imperative-eviction.k8s.io", words, blocked);
        assert_eq!(said, pair("PodDisruptionBudget", words));
        let message = &sim.status("m").node_statuses[0].blockers[0].message;
        assert!(message.contains(&format!("(see {state} in")), "{message}");
    }
}

/// The status of a node that is no longer selected stays until another maintenance shows the node's targets. Its
/// blockers stayed too, even when they had ended.
#[test]
fn a_node_that_is_not_selected_any_more_shows_no_blockers() {
    let mut sim = drained_with_one_pod();
    let webhook = json!({ "reason": "AdmissionWebhook", "name": "w" });
    assert!(said_by(&mut sim, "imperative-eviction.k8s.io", "no", webhook).is_some());
    sim.maintenance("n", "Drain", &["a"]);
    sim.settle();
    sim.change("n", |n| n.status.node_statuses[0].drain_targets.clear());
    let nowhere = sim.world.maintenances[1].spec.node_selector.clone().map(|mut selector| {
        selector.node_selector_terms[0].match_expressions[0].values = vec!["elsewhere".into()];
        selector
    });
    sim.change("m", |m| (m.spec.node_selector, m.metadata.generation) = (nowhere, 2));
    sim.settle_but(&Task::Status("n".into()));
    let kept = &sim.status("m").node_statuses;
    assert_eq!(kept.iter().map(|s| (s.blockers.len(), s.blocked_pods)).collect::<Vec<_>>(), [(0, 0)]);
}

fn drained_with_one_pod() -> Sim {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim
}

/// A tenant's interceptor could say that a budget of another namespace keeps its pod, and the admin saw exactly that.
#[test]
fn what_the_interceptor_of_a_tenant_says_is_told_as_its_words() {
    let mut sim = drained_with_one_pod();
    let budget = json!({ "reason": "PodDisruptionBudget", "name": "coredns", "state": "NeverAllows" });
    let lie = "PodDisruptionBudget kube-system/coredns allows\n0 disruptions";
    let told = said_by(&mut sim, "x.tenant.example", lie, budget.clone());
    let expected = "x.tenant.example says: \"PodDisruptionBudget kube-system/coredns allows 0 disruptions\"";
    assert_eq!(told, pair("Interceptor", expected));
    let told = said_by(&mut sim, "imperative-eviction.k8s.io", "b allows 0", budget);
    assert_eq!(told, pair("PodDisruptionBudget", "b allows 0"));
}

/// An interceptor that changed its message each second caused a write of the whole status each second.
#[test]
fn the_words_of_a_blocker_are_written_once_a_minute_at_most() {
    for interceptor in ["x.tenant.example", "imperative-eviction.k8s.io"] {
        let mut sim = drained_with_one_pod();
        let begun = sim.now;
        let blocked = json!({ "reason": "PodDisruptionBudget", "name": "b" });
        let first = said_by(&mut sim, interceptor, "number 0", blocked.clone());
        for second in 1..60 {
            sim.now = begun + SignedDuration::from_secs(second);
            let told = said_by(&mut sim, interceptor, &format!("number {second}"), blocked.clone());
            assert_eq!(told, first, "{interceptor} at {second}");
        }
        let wake = step(&sim.world, &mut sim.memory, sim.now, &sim.config).wake;
        assert_eq!(wake, Some(begun + SignedDuration::from_secs(60)), "{interceptor}");
        sim.now = wake.unwrap();
        sim.settle();
        let blocker = &sim.status("m").node_statuses[0].blockers[0];
        assert!(bare(&blocker.message).trim_end_matches('"').ends_with("number 59"), "{}", blocker.message);
        assert_eq!(blocker.since_time, Some(begun));
    }
}

#[test]
fn another_budget_is_told_at_once() {
    let mut sim = drained_with_one_pod();
    for name in ["one", "two"] {
        let blocked = json!({ "reason": "PodDisruptionBudget", "name": name });
        let told = said_by(&mut sim, "imperative-eviction.k8s.io", name, blocked);
        assert_eq!(told, pair("PodDisruptionBudget", name));
    }
}
