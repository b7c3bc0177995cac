//! What imperative eviction does with each pod, and what it says of it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_runtime::cache::{MIRROR_ANNOTATION, OwnerRef};

use super::super::gate::Covering;
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1000 + second).unwrap()
}

fn pod() -> Pod {
    Pod { name: "p".into(), namespace: "ns".into(), node_name: "n1".into(), ..Default::default() }
}

fn covering(version: u64) -> Covering {
    Covering { key: ObjectKey::new("ns", "b"), version: version.to_string() }
}

fn closed() -> Gate {
    Gate::Closed { budget: covering(2), why: "why".into() }
}

fn open() -> Gate {
    open_as_of(1)
}

fn open_as_of(version: u64) -> Gate {
    Gate::Open(Some(covering(version)))
}

fn several(names: [&str; 2]) -> Gate {
    Gate::Many(names.map(|name| ObjectKey::new("ns", name)))
}

fn budget() -> Answer {
    Answer::Budget("in its words".into())
}

fn after(answers: &[(Answer, Gate, i64)]) -> Tried {
    let mut tried = Tried::default();
    for (answer, gate, second) in answers {
        tried.learn(answer.clone(), gate.clone(), at(*second));
    }
    tried
}

fn message(plan: &Plan) -> &str {
    plan.news.as_ref().map_or("", |n| n.message.as_str())
}

#[test]
fn every_pod_is_asked_for_once_even_behind_a_closed_budget() {
    for gate in [open(), closed(), several(["a", "b"])] {
        assert_eq!(
            plan(Some(&pod()), &gate, &Tried::default(), at(0)),
            Plan { ask: true, ..Plan::default() }
        );
    }
}

#[test]
fn pod_that_is_gone_completes_and_only_then() {
    let done = plan(None, &open(), &after(&[(Answer::Accepted, open(), 0)]), at(1));
    assert!(done.news.unwrap().completed && !done.ask);
    let accepted = plan(Some(&pod()), &open(), &after(&[(Answer::Accepted, open(), 0)]), at(1));
    assert!(!accepted.news.unwrap().completed && !accepted.ask);
}

#[test]
fn daemon_set_and_mirror_pods_are_never_asked_for_and_it_says_so() {
    let owner = OwnerRef { api_version: "apps/v1".into(), kind: "DaemonSet".into(), ..Default::default() };
    let plan_of = |pod: Pod| plan(Some(&pod), &open(), &Tried::default(), at(0));
    let daemon = plan_of(Pod { controller: Some(owner), ..pod() });
    assert!(!daemon.ask && message(&daemon).contains("daemonset.apps.k8s.io"));
    let mirror = plan_of(Pod { annotations: [(MIRROR_ANNOTATION.into(), "x".into())].into(), ..pod() });
    assert!(!mirror.ask && message(&mirror).contains("kubelet.k8s.io"));
}

#[test]
fn terminating_pod_is_waited_for_and_its_finalizers_are_named() {
    let going = Pod { deletion_timestamp: Some(at(30)), finalizers: vec!["f/x".into()], ..pod() };
    let waiting = plan(Some(&going), &open(), &Tried::default(), at(0));
    assert!(!waiting.ask);
    assert_eq!(waiting.news.unwrap().expected_finish, Some(at(30)));
    let late = plan(Some(&going), &open(), &Tried::default(), at(31));
    assert!(message(&late).contains("finalizers f/x"));
}

#[test]
fn closed_budget_is_told_in_the_words_of_the_kep_and_why() {
    let tried = after(&[(budget(), closed(), 0)]);
    assert_eq!(
        message(&plan(Some(&pod()), &closed(), &tried, at(1))),
        "Could not evict a pod due to failing eviction requests, number of retries: 1: why"
    );
}

#[test]
fn closed_budget_is_not_asked_again_until_its_status_changes() {
    let tried = after(&[(budget(), closed(), 0)]);
    let waiting = plan(Some(&pod()), &closed(), &tried, at(600));
    assert_eq!((waiting.ask, waiting.wake), (false, Some(at(900))));
    assert!(
        plan(Some(&pod()), &closed(), &tried, at(900)).ask,
        "after a quarter of an hour it is, to be sure"
    );
    assert!(plan(Some(&pod()), &open(), &tried, at(5)).ask, "its status has changed");
}

#[test]
fn budget_that_changed_since_it_was_asked_is_asked_again_when_it_is_open() {
    let tried = after(&[(budget(), open_as_of(1), 0)]);
    let asks = |gate: Gate| plan(Some(&pod()), &gate, &tried, at(1)).ask;
    assert!(!asks(open_as_of(1)), "the cache has yet to learn of the state that refused");
    assert!(!asks(closed()));
    assert!(asks(open_as_of(3)), "whether or not the closed one between them was seen");
    assert!(asks(Gate::Open(None)), "the budget is gone");
}

#[test]
fn opened_budget_is_asked_at_once() {
    let tried = after(&[(budget(), closed(), 0)]);
    assert!(plan(Some(&pod()), &open(), &tried, at(0)).ask);
}

/// The host evicts no pod that several budgets cover: it is asked again when at most one is left, which has room.
#[test]
fn several_budgets_are_asked_again_when_one_of_them_is_left_and_once_in_a_while() {
    let both = several(["a", "b"]);
    let tried = after(&[(Answer::ManyBudgets, both.clone(), 0)]);
    let asks = |gate: &Gate, second| plan(Some(&pod()), gate, &tried, at(second)).ask;
    assert!(!asks(&both, 899) && asks(&both, 900), "the guess may be wrong");
    assert!(!asks(&several(["b", "c"]), 1), "they are still several");
    assert!(!asks(&closed(), 1), "the one that is left allows nothing");
    assert!(asks(&open(), 1) && asks(&Gate::Open(None), 1));
}

/// A second budget that came and went between two looks at the cache left the first as it was when it was asked: the pod
/// then waited out its backoff.
#[test]
fn budgets_that_were_seen_otherwise_in_between_have_changed() {
    for (refused, between) in [(Answer::ManyBudgets, several(["a", "b"])), (budget(), closed())] {
        for gate in [open(), Gate::Open(None)] {
            let mut tried = after(&[(refused.clone(), gate.clone(), 0)]);
            tried.look(&gate);
            assert!(!plan(Some(&pod()), &gate, &tried, at(1)).ask);
            tried.look(&between);
            assert!(plan(Some(&pod()), &gate, &tried, at(1)).ask);
        }
    }
}

/// Set back by an hour after an outage, the clock made every answer last an hour longer.
#[test]
fn a_clock_that_is_set_back_holds_nothing_up() {
    for answer in [Answer::Accepted, Answer::TryAgain, Answer::Admission("no".into())] {
        let tried = after(&[(answer, open(), 3600)]);
        assert!(plan(Some(&pod()), &open(), &tried, at(0)).ask);
    }
}

/// A webhook that could not be reached for a moment held a pod that budgets had refused eight times for a quarter of an
/// hour.
#[test]
fn backoff_grows_with_refusals_of_the_same_kind_in_a_row() {
    let no = Answer::Admission("no".into());
    let mut tried = Tried::from_message(&refusal::message(7, Some((RefusedBy::Budget, "why"))));
    let mut wake = |answer: &Answer| {
        tried.learn(answer.clone(), open(), at(0));
        plan(Some(&pod()), &open(), &tried, at(0)).wake.unwrap().duration_since(at(0)).as_millis()
    };
    assert_eq!((wake(&budget()), wake(&budget())), (5000, 10_000));
    assert_eq!((wake(&no), wake(&Answer::TryAgain), wake(&no)), (5000, 200, 10_000), "a race says nothing");
    assert_eq!((wake(&budget()), wake(&Answer::Accepted), wake(&budget())), (5000, 30_000, 5000));
}

#[test]
fn refusal_by_a_budget_that_looked_open_backs_off() {
    let tried = after(&[(budget(), open(), 0)]);
    let waiting = plan(Some(&pod()), &open(), &tried, at(4));
    assert_eq!((waiting.ask, waiting.wake), (false, Some(at(5))));
}

#[test]
fn blocked_answers_back_off_to_a_quarter_of_an_hour() {
    let no = Answer::Admission("no".into());
    let mut tried = Tried::default();
    let mut delays = Vec::new();
    for _ in 0..10 {
        tried.learn(no.clone(), open(), at(0));
        let wake = plan(Some(&pod()), &open(), &tried, at(0)).wake.unwrap();
        delays.push(wake.duration_since(at(0)).as_secs());
    }
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
    assert_eq!(tried.retries, 10);
}

#[test]
fn lost_races_and_throttling_count_nothing_and_say_nothing() {
    let tried = after(&[(Answer::TryAgain, open(), 0), (Answer::Throttled(None), open(), 1)]);
    let waiting = plan(Some(&pod()), &open(), &tried, at(1));
    assert_eq!((tried.retries, waiting.news, waiting.wake), (0, None, Some(at(2))));
}

#[test]
fn several_budgets_and_webhooks_are_told_apart() {
    let many = several(["a", "b"]);
    let told = plan(Some(&pod()), &many, &after(&[(Answer::ManyBudgets, many.clone(), 0)]), at(0));
    assert!(message(&told).ends_with(
        "1: more than one PodDisruptionBudget covers the pod (a and b at least), which the eviction API does not support"
    ));
    let webhook = after(&[(Answer::Admission("w says no".into()), open(), 0)]);
    let told = plan(Some(&pod()), &open(), &webhook, at(0));
    assert!(message(&told).ends_with("1: an admission webhook or policy refused: w says no"));
}

#[test]
fn number_of_retries_survives_a_restart_in_the_message() {
    let mut tried = Tried::from_message(&refusal::message(7, Some((RefusedBy::Budget, "why"))));
    assert_eq!(tried.retries, 7);
    tried.learn(budget(), closed(), at(0));
    assert_eq!(tried.retries, 8);
    assert_eq!(Tried::from_message("The pod is terminating.").retries, 0);
}

#[test]
fn eviction_that_does_not_show_is_sent_again() {
    let tried = after(&[(Answer::Accepted, open(), 0)]);
    assert!(!plan(Some(&pod()), &open(), &tried, at(29)).ask);
    assert!(plan(Some(&pod()), &open(), &tried, at(30)).ask);
}
