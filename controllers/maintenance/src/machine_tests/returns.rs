//! Workloads that put their pods back.

use jiff::SignedDuration;

use super::*;

/// A pod of a Deployment.
fn web(namespace: &str) -> Value {
    json!({ "metadata": { "namespace": namespace, "labels": { "pod-template-hash": "5d4" }, "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4", "uid": "rs", "controller": true }] } })
}

/// The same, made now.
fn made_now(sim: &mut Sim, name: &str) {
    let mut pod = web("ns");
    pod["metadata"]["creationTimestamp"] = sim.now.to_string().into();
    sim.pod("a", name, &pod);
}

/// A node that has been drained for a second, with so many pods of a Deployment.
fn draining(pods: usize) -> Sim {
    let mut sim = Sim::new(&["a"]);
    (0..pods).for_each(|n| sim.pod("a", &format!("w{n}"), &web("ns")));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.now += SignedDuration::from_secs(1);
    sim
}

fn blocker(sim: &Sim) -> Option<(String, String)> {
    let blocker = sim.status("m").node_statuses[0].blockers.first();
    blocker.map(|blocker| (blocker.reason.clone(), bare(&blocker.message)))
}

/// A Deployment that tolerates everything puts its pod on the emptiest node, which is the one that is
/// drained. Each was a new pod: it was evicted as fast as it came, forever, and nothing said so.
#[test]
fn a_workload_that_comes_back_is_named_and_asked_to_leave_with_backoff() {
    let mut sim = draining(1);
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["w0".to_owned()], None));
    let mut waits = Vec::new();
    for round in 1..5 {
        sim.remove_pod(&format!("w{}", round - 1));
        made_now(&mut sim, &format!("w{round}"));
        sim.settle();
        assert!(sim.requested().is_empty(), "{round}");
        let (reason, message) = blocker(&sim).unwrap();
        assert_eq!(reason, "WorkloadReturns");
        assert!(message.starts_with("ReplicaSet web-5d4 (Deployment web) has put a new pod on"), "{message}");
        let wake = step(&sim.world, &mut sim.memory, sim.now, &sim.config).wake.unwrap();
        waits.push(wake.duration_since(sim.now).as_secs());
        sim.now = wake;
        sim.settle();
        assert_eq!(sim.requested(), [format!("w{round}")]);
        assert_eq!(blocker(&sim), None, "it is asked to leave");
    }
    assert_eq!(waits, [10, 20, 40, 80]);
    assert_eq!(
        sim.events
            .iter()
            .filter(|n| n.reason == "WorkloadReturns" && n.severity == Severity::Warning)
            .count(),
        4
    );
    sim.remove_pod("w4");
    sim.settle();
    assert_eq!((blocker(&sim), sim.drained("m")), (None, pair("True", "AllPodsTerminated")));
}

/// The workload was blamed until the pod was gone, whatever kept it by then.
#[test]
fn a_pod_that_came_back_and_was_asked_to_leave_is_blocked_by_what_keeps_it_now() {
    let mut sim = draining(2);
    sim.remove_pod("w0");
    made_now(&mut sim, "w2");
    sim.settle();
    assert!(blocker(&sim).is_some_and(|(reason, _)| reason == "WorkloadReturns"));
    sim.now += SignedDuration::from_secs(10);
    sim.settle();
    let now = sim.now;
    let refused = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": now.to_string(),
        "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": "b allows 0",
            "blocked": { "reason": "PodDisruptionBudget", "name": "b" } }] });
    sim.request("w2", |r| r.status = serde_json::from_value(refused).unwrap());
    sim.settle();
    assert_eq!(blocker(&sim), pair("PodDisruptionBudget", "b allows 0"));
    sim.remove_pod("w1");
    made_now(&mut sim, "w3");
    sim.settle();
    assert_eq!(blocker(&sim), pair("PodDisruptionBudget", "b allows 0"), "also when another one comes back");
    assert_eq!(sim.status("m").node_statuses[0].blockers[1].reason, "WorkloadReturns");
    sim.remove_pod("w3");
    let pods = sim.world.pods.get_mut("a").unwrap();
    let mut pod = (*pods[0]).clone();
    pod.deletion_timestamp = Some(now + SignedDuration::from_secs(30));
    pods[0] = Arc::new(pod);
    sim.settle();
    assert_eq!(blocker(&sim), None, "it leaves within its grace period");
}

/// Its replacement is made when it begins to terminate.
#[test]
fn a_pod_that_is_put_there_while_the_one_before_terminates_is_a_return() {
    let mut sim = draining(1);
    let now = sim.now;
    let pods = sim.world.pods.get_mut("a").unwrap();
    let mut pod = (*pods[0]).clone();
    pod.deletion_timestamp = Some(now + SignedDuration::from_secs(30));
    pods[0] = Arc::new(pod);
    made_now(&mut sim, "w1");
    sim.settle();
    assert!(blocker(&sim).is_some_and(|(reason, _)| reason == "WorkloadReturns"));
    assert_eq!(sim.requested(), ["w0"]);
}

#[test]
fn pods_that_were_there_before_are_no_returns() {
    let mut sim = draining(3);
    assert_eq!(sim.requested().len(), 3);
    sim.remove_pod("w0");
    sim.settle();
    assert_eq!((sim.requested().len(), blocker(&sim)), (2, None));
}

/// A pod that was bound before the node was cordoned, and that the cache showed late, was reported as put
/// back, and held back.
#[test]
fn a_pod_that_is_older_than_the_drain_is_no_return() {
    let mut sim = draining(1);
    let begun = sim.now - SignedDuration::from_secs(1);
    sim.remove_pod("w0");
    let mut old = web("ns");
    old["metadata"]["creationTimestamp"] = begun.to_string().into();
    sim.pod("a", "w1", &old);
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["w1".to_owned()], None));
    made_now(&mut sim, "w2");
    sim.settle();
    assert_eq!(sim.requested(), ["w1"]);
    assert_eq!(
        (
            sim.events.iter().filter(|n| n.reason == "WorkloadReturns").count(),
            sim.status("m").outcomes.returned
        ),
        (1, 1)
    );
}

/// A writer of pods can name any owner.
#[test]
fn a_workload_of_the_same_uid_in_another_namespace_is_another_one() {
    let mut sim = draining(1);
    sim.remove_pod("w0");
    sim.pod("a", "other", &web("elsewhere"));
    let actions = sim.step();
    let task = Task::Request("elsewhere".into(), "uid-other".into());
    assert!(matches!(change_of(&actions[&task]), RequestChange::Ask { .. }), "{actions:?}");
}

#[test]
fn a_workload_is_forgotten_after_an_hour_without_pods_on_the_node() {
    let mut sim = draining(1);
    sim.remove_pod("w0");
    sim.settle();
    sim.now += SignedDuration::from_mins(61);
    sim.settle();
    made_now(&mut sim, "w1");
    sim.settle();
    assert_eq!((sim.requested(), blocker(&sim)), (vec!["w1".to_owned()], None));
}
