//! What imperative eviction does with each pod, and what it reports.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::reasons::{NEVER_ALLOWS, SHORT_NOW};
use drydock_runtime::ObjectKey;
use drydock_runtime::cache::DaemonSetOwner;
use drydock_runtime::testing::{mirror, of_daemon_set};

use super::super::budget_check::CoveringBudget;
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1000 + second).unwrap()
}

fn pod() -> Pod {
    Pod { name: "p".into(), namespace: "ns".into(), node_name: "n1".into(), ..Default::default() }
}

fn covering(version: u64) -> CoveringBudget {
    CoveringBudget { key: ObjectKey::new("ns", "b"), version: version.to_string() }
}

fn closed() -> BudgetCheck {
    BudgetCheck::Refuses { budget: covering(2), state: SHORT_NOW, why: "why".into() }
}

fn open() -> BudgetCheck {
    open_as_of(1)
}

fn open_as_of(version: u64) -> BudgetCheck {
    BudgetCheck::Allows(Some(covering(version)))
}

fn several(names: [&str; 2]) -> BudgetCheck {
    BudgetCheck::Several(names.map(|name| ObjectKey::new("ns", name)))
}

fn budget() -> EvictionResult {
    EvictionResult::Budget("in its words".into())
}

fn after(answers: &[(EvictionResult, BudgetCheck, i64)]) -> Attempts {
    let mut attempts = Attempts::default();
    for (result, check, second) in answers {
        attempts.learn(result.clone(), check.clone(), at(*second));
    }
    attempts
}

fn message(next_step: &NextStep) -> &str {
    next_step.progress.as_ref().map_or("", |n| n.message.as_str())
}

#[test]
fn every_pod_is_asked_for_once_even_behind_a_closed_budget() {
    for check in [open(), closed(), several(["a", "b"])] {
        assert_eq!(
            next_step(Some(&pod()), &check, &Attempts::default(), at(0)),
            NextStep { ask: true, ..NextStep::default() }
        );
    }
}

/// Its completion was one write more for each pod that had a report: the end of the request follows at once.
#[test]
fn a_pod_that_is_gone_needs_nothing_more() {
    let done = next_step(None, &open(), &after(&[(EvictionResult::Accepted, open(), 0)]), at(1));
    assert_eq!(done, NextStep::default());
    let accepted = next_step(Some(&pod()), &open(), &after(&[(EvictionResult::Accepted, open(), 0)]), at(1));
    assert!(!accepted.progress.unwrap().completed && !accepted.ask);
}

#[test]
fn daemon_set_and_mirror_pods_are_never_asked_for_and_it_says_so() {
    let plan_of = |pod: Pod| next_step(Some(&pod), &open(), &Attempts::default(), at(0));
    let daemon = plan_of(of_daemon_set("agent", "ds", pod()));
    assert!(!daemon.ask && message(&daemon).contains("daemonset.apps.k8s.io"));
    let kubelets = plan_of(mirror(pod()));
    assert!(!kubelets.ask && message(&kubelets).contains("kubelet.k8s.io"));
}

/// Whoever writes a pod may name any owner and set any annotation: a pod with either was not evicted, and its node was said to be
/// drained of workloads.
#[test]
fn a_pod_whose_daemon_set_is_gone_or_that_has_the_mirror_annotation_alone_is_evicted() {
    let plan_of = |pod: Pod| next_step(Some(&pod), &open(), &Attempts::default(), at(0));
    let of = |daemon_set_owner| Pod { daemon_set_owner, ..of_daemon_set("agent", "ds", pod()) };
    assert!(plan_of(of(DaemonSetOwner::Gone)).ask);
    assert!(plan_of(Pod { controller: None, ..mirror(pod()) }).ask);
    assert_eq!(plan_of(of(DaemonSetOwner::Undecided)), NextStep::default());
}

#[test]
fn terminating_pod_is_waited_for_and_its_finalizers_are_named() {
    let going = Pod { deletion_timestamp: Some(at(30)), finalizers: vec!["f/x".into()], ..pod() };
    let waiting = next_step(Some(&going), &open(), &Attempts::default(), at(0));
    assert!(!waiting.ask);
    assert_eq!(waiting.progress.unwrap().expected_finish, Some(at(30)));
    let late = next_step(Some(&going), &open(), &Attempts::default(), at(40));
    assert!(message(&late).contains("finalizers f/x"));
}

#[test]
fn a_closed_budget_is_reported_before_the_words_of_the_kep() {
    let attempts = after(&[(budget(), closed(), 0)]);
    assert_eq!(
        message(&next_step(Some(&pod()), &closed(), &attempts, at(1))),
        "why. Could not evict a pod due to failing eviction requests, number of retries: 1"
    );
}

#[test]
fn closed_budget_is_not_asked_again_until_its_status_changes() {
    let attempts = after(&[(budget(), closed(), 0)]);
    let waiting = next_step(Some(&pod()), &closed(), &attempts, at(600));
    assert_eq!((waiting.ask, waiting.wake), (false, Some(at(900))));
    assert!(
        next_step(Some(&pod()), &closed(), &attempts, at(900)).ask,
        "after a quarter of an hour it is, to be sure"
    );
    assert!(next_step(Some(&pod()), &open(), &attempts, at(5)).ask, "its status has changed");
}

#[test]
fn budget_that_changed_since_it_was_asked_is_asked_again_when_it_is_open() {
    let attempts = after(&[(budget(), open_as_of(1), 0)]);
    let asks = |check: BudgetCheck| next_step(Some(&pod()), &check, &attempts, at(1)).ask;
    assert!(!asks(open_as_of(1)), "the cache has yet to learn of the state that refused");
    assert!(!asks(closed()));
    assert!(asks(open_as_of(3)), "whether or not the closed one between them was seen");
    assert!(asks(BudgetCheck::Allows(None)), "the budget is gone");
}

#[test]
fn opened_budget_is_asked_at_once() {
    let attempts = after(&[(budget(), closed(), 0)]);
    assert!(next_step(Some(&pod()), &open(), &attempts, at(0)).ask);
}

/// The host evicts no pod that several budgets cover. It is asked again when at most one budget is left and that
/// one allows a disruption.
#[test]
fn several_budgets_are_asked_again_when_one_of_them_is_left_and_once_in_a_while() {
    let both = several(["a", "b"]);
    let attempts = after(&[(EvictionResult::ManyBudgets, both.clone(), 0)]);
    let asks = |check: &BudgetCheck, second| next_step(Some(&pod()), check, &attempts, at(second)).ask;
    assert!(!asks(&both, 899) && asks(&both, 900), "the guess may be wrong");
    assert!(!asks(&several(["b", "c"]), 1), "they are still several");
    assert!(!asks(&closed(), 1), "the one that is left allows nothing");
    assert!(asks(&open(), 1) && asks(&BudgetCheck::Allows(None), 1));
}

/// A second budget came and went between two reads of the cache, and the first one was then as it had been when the
/// eviction was sent: the pod waited until its backoff was over.
#[test]
fn budgets_that_were_seen_otherwise_in_between_have_changed() {
    for (refused, between) in [(EvictionResult::ManyBudgets, several(["a", "b"])), (budget(), closed())] {
        for check in [open(), BudgetCheck::Allows(None)] {
            let mut attempts = after(&[(refused.clone(), check.clone(), 0)]);
            attempts.update(&check);
            assert!(!next_step(Some(&pod()), &check, &attempts, at(1)).ask);
            attempts.update(&between);
            assert!(next_step(Some(&pod()), &check, &attempts, at(1)).ask);
        }
    }
}

/// After an outage the clock was set back by an hour, and each delay after an answer became an hour longer.
#[test]
fn a_clock_that_is_set_back_holds_nothing_up() {
    for result in [EvictionResult::Accepted, EvictionResult::TryAgain, EvictionResult::Admission("no".into())]
    {
        let attempts = after(&[(result, open(), 3600)]);
        assert!(next_step(Some(&pod()), &open(), &attempts, at(0)).ask);
    }
}

/// A webhook that could not be reached for a moment delayed a pod for 15 minutes, because budgets had refused
/// it eight times before.
#[test]
fn backoff_grows_with_refusals_of_the_same_kind_in_a_row() {
    let no = EvictionResult::Admission("no".into());
    let mut attempts = after(&[(budget(), open(), -60)]);
    (0..7).for_each(|_| attempts.learn(budget(), open(), at(-60)));
    attempts.learn(EvictionResult::Accepted, open(), at(-60));
    let mut wake = |result: &EvictionResult| {
        attempts.learn(result.clone(), open(), at(0));
        next_step(Some(&pod()), &open(), &attempts, at(0)).wake.unwrap().duration_since(at(0)).as_millis()
    };
    assert_eq!((wake(&budget()), wake(&budget())), (5000, 10_000));
    assert_eq!(
        (wake(&no), wake(&EvictionResult::TryAgain), wake(&no)),
        (5000, 200, 10_000),
        "a race says nothing"
    );
    assert_eq!((wake(&budget()), wake(&EvictionResult::Accepted), wake(&budget())), (5000, 30_000, 5000));
}

#[test]
fn refusal_by_a_budget_that_looked_open_backs_off() {
    let attempts = after(&[(budget(), open(), 0)]);
    let waiting = next_step(Some(&pod()), &open(), &attempts, at(4));
    assert_eq!((waiting.ask, waiting.wake), (false, Some(at(5))));
}

#[test]
fn blocked_answers_back_off_to_a_quarter_of_an_hour() {
    let no = EvictionResult::Admission("no".into());
    let mut attempts = Attempts::default();
    let mut delays = Vec::new();
    for _ in 0..10 {
        attempts.learn(no.clone(), open(), at(0));
        let wake = next_step(Some(&pod()), &open(), &attempts, at(0)).wake.unwrap();
        delays.push(wake.duration_since(at(0)).as_secs());
    }
    assert_eq!(delays, [5, 10, 20, 40, 80, 160, 320, 640, 900, 900]);
    assert_eq!(attempts.retries, 10);
}

#[test]
fn lost_races_and_throttling_count_nothing_and_say_nothing() {
    let attempts =
        after(&[(EvictionResult::TryAgain, open(), 0), (EvictionResult::Throttled(None), open(), 1)]);
    let waiting = next_step(Some(&pod()), &open(), &attempts, at(1));
    assert_eq!((attempts.retries, waiting.progress, waiting.wake), (0, None, Some(at(2))));
}

#[test]
fn several_budgets_and_webhooks_are_told_apart() {
    let many = several(["a", "b"]);
    let told =
        next_step(Some(&pod()), &many, &after(&[(EvictionResult::ManyBudgets, many.clone(), 0)]), at(0));
    assert!(message(&told).starts_with(
        "The pod is covered by more than one PodDisruptionBudget (\"a\" and \"b\" at least), which the eviction API does not support. "
    ));
    let webhook = after(&[(EvictionResult::Admission("w says no".into()), open(), 0)]);
    let told = next_step(Some(&pod()), &open(), &webhook, at(0));
    assert!(message(&told).starts_with("An admission webhook or policy refused: \"w says no\". "));
}

/// What blocks, as `reason name state`.
fn blocked(pod: &Pod, check: &BudgetCheck, attempts: &Attempts) -> String {
    let progress = next_step(Some(pod), check, attempts, at(1)).progress;
    let said = progress.and_then(|progress| progress.blocked);
    said.map_or_else(String::new, |blocked| format!("{} {} {}", blocked.reason, blocked.name, blocked.state))
}

/// A budget called cert-manager-webhook was shown as an admission webhook: programs read the message.
#[test]
fn what_blocks_is_said_for_programs_by_its_kind_and_name() {
    let both = several(["a", "b"]);
    let of = |result: EvictionResult, check: &BudgetCheck| {
        blocked(&pod(), check, &after(&[(result, check.clone(), 0)]))
    };
    let host = |name: &str| {
        EvictionResult::Budget(format!(
            "The disruption budget {name} needs 2 healthy pods and has 1 currently"
        ))
    };
    assert_eq!(of(budget(), &closed()), "PodDisruptionBudget b ShortNow");
    assert_eq!(
        of(host("cert-manager-webhook"), &BudgetCheck::Allows(None)),
        "PodDisruptionBudget cert-manager-webhook ShortNow"
    );
    assert_eq!(of(EvictionResult::ManyBudgets, &both), "PodDisruptionBudget a,b SeveralBudgets");
    assert_eq!(
        of(EvictionResult::ManyBudgets, &closed()),
        "PodDisruptionBudget b ShortNow",
        "it is the one that is left"
    );
    let webhook =
        EvictionResult::Admission("admission webhook \"w.example.com\" denied the request: no".into());
    assert_eq!(of(webhook, &open()), "AdmissionWebhook w.example.com ");
    assert_eq!(of(EvictionResult::Refused("no".into()), &open()), "Other  ");
    assert_eq!(of(EvictionResult::Accepted, &open()), "");
    let going = |finalizers: &[&str]| Pod {
        deletion_timestamp: Some(at(-9)),
        finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
        ..pod()
    };
    assert_eq!(blocked(&going(&["f/x", "f/y"]), &open(), &Attempts::default()), "Finalizer f/x ");
    assert_eq!(blocked(&going(&[]), &open(), &Attempts::default()), "Terminating  ");
}

#[test]
fn what_blocks_stays_while_the_pod_is_asked_for_again_and_the_numbers_are_those_of_the_refusal() {
    let never = BudgetCheck::Refuses { budget: covering(2), state: NEVER_ALLOWS, why: "why".into() };
    let mut attempts = after(&[(budget(), never.clone(), 0)]);
    for check in [open_as_of(3), never.clone(), open_as_of(4)] {
        attempts.update(&check);
        assert_eq!(blocked(&pod(), &check, &attempts), "PodDisruptionBudget b NeverAllows", "{check:?}");
    }
    let told = |check: &BudgetCheck| message(&next_step(Some(&pod()), check, &attempts, at(1))).to_owned();
    let later =
        BudgetCheck::Refuses { budget: covering(5), state: NEVER_ALLOWS, why: "other numbers".into() };
    assert!(told(&later).starts_with("why. "), "{}", told(&later));
    for nothing in [EvictionResult::TryAgain, EvictionResult::Unclear, EvictionResult::Throttled(None)] {
        attempts.learn(nothing, open_as_of(4), at(0));
        assert_eq!(blocked(&pod(), &open_as_of(4), &attempts), "PodDisruptionBudget b NeverAllows");
    }
}

/// A second budget that covers the pod came and went in the cache: the next event no longer had the names.
#[test]
fn the_names_of_several_budgets_stay_and_the_words_are_of_what_blocks() {
    let both = several(["a", "b"]);
    let attempts =
        after(&[(EvictionResult::ManyBudgets, both.clone(), 0), (EvictionResult::ManyBudgets, open(), 1)]);
    for check in [both.clone(), open()] {
        assert_eq!(blocked(&pod(), &check, &attempts), "PodDisruptionBudget a,b SeveralBudgets");
        let told = next_step(Some(&pod()), &check, &attempts, at(1));
        assert!(message(&told).contains("(\"a\" and \"b\" at least)"), "{}", message(&told));
    }
    let attempts = after(&[(budget(), closed(), 0)]);
    let told = next_step(Some(&pod()), &both, &attempts, at(1));
    assert_eq!(blocked(&pod(), &both, &attempts), "PodDisruptionBudget a,b SeveralBudgets");
    assert!(message(&told).contains("(\"a\" and \"b\" at least)"), "{}", message(&told));
}

/// Two budgets of which only the host knows that they cover the pod kept it for a quarter of an hour after they had changed.
#[test]
fn what_several_unknown_budgets_keep_is_asked_for_every_two_minutes() {
    let unknown = BudgetCheck::Allows(None);
    let refused = |result: &EvictionResult| {
        after(&(0..20).map(|second| (result.clone(), unknown.clone(), second)).collect::<Vec<_>>())
    };
    let is_asked =
        |result: &EvictionResult, second| next_step(Some(&pod()), &unknown, &refused(result), at(second)).ask;
    assert!(!is_asked(&EvictionResult::ManyBudgets, 100) && is_asked(&EvictionResult::ManyBudgets, 140));
    assert!(!is_asked(&budget(), 140), "of one the name is known, and its change wakes the pod");
}

/// The budget's minAvailable was lowered and other evictions used its disruptions: it was still shown as a budget
/// that never allows an eviction.
#[test]
fn a_budget_that_had_room_when_it_was_asked_is_not_one_that_never_allows() {
    let never = BudgetCheck::Refuses { budget: covering(2), state: NEVER_ALLOWS, why: "why".into() };
    let mut attempts = after(&[(budget(), never, 0)]);
    attempts.learn(budget(), open_as_of(3), at(1));
    assert_eq!(blocked(&pod(), &open_as_of(3), &attempts), "PodDisruptionBudget b ShortNow");
}

#[test]
fn eviction_that_does_not_show_is_sent_again() {
    let attempts = after(&[(EvictionResult::Accepted, open(), 0)]);
    assert!(!next_step(Some(&pod()), &open(), &attempts, at(29)).ask);
    assert!(next_step(Some(&pod()), &open(), &attempts, at(30)).ask);
}

/// A drain wrote three reports on each pod that left at once.
#[test]
fn a_report_waits_ten_seconds_for_a_pod_that_is_leaving() {
    let terminating = |overdue| Pod { deletion_timestamp: Some(at(if overdue { -60 } else { 30 })), ..pod() };
    let leaves = |pod: &Pod, attempts: &Attempts| next_step(Some(pod), &open(), attempts, at(0)).is_leaving;
    let accepted = after(&[(EvictionResult::Accepted, open(), 0)]);
    assert!(leaves(&pod(), &accepted) && leaves(&terminating(false), &Attempts::default()));
    let blocked = after(&[(budget(), open(), 0)]);
    assert!(!leaves(&pod(), &blocked) && !leaves(&terminating(true), &accepted));
    assert!(!leaves(&pod(), &Attempts::default()), "it has not been asked for");
    assert_eq!(reported_from(at(0), at(9)), Some(at(10)));
    assert_eq!(reported_from(at(0), at(10)), None);
    assert_eq!(reported_from(at(5), at(0)), None, "the clock was set back");
}
