//! All orders of events in a small world: two requests whose pods one budget covers, with caches that lag one version. The
//! budget opens, closes and goes; evictions are refused, lost or denied; requests are withdrawn and wanted again; the process
//! begins anew. The step is the one that ships.

// Compiled for tests alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod state;
mod steps;
mod world;

use drydock_runtime::exploration::{STUCK, Violation, Visited, explore};

use steps::Steps;
use world::{Fault, ImperativeWorld, Scope};

fn explored(scope: Scope, fault: Option<Fault>) -> Result<Visited, Box<Violation>> {
    explore(&ImperativeWorld { scope, steps: Steps::new(fault == Some(Fault::WakeUpIsLate)), fault })
}

fn check(scope: Scope, least: usize) {
    let visited = explored(scope, None).unwrap_or_else(|violation| panic!("{scope:?}: {violation}"));
    println!("{scope:?}: {visited:?}");
    assert!(visited.states >= least, "the world has shrunk: {visited:?}");
}

#[test]
fn in_all_orders_of_events_about_one_request_the_rules_hold_and_it_is_not_stuck() {
    check(Scope::Alone, 500_000);
}

#[test]
fn in_all_orders_of_events_about_two_requests_the_rules_hold_and_neither_is_stuck() {
    check(Scope::Pair, 500_000);
}

#[test]
fn faults_that_are_put_in_are_found() {
    for (fault, scope, rule) in [
        (Fault::WakeUpIsDropped, Scope::Alone, STUCK),
        (Fault::WakeUpIsLate, Scope::Alone, "a wake-up is late"),
        (Fault::DisruptionIsNotPassedOn, Scope::Pair, STUCK),
        (Fault::ChangeIsNotNoticed, Scope::Alone, STUCK),
        (Fault::LostAnswerIsARace, Scope::Alone, "a pod is evicted twice"),
        (Fault::DoubtIsARace, Scope::Alone, "a pod is evicted twice"),
    ] {
        let violation = explored(scope, Some(fault)).expect_err("the fault is found");
        println!("{fault:?}: {violation}");
        assert!(violation.rule.starts_with(rule), "{fault:?}: {violation}");
    }
}
