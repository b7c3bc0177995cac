//! All orders of events in a small world: two requesters, three interceptors, one pod, a controller whose caches lag one
//! version and which may begin anew at any time. The steps, the patch and admission are those that ship.
//!
//! `state` has the states, `objects` makes the objects of a state and the state of an object, `rules` asks the shipping
//! code, `world` has the moves.

// Compiled for tests alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod objects;
mod rules;
mod state;
mod world;

use drydock_runtime::exploration::{STUCK, Violation, Visited, explore};

use rules::{Fault, Rules};
use world::EvictionWorld;

fn explored(ahead: i64, fault: Option<Fault>) -> Result<Visited, Box<Violation>> {
    explore(&EvictionWorld { rules: Rules::new(ahead, fault) })
}

/// The clocks differ by less than admission allows.
#[test]
fn in_all_orders_of_events_the_rules_hold_and_no_request_is_stuck() {
    for ahead in [0, 9, -9] {
        let visited =
            explored(ahead, None).unwrap_or_else(|violation| panic!("{ahead} s ahead: {violation}"));
        println!("{ahead} s ahead: {visited:?}");
        assert!(visited.states >= 500_000, "the world has shrunk: {visited:?}");
    }
}

fn broken_by(fault: Fault) -> String {
    let violation = explored(0, Some(fault)).expect_err("the fault is found");
    println!("{fault:?}: {violation}");
    violation.rule
}

#[test]
fn a_turn_that_ends_early_is_found() {
    assert_eq!(broken_by(Fault::TurnEndsEarly), "admission refuses what the controller writes");
}

#[test]
fn a_wake_up_that_is_dropped_is_found() {
    assert_eq!(broken_by(Fault::WakeUpIsDropped), STUCK);
}

#[test]
fn a_wake_up_that_is_late_is_found() {
    assert!(broken_by(Fault::WakeUpIsLate).starts_with("a wake-up is late"));
}

#[test]
fn an_end_that_is_forgotten_is_found() {
    assert!(broken_by(Fault::EndIsForgotten).starts_with("the end of a request changes"));
}

#[test]
fn a_cache_that_is_trusted_is_found() {
    assert!(broken_by(Fault::CacheIsTrusted).contains("the pod is Running"));
}
