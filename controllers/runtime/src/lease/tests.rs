//! Who may hold the lease, from when and until when.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::decide::{LastLease, admissible, first_spec, next_spec, previous_renewal, released};
use super::earlier::{EarlierTerms, term};
use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;

fn config(identity: &str) -> LeaseConfig {
    LeaseConfig::new("ns", "lease", identity)
}

fn held_by(identity: &str) -> LeaseSpec {
    first_spec(&config(identity), None, Timestamp::UNIX_EPOCH)
}

fn next(spec: &LeaseSpec, me: &str, seen_at: u64, now: u64) -> Option<LeaseSpec> {
    next_spec(spec, &config(me), S(seen_at), S(now), Timestamp::from_second(1000).unwrap())
}

#[test]
fn lease_of_another_is_left_alone_until_it_was_silent_for_its_duration() {
    assert_eq!(next(&held_by("a"), "b", 0, 14), None);
    let taken = next(&held_by("a"), "b", 0, 15).unwrap();
    assert_eq!(taken.holder_identity.as_deref(), Some("b"));
    assert_eq!(taken.lease_transitions, Some(1));
}

#[test]
fn renewal_keeps_the_term_and_the_time_of_acquisition() {
    let renewed = next(&held_by("a"), "a", 0, 3).unwrap();
    assert_eq!(renewed.lease_transitions, Some(0));
    assert_eq!(renewed.acquire_time, held_by("a").acquire_time);
    assert_ne!(renewed.renew_time, held_by("a").renew_time);
}

#[test]
fn each_term_has_a_higher_number_also_after_a_holder_whose_clock_was_ahead() {
    let ahead =
        LeaseSpec { acquire_time: Some(MicroTime(Timestamp::from_second(5000).unwrap())), ..held_by("a") };
    let taken = next(&ahead, "b", 0, 15).unwrap();
    assert!(term(&taken) > term(&ahead));
    assert_eq!(term(&next(&taken, "b", 0, 16).unwrap()), term(&taken), "a renewal is of the same term");
    let again = next(&released(&taken, Timestamp::UNIX_EPOCH), "a", 0, 0).unwrap();
    assert!(term(&again) > term(&taken));
    // The Lease was deleted: leaseTransitions begins at 0, the number of the term does not.
    let anew = first_spec(&config("c"), None, Timestamp::from_second(6000).unwrap());
    assert!(term(&anew) > term(&again));
    // It was deleted while its holder lived, whose clock has been set back since.
    let anew = first_spec(&config("a"), again.acquire_time.clone().map(|time| time.0), Timestamp::UNIX_EPOCH);
    assert_eq!(term(&anew), term(&again) + 1);
}

/// The API server refuses the number of a term for good: the holder begins another one, and nobody else does.
#[test]
fn only_the_holder_of_a_refused_term_begins_another_one() {
    let micros = 1_000_000_000;
    let ours = next(&held_by("a"), "a", 0, 3).unwrap();
    let earlier = EarlierTerms::default();
    let outdated = RefusedToken { term: 0, newest: 5 * micros, highest: 6 * micros };
    let anew = admissible(&ours, outdated, &earlier).unwrap();
    assert_eq!((term(&anew), &anew.holder_identity), (5 * micros + 1, &ours.holder_identity));
    assert_eq!(anew.lease_transitions, ours.lease_transitions);
    let ahead = RefusedToken { term: term(&anew), newest: 7, highest: micros };
    assert_eq!(admissible(&anew, ahead, &earlier).as_ref().map(term), Some(8));
    // The refusal is about another term than this.
    assert_eq!(admissible(&anew, outdated, &earlier), None);
    // A newer leader has made it outdated: it holds the Lease.
    assert_eq!(next(&held_by("b"), "a", 0, 3), None);
    // Nothing is above it.
    let never = RefusedToken { term: 0, newest: u64::MAX, highest: u64::MAX };
    assert_eq!(admissible(&ours, never, &earlier), None);
}

/// The answer to a late write of an earlier term says nothing of ours.
#[test]
fn an_answer_about_another_term_changes_nothing() {
    let refused = |term| RefusedToken { term, newest: 8, highest: 9 };
    let handle = LeaseHandle::pending(Clock::SYSTEM);
    assert!(!handle.refuse(refused(6)));
    handle.extend(7, Clock::SYSTEM.since_boot() + S(10));
    assert!(!handle.refuse(refused(6)) && handle.refused_token().is_none());
    assert!(handle.refuse(refused(7)) && !handle.refuse(refused(7)));
    assert!(!handle.refuse(refused(6)));
    handle.accept(6);
    assert_eq!(handle.refused_token(), Some(refused(7)));
    handle.extend(10, Clock::SYSTEM.since_boot() + S(10));
    assert_eq!(handle.refused_token(), None, "another term has begun");
    assert!(handle.refuse(refused(10)));
    handle.accept(10);
    assert_eq!(handle.refused_token(), None);
}

#[test]
fn released_lease_is_taken_at_once_in_a_new_term() {
    let free = released(&held_by("a"), Timestamp::UNIX_EPOCH);
    assert_eq!(next(&free, "b", 0, 0).unwrap().lease_transitions, Some(1));
    assert_eq!(next(&free, "a", 0, 0).unwrap().lease_transitions, Some(1));
}

#[test]
fn duration_that_the_holder_wrote_counts() {
    let spec = LeaseSpec { lease_duration_seconds: Some(60), ..held_by("a") };
    assert_eq!(next(&spec, "b", 0, 59), None);
    assert!(next(&spec, "b", 0, 60).is_some());
    let nonsense = LeaseSpec { lease_duration_seconds: Some(-1), ..held_by("a") };
    assert_eq!(next(&nonsense, "b", 0, 14), None);
}

#[test]
fn only_a_changed_lease_moves_the_time_it_was_seen() {
    let mut seen = LastLease::default();
    seen.update("1", S(5));
    seen.update("1", S(9));
    assert_eq!(seen.at, S(5));
    seen.update("2", S(9));
    assert_eq!(seen.at, S(9));
}

#[test]
fn handle_is_valid_only_within_its_term() {
    let handle = LeaseHandle::pending(Clock::SYSTEM);
    assert!(!handle.is_valid() && handle.term().is_none());
    handle.extend(3, Clock::SYSTEM.since_boot() + S(10));
    assert!(handle.is_valid());
    assert_eq!(handle.term(), Some(3));
    handle.extend(3, Clock::SYSTEM.since_boot());
    assert!(!handle.is_valid());
    assert!(LeaseHandle::unelected(Clock::SYSTEM).is_valid());
}

#[test]
fn a_holder_follows_the_last_renewal_of_the_one_before_and_not_its_own() {
    let renewed = Timestamp::from_second(7).unwrap();
    let of_a = LeaseSpec { renew_time: Some(MicroTime(renewed)), ..held_by("a") };
    assert_eq!(previous_renewal(&of_a, "b"), Some(renewed));
    assert_eq!(previous_renewal(&of_a, "a"), None);
    let given_back = released(&of_a, Timestamp::from_second(9).unwrap());
    assert_eq!(previous_renewal(&given_back, "b"), Some(Timestamp::from_second(9).unwrap()));
    let handle = LeaseHandle::pending(Clock::SYSTEM);
    handle.follow(renewed);
    assert_eq!(handle.previous_renewal(), renewed);
}

/// Regression: no event about anything that happened before 2036 was published, because the renewal of a holder whose clock
/// was wrong lay there.
#[test]
fn a_renewal_in_the_future_counts_as_one_of_now() {
    let handle = LeaseHandle::pending(Clock::SYSTEM);
    handle.follow(Timestamp::from_second(2_082_758_400).unwrap());
    assert!(handle.previous_renewal() <= Timestamp::now());
}
