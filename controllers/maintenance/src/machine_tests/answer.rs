//! What Drained=False says beside the number of pods.

use drydock_runtime::refusal::{self, RefusalSource};

use super::*;

/// The last interceptor says that a budget keeps a pod, in these words.
fn refuse(sim: &mut Sim, pod: &str, reason: &str, words: &str) {
    sim.request(pod, |r| {
        r.status = serde_json::from_value(json!({
            "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
            "interceptors": [{ "name": "imperative-eviction.k8s.io", "message": words, "heartbeatTime": NOW,
                "blocked": { "reason": reason, "name": "b" } }],
        }))
        .unwrap();
    });
}

fn message(sim: &Sim, name: &str) -> String {
    sim.says(name, DRAINED).unwrap().2
}

#[test]
fn it_tells_what_blocks_most_since_when_and_what_to_do() {
    let mut sim = Sim::new(&["a", "b"]);
    for (node, pod) in [("a", "one"), ("a", "two"), ("b", "three"), ("b", "four")] {
        sim.pod(node, pod, &json!({}));
    }
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    assert_eq!(message(&sim, "m"), "4 pods are left on 2 of 2 nodes");
    refuse(&mut sim, "three", "AdmissionWebhook", "Denied by w.");
    sim.settle();
    let one = "4 pods are left on 2 of 2 nodes. 1 of them is blocked, 1 by AdmissionWebhook: pod ns/three on node b since \
               2026-01-01T12:00:00Z: Denied by w (see AdmissionWebhook in controllers/README.md). Ask whoever";
    assert!(message(&sim, "m").starts_with(one), "{}", message(&sim, "m"));
    sim.now = "2026-01-01T12:00:30Z".parse().unwrap();
    refuse(&mut sim, "one", "PodDisruptionBudget", "Budget b allows none, `run this`");
    sim.settle();
    sim.now = "2026-01-01T12:00:45Z".parse().unwrap();
    refuse(&mut sim, "two", "PodDisruptionBudget", "Budget b allows none");
    sim.settle();
    let more = "4 pods are left on 2 of 2 nodes. 3 of them are blocked, 2 by PodDisruptionBudget: pod ns/one on node a since \
                2026-01-01T12:00:30Z: Budget b allows none, 'run this' (see PodDisruptionBudget in controllers/README.md). Let more \
                pods";
    assert!(message(&sim, "m").starts_with(more), "{}", message(&sim, "m"));
}

/// A text that changes because time passes would be a write of the whole status each time.
#[test]
fn a_drain_that_is_blocked_for_long_writes_nothing() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "one", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    refuse(&mut sim, "one", "PodDisruptionBudget", "Budget b allows none");
    sim.settle();
    for second in 0..300 {
        sim.now = NOW.parse::<Timestamp>().unwrap() + std::time::Duration::from_secs(second);
        let actions = sim.step();
        assert!(actions.is_empty(), "after {second} s: {actions:?}");
    }
}

/// The backoff after refusals of a webhook changed the number of retries, so that each heartbeat wrote the
/// whole status.
#[test]
fn a_drain_that_a_webhook_blocks_for_long_writes_nothing_as_the_retries_rise() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "one", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let retry = |sim: &mut Sim, retries| {
        let words = "admission webhook \"w\" denied the request: no";
        let message = refusal::message(retries, RefusalSource::Admission, words);
        refuse(sim, "one", "AdmissionWebhook", &message);
    };
    retry(&mut sim, 1);
    sim.settle();
    for heartbeat in 1..10 {
        sim.now += std::time::Duration::from_secs(180);
        retry(&mut sim, heartbeat * 7);
        let actions = sim.step();
        assert!(actions.is_empty(), "heartbeat {heartbeat}: {actions:?}");
    }
}

#[test]
fn one_that_waits_for_another_maintenance_tells_what_that_waits_for() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "low", &json!({ "spec": { "priority": 100 } }));
    sim.pod("b", "high", &json!({ "spec": { "priority": 5 } }));
    sim.maintenance("early", "Drain", &["a"]);
    sim.maintenance("late", "Drain", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.requested(), ["high"]);
    let waits = "1 pod is left on 1 of 1 node. They wait for node b, which another maintenance drains; ";
    assert_eq!(message(&sim, "early"), format!("{waits}1 pod is left there"));
    refuse(&mut sim, "high", "PodDisruptionBudget", "Budget b allows none");
    sim.settle();
    let why = "PodDisruptionBudget: pod ns/high on node b since 2026-01-01T12:00:00Z: Budget b allows none";
    assert_eq!(bare(&message(&sim, "early")), format!("{waits}{why}"));
    let shown = &sim.status("early").node_statuses[0].drain_message;
    assert_eq!(shown, "Waiting for node b (late).", "in the seed's words");
}
