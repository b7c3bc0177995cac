//! Requests that are over, and are kept for the owner of the pod.

use std::time::Duration;

use jiff::SignedDuration;

use super::*;

/// A pod that an interceptor of its owner dealt with, and that is gone now. Its request is kept for an hour.
fn evicted_after_an_interceptor() -> Sim {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.pod("a", "plain", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["p", "plain"]);
    sim.request("p", |r| r.status.processed_interceptors.push("saver.example.com".to_owned()));
    evict(&mut sim, "p");
    evict(&mut sim, "plain");
    sim
}

fn evict(sim: &mut Sim, pod: &str) {
    sim.remove_pod(pod);
    let now = sim.now;
    sim.request(pod, |r| r.status.conditions[0].last_transition_time = Some(now));
}

fn an_hour_later(sim: &mut Sim) {
    sim.now += SignedDuration::from_hours(1);
    sim.settle();
}

#[test]
fn a_request_whose_owner_got_an_event_is_kept_for_an_hour_and_any_other_is_not() {
    let mut sim = evicted_after_an_interceptor();
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert_eq!(decision.wake, Some(sim.now + SignedDuration::from_hours(1)));
    an_hour_later(&mut sim);
    assert!(sim.requested().is_empty());
}

#[test]
fn a_kept_request_is_in_no_count_and_keeps_nothing_from_its_end() {
    let mut sim = evicted_after_an_interceptor();
    sim.settle();
    assert_eq!(sim.drained("m").map(|(status, _)| status).as_deref(), Some("True"));
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.pods_evacuating, node.pods_pending_evacuation, node.blocked_pods), (0, 0, 0));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty(), "the end does not wait for it");
    assert_eq!(sim.requested(), ["p"]);
}

/// What is stored decides: neither the maintenance nor a memory is needed for it.
#[test]
fn it_is_kept_when_the_maintenance_is_gone_and_another_manager_leads() {
    let mut sim = evicted_after_an_interceptor();
    sim.settle();
    sim.world.maintenances.clear();
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    an_hour_later(&mut sim);
    assert!(sim.requested().is_empty());
}

/// A pod that has ended stays on its node as an object.
#[test]
fn a_kept_request_of_a_pod_that_has_ended_does_not_keep_the_finalizer() {
    let mut sim = evicted_after_an_interceptor();
    sim.pod("a", "p", &json!({ "status": { "phase": "Succeeded" } }));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    assert_eq!(sim.requested(), ["p"]);
    an_hour_later(&mut sim);
    assert!(sim.requested().is_empty());
}

#[test]
fn without_a_retention_none_is_kept() {
    let mut sim = evicted_after_an_interceptor();
    sim.config.request_retention = Duration::ZERO;
    sim.settle();
    assert!(sim.requested().is_empty());
}

#[test]
fn a_request_that_was_canceled_is_not_kept() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.request("p", |r| r.status.processed_interceptors.push("saver.example.com".to_owned()));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty());
}
