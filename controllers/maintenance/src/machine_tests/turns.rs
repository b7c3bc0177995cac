//! Turns of requests that others ended: the status shows them before the pod is asked for again.

use drydock_api::node_maintenance::PodEarlierTurns;
use drydock_api::node_maintenance::limits::{MAX_POD_TURNS_BYTES, MAX_PODS_WITH_TURNS};
use drydock_machinery::object::json_len;
use jiff::SignedDuration;

use super::*;

const LAST: &str = "imperative-eviction.k8s.io";

fn draining(pods: usize) -> Sim {
    let mut sim = Sim::new(&["a"]);
    (0..pods).for_each(|at| sim.pod("a", &format!("p{at}"), &json!({})));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim
}

/// The first interceptor has had its turn, and the second one has its own.
fn begin(sim: &mut Sim, pod: &str, had: &str, active: &str) {
    let names = [had, active, LAST];
    sim.request(pod, |request| {
        request.status.target_interceptors =
            serde_json::from_value(json!(names.map(|name| json!({"name": name})))).unwrap();
        request.status.processed_interceptors = vec![had.to_owned()];
        request.status.active_interceptors = vec![active.to_owned()];
    });
}

fn shown(sim: &Sim) -> &[PodEarlierTurns] {
    &sim.status("m").pod_turns
}

fn names(sim: &Sim, pod: &str) -> Vec<String> {
    sim.status("m")
        .turns_of(&format!("uid-{pod}"))
        .map(|turns| turns.interceptors.clone())
        .unwrap_or_default()
}

/// A manager that was started anew gave all turns again.
#[test]
fn the_status_shows_the_turns_before_the_pod_is_asked_for_again_and_a_restart_keeps_them() {
    let mut sim = draining(1);
    begin(&mut sim, "p0", "a.b", "c.d");
    sim.now += SignedDuration::from_secs(90);
    sim.delete_request("p0");
    let actions = sim.step();
    assert!(actions.keys().all(|task| !matches!(task, Task::Request(..))), "{actions:?}");
    actions.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
    assert_eq!(names(&sim, "p0"), ["a.b", "c.d"]);
    assert_eq!(shown(&sim)[0].turns.seconds, 90);
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(
        (sim.requested(), names(&sim, "p0")),
        (vec!["p0".to_owned()], vec!["a.b".to_owned(), "c.d".to_owned()])
    );
    begin(&mut sim, "p0", "e.f", "g.h");
    sim.delete_request("p0");
    sim.settle();
    assert_eq!(names(&sim, "p0"), ["a.b", "c.d", "e.f", "g.h"]);
    sim.remove_pod("p0");
    sim.settle();
    assert!(shown(&sim).is_empty(), "the pod is gone");
}

/// A pod was never asked for again where the status could not be written, or an API server of an earlier version dropped
/// the field.
#[test]
fn a_pod_whose_turns_no_status_shows_is_asked_for_again_after_a_minute() {
    let mut sim = draining(1);
    begin(&mut sim, "p0", "a.b", "c.d");
    sim.delete_request("p0");
    let status = Task::Status("m".to_owned());
    sim.settle_but(&status);
    assert!(sim.requested().is_empty() && shown(&sim).is_empty());
    let minute = SignedDuration::from_secs(60);
    let waits = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert!(waits.wake.is_some_and(|wake| wake <= sim.now + minute), "{:?}", waits.wake);
    sim.now += minute;
    sim.settle_but(&status);
    assert_eq!(sim.requested(), ["p0"]);
}

#[test]
fn requests_that_end_as_evicted_while_the_pod_stays_or_lose_our_requester_count_and_our_own_withdrawal_does_not()
 {
    let mut sim = draining(2);
    begin(&mut sim, "p0", "a.b", LAST);
    sim.request("p0", |request| request.status.conditions = conditions("Evicted", "PodTerminated", ""));
    begin(&mut sim, "p1", "c.d", "e.f");
    sim.request("p1", |request| request.spec.requesters.clear());
    sim.settle();
    assert_eq!(
        (names(&sim, "p0"), names(&sim, "p1")),
        (vec!["a.b".to_owned()], vec!["c.d".to_owned(), "e.f".to_owned()])
    );
    let mut ended = draining(1);
    begin(&mut ended, "p0", "a.b", "c.d");
    ended.stage("m", NodeMaintenanceStage::Complete);
    ended.settle();
    ended.maintenance("next", "Drain", &["a"]);
    ended.settle();
    assert!(ended.status("m").pod_turns.is_empty() && ended.status("next").pod_turns.is_empty());
}

/// The time grew with each planning, and so did the writes of the status: it was counted until the present.
#[test]
fn the_time_of_a_request_that_ended_as_evicted_in_a_turn_ends_with_it() {
    let mut sim = draining(1);
    begin(&mut sim, "p0", "a.b", "c.d");
    let mut evicted = conditions("Evicted", "PodTerminated", "");
    evicted[0].last_transition_time = Some(sim.now);
    sim.request("p0", |request| {
        request.status.processed_interceptors.append(&mut request.status.active_interceptors);
        request.status.conditions = evicted;
    });
    sim.settle();
    let first = shown(&sim).to_vec();
    assert_eq!(names(&sim, "p0"), ["a.b", "c.d"]);
    sim.now += SignedDuration::from_secs(30);
    sim.settle();
    assert_eq!(shown(&sim), first);
}

/// Two deletions between two plannings: the first one's turns were forgotten.
#[test]
fn requests_that_come_and_go_between_two_plannings_count_all() {
    let mut sim = draining(1);
    begin(&mut sim, "p0", "a.b", "c.d");
    sim.delete_request("p0");
    sim.request("p0", |request| {
        request.metadata.uid = "second".to_owned();
        request.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
    });
    begin(&mut sim, "p0", "e.f", "g.h");
    sim.delete_request("p0");
    sim.settle();
    let mut all = names(&sim, "p0");
    all.sort();
    assert_eq!(all, ["a.b", "c.d", "e.f", "g.h"]);
}

/// A status has bounds: pods beyond them are asked for all the same, and those that are shown stay.
#[test]
fn a_status_shows_as_many_pods_as_it_has_room_for_and_the_others_are_asked_for_too() {
    let pods = 700;
    let mut sim = draining(pods);
    let long = |at: usize| format!("{}{at}.example.com", "n".repeat(40));
    for at in 0..pods {
        begin(&mut sim, &format!("p{at}"), &long(at), LAST);
        sim.delete_request(&format!("p{at}"));
    }
    sim.settle();
    assert_eq!(sim.requested().len(), pods);
    let before = shown(&sim).to_vec();
    assert!(!before.is_empty() && before.len() <= MAX_PODS_WITH_TURNS);
    assert!(json_len(&before) <= MAX_POD_TURNS_BYTES, "{}", json_len(&before));
    sim.pod("a", "a0", &json!({}));
    sim.settle();
    begin(&mut sim, "a0", "a.b", LAST);
    sim.delete_request("a0");
    sim.settle();
    assert_eq!(shown(&sim), before, "a new one does not take the place of those that are shown");
}
