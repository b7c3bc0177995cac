//! Requests that are made again: a blocker says how often and since when, even after a restart.

use jiff::SignedDuration;

use super::*;

/// A pod whose interceptor does not run.
fn unserved() -> Sim {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim
}

/// The interceptor's turn begins, and it reports nothing for a minute.
fn told(sim: &mut Sim) -> String {
    let begun = sim.now;
    sim.request("p", |r| {
        r.status.target_interceptors = serde_json::from_value(json!([{ "name": "a.b" }])).unwrap();
        r.status.active_interceptors = vec!["a.b".into()];
        r.status.activation_time = Some(begun);
        r.status.interceptors = serde_json::from_value(json!([{ "name": "a.b", "message": "" }])).unwrap();
    });
    sim.now += SignedDuration::from_mins(1);
    sim.settle();
    bare(&sim.status("m").node_statuses[0].blockers[0].message)
}

/// Others delete the request, and it is made anew.
fn delete(sim: &mut Sim) {
    sim.delete_request("p");
    sim.settle();
    sim.now += SignedDuration::from_hours(1);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

fn annotate(sim: &mut Sim, value: &str) {
    let annotation = (ASKED_AGAIN_ANNOTATION.to_owned(), value.to_owned());
    sim.request("p", |r| Arc::make_mut(&mut r.metadata.annotations).extend([annotation]));
}

/// Each deletion started the interceptor's time again, and nothing said that it was not the first one.
#[test]
fn a_request_that_is_made_anew_says_how_often_and_since_when_also_after_a_restart() {
    let mut sim = unserved();
    assert!(!told(&mut sim).contains("asked again"));
    delete(&mut sim);
    let once = told(&mut sim);
    let words =
        "may end its turn; asked again once, first at 2026-01-01T12:00:00Z. To go on now: kubectl patch ";
    assert!(once.contains(words), "{once}");
    sim.memory = MachineMemory::default();
    delete(&mut sim);
    let twice = told(&mut sim);
    assert!(twice.contains("; asked again 2 times, first at 2026-01-01T12:00:00Z."), "{twice}");
    // The request alone says it.
    sim.memory = MachineMemory::default();
    let recalled = told(&mut sim);
    assert!(recalled.contains("; asked again 2 times, first at 2026-01-01T12:00:00Z."), "{recalled}");
}

#[test]
fn what_others_write_into_it_does_not_change_what_we_counted() {
    let mut sim = unserved();
    delete(&mut sim);
    annotate(&mut sim, r#"{"times":900,"firstTime":"1970-01-01T00:00:00Z"}"#);
    delete(&mut sim);
    let told = told(&mut sim);
    assert!(told.contains("; asked again 2 times, first at 2026-01-01T12:00:00Z."), "{told}");
}

/// Only requests that others had taken from us were counted.
#[test]
fn a_request_that_fails_validation_or_targets_another_pod_does_not_end_the_count() {
    for restart in [false, true] {
        let mut sim = unserved();
        delete(&mut sim);
        let now = sim.now;
        sim.request("p", |r| {
            r.metadata.uid = "failed".to_owned();
            r.status.conditions = conditions("Canceled", "ValidationFailed", "no");
            r.status.conditions[0].last_transition_time = Some(now);
        });
        if restart {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        sim.now += SignedDuration::from_hours(1);
        sim.settle();
        assert_ne!(
            sim.world.requests[&("ns".into(), "uid-p".into())].metadata.uid,
            "failed",
            "it was replaced"
        );
        let told = told(&mut sim);
        assert!(told.contains("; asked again 2 times, first at 2026-01-01T12:00:00Z"), "{restart}: {told}");
    }
    let mut sim = unserved();
    delete(&mut sim);
    sim.delete_request("p");
    sim.request("p", |r| {
        r.metadata.uid = "squat".to_owned();
        r.spec.target.pod = serde_json::from_value(json!({ "name": "other", "uid": "uid-p" })).unwrap();
    });
    for _ in 0..3 {
        sim.now += SignedDuration::from_hours(1);
        sim.settle();
    }
    assert_eq!(sim.requested(), ["p"], "it was replaced");
    let told = told(&mut sim);
    assert!(told.contains("; asked again 2 times, first at 2026-01-01T12:00:00Z"), "{told}");
}

#[test]
fn a_value_that_cannot_be_true_is_not_believed() {
    let long = format!(r#"{{"times":2,"firstTime":"2026-01-01T11:00:00Z","x":"{}"}}"#, "x".repeat(100));
    let wrong = [
        "",
        "[]",
        "null",
        "7",
        r#"{"times":2}"#,
        r#"{"times":0,"firstTime":"2026-01-01T11:00:00Z"}"#,
        r#"{"times":1001,"firstTime":"2026-01-01T11:00:00Z"}"#,
        r#"{"times":-1,"firstTime":"2026-01-01T11:00:00Z"}"#,
        r#"{"times":2,"firstTime":"2026-01-01T12:00:01Z"}"#,
        r#"{"times":2,"firstTime":"soon"}"#,
        &long,
    ];
    for value in wrong {
        let mut sim = unserved();
        annotate(&mut sim, value);
        let told = told(&mut sim);
        assert!(!told.contains("asked again"), "{value}: {told}");
    }
}
