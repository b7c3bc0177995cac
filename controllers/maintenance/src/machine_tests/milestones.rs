//! What is told of a maintenance as it goes on.

use super::*;

fn told(sim: &Sim) -> Vec<(&str, &str)> {
    let of_maintenance =
        sim.notes.iter().filter(|note| note.about == crate::actions::About::Maintenance("m".into()));
    of_maintenance.map(|note| (note.reason, note.message.as_str())).collect()
}

fn reasons(sim: &Sim) -> Vec<&str> {
    told(sim).into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn each_step_is_told_once_and_in_order_also_by_a_new_manager() {
    let mut sim = Sim::new(&["a", "b"]);
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true });
    sim.pod("a", "p", &json!({ "metadata": { "ownerReferences": [owner] } }));
    sim.maintenance("m", "Cordon", &["a", "b"]);
    sim.settle();
    assert_eq!(told(&sim), [("Cordoned", "All 2 selected nodes are unschedulable")]);
    sim.stage("m", Stage::Drain);
    sim.settle();
    sim.memory = Memory::default();
    sim.change_node("a", |node| node.unschedulable = false);
    sim.settle();
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted", "NodeDrained", "NodeDrained"]);
    assert_eq!(told(&sim)[1].1, "1 pod on 2 nodes is asked to leave");
}

#[test]
fn a_drain_starts_when_its_nodes_are_cordoned() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted", "NodeDrained"]);
}

fn blocked_by(sim: &mut Sim, pod: &str, reason: &str, name: &str) {
    let at = sim.now.to_string();
    let status = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": at, "interceptors": [
        { "name": "imperative-eviction.k8s.io", "startTime": at, "heartbeatTime": at, "message": format!("{name} refuses"),
          "blocked": { "reason": reason, "name": name, "state": "" } }] });
    sim.request(pod, |r| r.status = serde_json::from_value(status).unwrap());
    sim.settle();
}

#[test]
fn a_cause_is_told_once_with_the_first_pod_and_a_budget_after_a_minute() {
    let mut sim = Sim::new(&["a"]);
    for pod in ["p", "q", "r"] {
        sim.pod("a", pod, &json!({}));
    }
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.notes.clear();
    blocked_by(&mut sim, "p", "AdmissionWebhook", "w.example.com");
    let first = "AdmissionWebhook keeps pod ns/p on node a: w.example.com refuses";
    assert_eq!(told(&sim), [("EvictionBlocked", first)]);
    blocked_by(&mut sim, "q", "AdmissionWebhook", "w.example.com");
    blocked_by(&mut sim, "r", "PodDisruptionBudget", "b");
    assert_eq!(told(&sim).len(), 1, "the cause is known, and the budget may let it go");
    sim.now += jiff::SignedDuration::from_secs(60);
    sim.settle();
    let second = "PodDisruptionBudget keeps pod ns/r on node a: b refuses";
    assert_eq!(told(&sim), [("EvictionBlocked", first), ("EvictionBlocked", second)]);
}
