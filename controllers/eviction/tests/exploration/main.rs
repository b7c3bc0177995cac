//! Every state that a request with two requesters and three interceptors can reach: the shipping step and the admission
//! table, with caches that lag one version, a controller that restarts, and time in classes.
//!
//! ```text
//!   state    the request and its pod with ages instead of times, and as the objects that the step gets
//!   world    what may happen: users, interceptors, the pod, the caches, the controller, the clock
//!   rules    what holds in each state and for each event, and what a fair schedule comes to
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod state;

mod world;

mod rules;

use rules::explore;
use world::{Fault, Scope};

/// What a search is to cover at least, so that it does not shrink unseen.
const FEWEST_STATES: usize = 400_000;

#[test]
fn no_order_of_events_breaks_a_rule_or_leaves_a_request_behind() {
    let mut states = 0;
    for scope in Scope::ALL {
        let found = explore(scope, Fault::None);
        assert_eq!(found.broken, None, "{scope:?}");
        println!("{scope:?}: {} states, {} events", found.states, found.events);
        states += found.states;
    }
    assert!(states >= FEWEST_STATES, "{states} states");
}

#[test]
fn faults_that_are_put_in_are_found() {
    for (fault, rule) in [
        (Fault::TrustsTheCache, "a request fails validation that was taken up, or whose pod is there"),
        (Fault::WakesLate, "nothing wakes the controller, which has something to do"),
        (Fault::WritesWithoutVersion, "a request fails validation that was taken up, or whose pod is there"),
        (Fault::PassesOverEarly, "admission refuses what the controller decided"),
        (Fault::IgnoresPodEvents, "a request is stuck"),
    ] {
        let broken = Scope::ALL.into_iter().find_map(|scope| explore(scope, fault).broken);
        let (found, trace) = broken.unwrap_or_else(|| panic!("{fault:?} is not found"));
        assert!(found.starts_with(rule), "{fault:?}: {found}, after {trace:#?}");
    }
}
