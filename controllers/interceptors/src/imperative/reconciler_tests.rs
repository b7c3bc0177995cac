//! Imperative eviction as a whole: what it sends and reports, and what must not delay other requests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use drydock_runtime::PodDisruptionBudget;
use drydock_runtime::testing::{context, failure};

use super::super::testing::{
    HostCalls, RunningInterceptor, accepted, budget, denied, no_disruption, pod, request, several,
    unreported_request, withdrawn,
};
use super::*;

/// The entry of the old request was assumed to be that of the new one, which got no report for three minutes.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_made_anew_while_nobody_watched_is_reported_to() {
    let mut running = RunningInterceptor::start(&[], &["p"], |_| accepted());
    running.until(|asked| matches!(asked, HostCalls::Report(..))).await;
    let mut anew = request("p");
    anew.metadata.uid = "anew".into();
    running.context.caches.requests.apply(anew);
    running.until(|asked| matches!(asked, HostCalls::Report(..))).await;
}

/// The slot of an eviction whose task panicked was never free again, and its pod was not tried again.
#[tokio::test(start_paused = true)]
async fn an_eviction_that_panics_is_tried_again() {
    let first = AtomicBool::new(true);
    let mut running = RunningInterceptor::start(&[], &["p"], move |_| {
        assert!(!first.swap(false, SeqCst), "the host is a function that panics once");
        accepted()
    });
    running.until_evicted("p").await;
}

/// A tenant made 10,000 PodDisruptionBudgets with long names: each report and each event was 2.5 MB, the API
/// server refused the report every 30 s, and what was remembered of a thousand pods was several GB.
#[tokio::test(start_paused = true)]
async fn what_is_told_and_remembered_of_a_pod_does_not_grow_with_the_number_of_its_budgets() {
    let budgets: Vec<PodDisruptionBudget> =
        (0..10_000).map(|i| budget(&format!("{i:05}-{}", "b".repeat(240)), "1", 1)).collect();
    let mut running = RunningInterceptor::start(&budgets, &["p"], |_| several());
    let told = running
        .until(|asked| matches!(asked, HostCalls::Report(_, message) if message.contains("retries: 1")))
        .await;
    let HostCalls::Report(_, message) = told else { unreachable!() };
    assert!(message.contains("more than one PodDisruptionBudget"), "{message}");
    assert!(message.chars().count() <= 1000, "{} characters", message.chars().count());
}

/// An eviction whose answer was lost was sent again after 200 ms, and one that the cache did not show after 30 s.
#[tokio::test(start_paused = true)]
async fn an_eviction_that_the_host_may_have_accepted_is_looked_for_before_it_is_sent_again() {
    let mut running = RunningInterceptor::start(&[], &["going"], |_| failure(503, "ServiceUnavailable"));
    running.until_evicted("going").await;
    let next = running.until(|asked| matches!(asked, HostCalls::Eviction(_) | HostCalls::Report(..))).await;
    assert_eq!(next, HostCalls::Report("going".into(), "The eviction was accepted.".into()));
}

/// The answer to a request that was withdrawn in between was not awaited: its pod was evicted twice.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_wanted_again_waits_for_the_answer_to_what_is_in_flight() {
    let context = context(|_, _, _| (200, serde_json::to_value(request("p")).unwrap()));
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = ImperativeReconciler::new(context.clone(), queue);
    let key = ObjectKey::new("ns", "p");
    context.caches.pods.apply(pod("p"));
    let take = || reconciler.pool.lock().take(Instant::now());
    context.caches.requests.apply(request("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    assert_eq!(take(), Some(key.clone()));
    for now in [withdrawn("p"), request("p")] {
        context.caches.requests.apply(now);
        reconciler.reconcile(key.clone()).await.unwrap();
    }
    assert_eq!(take(), None);
    reconciler.answered(&key, Some((EvictionResult::Accepted, BudgetCheck::Allows(None))));
    reconciler.reconcile(key.clone()).await.unwrap();
    assert_eq!(take(), None);
}

/// The answer came while the request was withdrawn, and nothing was left to remember it: the pod, which the cache still
/// showed as running, was evicted twice.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_while_its_request_is_withdrawn_is_remembered_until_it_has_been_looked_at() {
    let context = context(|_, _, _| (200, serde_json::to_value(request("p")).unwrap()));
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = ImperativeReconciler::new(context.clone(), queue);
    let key = ObjectKey::new("ns", "p");
    context.caches.pods.apply(pod("p"));
    let take = || reconciler.pool.lock().take(Instant::now());
    context.caches.requests.apply(request("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    assert_eq!(take(), Some(key.clone()));
    context.caches.requests.apply(withdrawn("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    reconciler.answered(&key, Some((EvictionResult::Accepted, BudgetCheck::Allows(None))));
    context.caches.requests.apply(request("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    assert_eq!(take(), None);
    context.caches.requests.apply(withdrawn("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    assert!(!reconciler.knows(&key), "it is forgotten when nothing is in flight");
}

/// The counter included every answer: a drain without any trouble looked like one that is blocked.
#[tokio::test(start_paused = true)]
async fn the_counter_of_the_kep_counts_evictions_that_failed() {
    let result = |pod: &str| if pod == "denied" { denied() } else { accepted() };
    let mut running = RunningInterceptor::start(&[], &["accepted", "denied"], result);
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        match running.until(|_| true).await {
            HostCalls::Report(name, _) if name == "denied" => seen.insert(name),
            HostCalls::Eviction(name) if name == "accepted" => seen.insert(name),
            _ => false,
        };
    }
    let text = running.context.metrics.render();
    let series: Vec<&str> = text.lines().filter(|line| line.contains("_imperative_evictions{")).collect();
    assert_eq!(
        series,
        [
            "evictionrequest_controller_imperative_evictions{namespace=\"ns\",name=\"denied\",pod=\"denied\"} 1"
        ]
    );
}

#[tokio::test]
async fn a_pod_is_evicted_in_the_turn_of_imperative_eviction_and_in_no_other() {
    let context = context(|_, _, _| (200, serde_json::to_value(request("p")).unwrap()));
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = ImperativeReconciler::new(context.clone(), queue);
    let key = ObjectKey::new("ns", "p");
    context.caches.pods.apply(pod("p"));
    for (active, taken) in [(&["a.example.com"][..], None), (&[], None), (&[NAME], Some(key.clone()))] {
        let mut request = request("p");
        request.status.active_interceptors = active.iter().map(|name| (*name).to_owned()).collect();
        context.caches.requests.apply(request);
        reconciler.reconcile(key.clone()).await.unwrap();
        assert_eq!(reconciler.pool.lock().take(Instant::now()), taken, "{active:?} is active");
    }
}

/// While `kubectl drain` used up a budget, the owners of pods that waited for it got an event that it lets no
/// pod go.
#[tokio::test(start_paused = true)]
async fn a_budget_that_lets_a_pod_of_others_go_has_not_stood_still() {
    let context = context(|_, _, _| accepted());
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = Arc::new(ImperativeReconciler::new(context.clone(), queue.clone()));
    super::super::subscribe(&context, &reconciler, &queue);
    let by = drydock_api::eviction_request::Blocked {
        name: "b".into(),
        state: drydock_api::reasons::SHORT_NOW.into(),
        ..Default::default()
    };
    let has_evicted = || reconciler.waiters.lock().last_evictions.last("ns", Some(&by)).is_some();
    context.caches.budgets.apply(budget("b", "1", 1));
    assert!(!has_evicted());
    context
        .caches
        .budgets
        .apply(PodDisruptionBudget { last_disruption: Some(Timestamp::now()), ..budget("b", "2", 0) });
    assert!(has_evicted());
}

/// Three reports were written on each pod that left at once: most of what a drain wrote.
#[tokio::test(start_paused = true)]
async fn a_pod_that_leaves_at_once_has_no_report_and_one_that_is_kept_has_one() {
    let reports = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = reports.clone();
    let context = context(move |_, _, _| {
        counted.fetch_add(1, SeqCst);
        (200, serde_json::to_value(request("p")).unwrap())
    });
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = ImperativeReconciler::new(context.clone(), queue);
    let key = ObjectKey::new("ns", "p");
    let step = async |result: EvictionResult| {
        reconciler.answered(&key, Some((result, BudgetCheck::Allows(None))));
        reconciler.reconcile(key.clone()).await.unwrap()
    };
    context.caches.pods.apply(pod("p"));
    context.caches.requests.apply(unreported_request("p"));
    reconciler.reconcile(key.clone()).await.unwrap();
    let looks_again = step(EvictionResult::Accepted).await;
    assert!(
        matches!(looks_again, Requeue::After(wait) if wait <= Duration::from_secs(10)),
        "{looks_again:?}"
    );
    assert_eq!(reports.load(SeqCst), 0);
    step(EvictionResult::Refused("not now".into())).await;
    assert_eq!(reports.load(SeqCst), 1);
    // Without the delay, a report that nothing blocks any more would follow after a second.
    let looks_again = step(EvictionResult::Accepted).await;
    assert!(matches!(looks_again, Requeue::After(wait) if wait > Duration::from_secs(5)), "{looks_again:?}");
    assert_eq!(reports.load(SeqCst), 1);
    let mut anew = unreported_request("p");
    anew.metadata.uid = String::from("anew");
    context.caches.requests.apply(anew);
    reconciler.waiters.lock().track(&key).leaving_since =
        context.clock.now().checked_sub(Duration::from_secs(10)).ok();
    step(EvictionResult::Accepted).await;
    assert_eq!(reports.load(SeqCst), 2, "it takes longer");
    context.caches.pods.delete(&key);
    reconciler.reconcile(key.clone()).await.unwrap();
    assert_eq!(reports.load(SeqCst), 2, "it is gone");
}

/// Time is paused: it moves on to the next timer at once, and the clock of the controllers with it.
#[tokio::test(start_paused = true)]
async fn a_blocked_eviction_is_reported_every_three_minutes_and_goes_when_its_budget_opens_hours_later() {
    let is_open = Arc::new(AtomicBool::new(false));
    let answer = is_open.clone();
    let answer = move |_: &str| if answer.load(SeqCst) { accepted() } else { no_disruption() };
    let mut running = RunningInterceptor::start(&[budget("b", "1", 0)], &["p"], answer);
    running.until_kept("p", 1).await;
    let mut last = Instant::now();
    // After a minute the pod's owner has an event, which the entry shows too.
    for interval in [60, 120].into_iter().chain([180; 100]) {
        while !matches!(running.asked.recv().await.expect("it runs"), HostCalls::Report(..)) {}
        // Times in a status have whole seconds.
        let elapsed = last.elapsed().as_secs();
        assert!((interval - 1..=interval + 1).contains(&elapsed), "{elapsed}, not {interval}");
        last = Instant::now();
    }
    is_open.store(true, SeqCst);
    running.context.caches.budgets.apply(budget("b", "2", 1));
    running.until_evicted("p").await;
}
