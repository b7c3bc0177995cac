//! Who is woken by which change of a budget.

use drydock_api::reasons::KEEPS_UNHEALTHY;

use super::super::budget_check::CoveringBudget;
use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn behind(budget: &str) -> BudgetCheck {
    BudgetCheck::Allows(Some(CoveringBudget { key: key(budget), version: "1".into() }))
}

fn behind_unready(budget: &str) -> BudgetCheck {
    let budget = CoveringBudget { key: key(budget), version: "1".into() };
    BudgetCheck::Refuses { budget, state: KEEPS_UNHEALTHY, why: String::new() }
}

fn woken(waiters: &mut BudgetWaiters, budget: &str, released_pods: ReleasedPods) -> Vec<ObjectKey> {
    waiters.wake(&key(budget), released_pods, Instant::now()).into_iter().map(|(key, _)| key).collect()
}

fn waiting(names: &[&str], check: &BudgetCheck, waiters: &mut BudgetWaiters) {
    for name in names {
        waiters.track(&key(name));
        waiters.wait_for(&key(name), check);
    }
}

#[test]
fn as_many_are_woken_as_may_go_longest_waiting_first_and_all_when_the_budget_is_gone() {
    let mut waiters = BudgetWaiters::default();
    for i in 0..100 {
        waiting(&[&format!("{i:03}")], &behind("b"), &mut waiters);
    }
    waiters.wait_for(&key("000"), &behind("b"));
    let some = woken(&mut waiters, "b", ReleasedPods::AtMost(3));
    assert_eq!(some, [key("000"), key("001"), key("002")]);
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::Any).len(), 100);
}

/// All who waited were woken when a budget was met, and those whose pods are ready were refused again.
#[test]
fn a_budget_that_is_met_wakes_those_of_pods_that_are_not_ready_and_as_many_others_as_may_go() {
    let mut waiters = BudgetWaiters::default();
    waiting(&["ready-1", "ready-2", "becomes-ready"], &behind("b"), &mut waiters);
    waiting(&["unready-1", "unready-2"], &behind_unready("b"), &mut waiters);
    waiting(&["becomes-ready"], &behind_unready("b"), &mut waiters);
    waiting(&["becomes-ready"], &behind("b"), &mut waiters);
    let unready = [key("unready-1"), key("unready-2")];
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::NotReadyAnd(0)), unready);
    let and_one = [&[key("ready-1")][..], &unready].concat();
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::NotReadyAnd(1)), and_one);
}

#[test]
fn those_whom_several_budgets_keep_are_woken_when_one_is_gone_and_not_when_one_has_room() {
    let mut waiters = BudgetWaiters::default();
    let both = BudgetCheck::Several([key("a"), key("b")]);
    waiting(&["several"], &both, &mut waiters);
    waiting(&["one"], &behind("b"), &mut waiters);
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::AtMost(1)), [key("one")]);
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::Any), [key("one"), key("several")]);
    assert_eq!(woken(&mut waiters, "a", ReleasedPods::Any), [key("several")]);
    waiters.wait_for(&key("several"), &behind("a"));
    assert_eq!(woken(&mut waiters, "b", ReleasedPods::Any), [key("one")], "it waits for what is left");
    assert_eq!(woken(&mut waiters, "a", ReleasedPods::AtMost(1)), [key("several")]);
}

/// A tenant changed the selector of one budget back and forth: each change had all of its pods checked
/// again.
#[test]
fn all_who_wait_in_a_namespace_are_woken_once_a_second_and_the_first_of_them_at_once() {
    let mut waiters = BudgetWaiters::default();
    for i in 0..100 {
        waiting(&[&format!("{i:03}")], &BudgetCheck::Several([key("a"), key("b")]), &mut waiters);
    }
    let now = Instant::now();
    let mut at_once = |budget: &str, millis: u64| {
        let woken = waiters.wake(&key(budget), ReleasedPods::Any, now + Duration::from_millis(millis));
        let delays: BTreeSet<Duration> = woken.iter().map(|(_, delay)| *delay).collect();
        assert_eq!(woken.len(), 100);
        (woken.iter().filter(|(_, delay)| delay.is_zero()).count(), delays.last().copied().unwrap())
    };
    assert_eq!(at_once("a", 0), (100, Duration::ZERO));
    assert_eq!(at_once("a", 300), (64, Duration::from_millis(700)));
    assert_eq!(at_once("b", 400), (64, Duration::from_millis(600)), "whichever budget it was");
    assert_eq!(at_once("b", 1000), (100, Duration::ZERO));
}

/// Each request was kept under each of its budgets: ten million entries for 10,000 budgets and 1,000 pods.
#[test]
fn a_request_that_several_budgets_keep_waits_for_two_of_them() {
    let mut waiters = BudgetWaiters::default();
    waiting(&["p"], &BudgetCheck::Several([key("a"), key("b")]), &mut waiters);
    assert_eq!((waiters.behind_two.len(), waiters.behind_one.len()), (2, 0));
    assert_eq!(woken(&mut waiters, "c", ReleasedPods::Any), []);
}

#[test]
fn forgotten_request_waits_nowhere() {
    for check in [behind("b"), BudgetCheck::Several([key("a"), key("b")])] {
        let mut waiters = BudgetWaiters::default();
        waiting(&["a"], &check, &mut waiters);
        assert_eq!((waiters.forget(&key("a")), waiters.requests.len()), (None, 0));
        assert!(waiters.behind_one.is_empty() && waiters.behind_two.is_empty());
    }
}

/// Both were handed to the same request, and the other one waited though the budget allowed it to go.
#[test]
fn disruptions_that_are_given_up_together_are_for_different_requests() {
    for is_withdrawn in [true, false] {
        let mut waiters = BudgetWaiters::default();
        waiting(&["a", "b", "c", "d"], &behind("budget"), &mut waiters);
        assert_eq!(woken(&mut waiters, "budget", ReleasedPods::AtMost(2)), [key("a"), key("b")]);
        let given_up = ["a", "b"].map(|name| {
            if is_withdrawn {
                return waiters.forget(&key(name));
            }
            // It asks, and is refused for another reason.
            assert_eq!(waiters.look_at(&key(name), false), None);
            waiters.stop_waiting(&key(name));
            assert_eq!(waiters.reserve_disruption(&key(name), Some(&key("budget"))), None);
            None
        });
        let given_up = match is_withdrawn {
            true => given_up,
            false => ["a", "b"].map(|name| waiters.reserve_disruption(&key(name), None)),
        };
        assert_eq!(given_up, [Some(key("c")), Some(key("d"))], "withdrawn: {is_withdrawn}");
    }
}

#[test]
fn a_request_that_its_budget_keeps_for_what_it_is_hands_its_offer_on() {
    let mut waiters = BudgetWaiters::default();
    waiting(&["unready", "ready"], &behind("budget"), &mut waiters);
    assert_eq!(waiters.look_at(&key("unready"), true), None, "it has none");
    assert_eq!(woken(&mut waiters, "budget", ReleasedPods::AtMost(1)), [key("unready")]);
    assert_eq!(waiters.look_at(&key("unready"), true), Some(key("ready")));
    assert_eq!(waiters.look_at(&key("ready"), false), None, "it takes the offer up");
}

#[test]
fn a_reservation_that_is_given_up_is_for_who_waits_longest_and_one_that_was_taken_for_nobody() {
    let mut waiters = BudgetWaiters::default();
    waiting(&["first", "next"], &behind("b"), &mut waiters);
    waiters.track(&key("asks"));
    for (given_up_for, next) in
        [(Some("a"), None), (Some("b"), None), (Some("b"), None), (None, Some(key("first")))]
    {
        assert_eq!(waiters.reserve_disruption(&key("asks"), given_up_for.map(key).as_ref()), next);
    }
    waiters.reserve_disruption(&key("asks"), Some(&key("b")));
    waiters.take_disruption(&key("asks"));
    assert_eq!(waiters.forget(&key("asks")), None);
    waiters.reserve_disruption(&key("first"), Some(&key("b")));
    assert_eq!(waiters.forget(&key("first")), Some(key("next")));
}
