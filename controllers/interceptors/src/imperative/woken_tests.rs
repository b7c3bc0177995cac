//! Which requests a budget wakes, and that its disruptions are used.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use drydock_api::metav1::LabelSelector;
use drydock_runtime::PodDisruptionBudget;
use drydock_runtime::cache::BudgetSelector;
use drydock_runtime::testing::context;
use serde_json::json;

use super::super::testing::{
    HostCalls, RunningInterceptor, accepted, budget, denied, no_disruption, pod, request, several, withdrawn,
};
use super::*;

/// No request was woken: the pod was tried again with its next heartbeat, three minutes later.
#[tokio::test(start_paused = true)]
async fn a_pod_that_two_budgets_cover_is_asked_for_when_one_of_them_is_deleted() {
    let budgets = [budget("a", "1", 1), budget("b", "2", 1)];
    let mut running = RunningInterceptor::start(&budgets, &["p"], |_| several());
    running.until_evicted("p").await;
    running.until_kept("p", 1).await;
    running.context.caches.budgets.delete(&budgets[0].key());
    running.until_evicted("p").await;
}

/// The selector of the budget is too large to be kept: no change of the budget woke the pod, which stayed for up to a quarter
/// of an hour after it might have gone.
#[tokio::test(start_paused = true)]
async fn a_pod_that_a_budget_keeps_of_which_only_the_host_knows_is_asked_for_when_that_budget_changes() {
    let values: Vec<String> = (0..10_000).map(|value| value.to_string()).collect();
    let selector = json!({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": values}]});
    let selector = serde_json::from_value(selector).unwrap();
    let huge = |name: &str, version: &str, allowed: i32| PodDisruptionBudget {
        selector: Some(BudgetSelector::from(LabelSelector::clone(&selector))),
        ..budget(name, version, allowed)
    };
    let mut running = RunningInterceptor::start(&[huge("b", "1", 0)], &["p"], |_| {
        let (code, mut body) = no_disruption();
        body["details"]["causes"][0]["message"] =
            json!("The disruption budget b needs 2 healthy pods and has 2");
        (code, body)
    });
    running.until_evicted("p").await;
    running.until_kept("p", 1).await;
    let before = tokio::time::Instant::now();
    running.context.caches.budgets.apply(huge("b", "2", 1));
    running.until_evicted("p").await;
    assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
    // Another budget's change is no reason.
    let before = tokio::time::Instant::now();
    running.context.caches.budgets.apply(huge("c", "1", 1));
    running.context.caches.budgets.apply(huge("c", "2", 2));
    running.until_evicted("p").await;
    assert!(before.elapsed() > Duration::from_secs(5), "{:?}", before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_several_budgets_is_waited_for() {
    let budgets = [budget("a", "1", 1), budget("b", "2", 0)];
    let mut running = RunningInterceptor::start(&budgets, &["p"], |_| several());
    running.until_evicted("p").await;
    running.until_kept("p", 1).await;
    running.context.caches.budgets.delete(&budgets[0].key());
    // The budget allows nothing, and the report says so.
    running
        .until(|asked| matches!(asked, HostCalls::Report(_, message) if message.contains("\"b\" allows 0")))
        .await;
    running.context.caches.budgets.apply(budget("b", "3", 1));
    running.until_evicted("p").await;
}

/// A change wakes as many requests as a budget may have room for. If a webhook denied all of their evictions, the
/// budget did not change again, and the requests behind them waited for their heartbeats.
#[tokio::test(start_paused = true)]
async fn room_that_those_who_were_woken_do_not_take_is_for_the_next() {
    let names: Vec<String> = (0..80).map(|i| format!("p{i:02}")).collect();
    let pods: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_room = Arc::new(AtomicBool::new(false));
    let opened = has_room.clone();
    let mut running = RunningInterceptor::start(&[budget("b", "1", 0)], &pods, move |_| {
        if opened.load(SeqCst) { denied() } else { no_disruption() }
    });
    let mut kept = BTreeSet::new();
    while kept.len() < pods.len() {
        if let HostCalls::Report(name, _) =
            running.until(|asked| matches!(asked, HostCalls::Report(..))).await
        {
            kept.insert(name);
        }
    }
    has_room.store(true, SeqCst);
    running.context.caches.budgets.apply(budget("b", "2", 1));
    let mut asked = BTreeSet::new();
    while asked.len() < pods.len() {
        if let HostCalls::Eviction(name) =
            running.until(|asked| matches!(asked, HostCalls::Eviction(_))).await
        {
            asked.insert(name);
        }
    }
}

/// A change wakes as many requests as a budget has room for. If these were withdrawn, they used no disruption, and
/// those behind them waited for up to a quarter of an hour.
#[tokio::test(start_paused = true)]
async fn a_disruption_is_offered_to_the_next_pods_if_the_woken_requests_are_withdrawn() {
    let names: Vec<String> = (0..100).map(|i| format!("p{i:02}")).collect();
    let pods: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_room = Arc::new(AtomicBool::new(false));
    let opened = has_room.clone();
    let mut running = RunningInterceptor::start(&[budget("b", "1", 0)], &pods, move |_| {
        if opened.load(SeqCst) { accepted() } else { no_disruption() }
    });
    let mut kept = Vec::new();
    while kept.len() < pods.len() {
        if let HostCalls::Report(name, _) =
            running.until(|asked| matches!(asked, HostCalls::Report(..))).await
            && !kept.contains(&name)
        {
            kept.push(name);
        }
    }
    has_room.store(true, SeqCst);
    // Nothing runs in between: those who are woken are withdrawn before they are looked at.
    running.context.caches.budgets.apply(budget("b", "2", 1));
    let (first, rest) = kept.split_at(50);
    first.iter().for_each(|name| running.context.caches.requests.apply(withdrawn(name)));
    let asked = running.until(|asked| matches!(asked, HostCalls::Eviction(_))).await;
    assert!(rest.iter().any(|name| asked == HostCalls::Eviction(name.clone())), "{asked:?}");
}

/// The same while they wait for a slot in the pool, or while the host refuses.
#[tokio::test(start_paused = true)]
async fn room_is_for_the_next_when_the_request_that_was_to_take_it_goes() {
    let context = context(|_, _, _| (200, serde_json::to_value(request("p")).unwrap()));
    context.caches.budgets.apply(budget("b", "1", 0));
    let queue = WorkQueue::new("q", &context.metrics, drydock_runtime::queue::ExponentialBackoff::WRITES);
    let reconciler = ImperativeReconciler::new(context.clone(), queue.clone());
    let key = |name: &str| ObjectKey::new("ns", name);
    for name in ["first", "next"] {
        context.caches.pods.apply(pod(name));
        context.caches.requests.apply(request(name));
        reconciler.reconcile(key(name)).await.unwrap();
    }
    let check = || reconciler.fetch(&key("next")).unwrap().1.check;
    reconciler.answered(&key("next"), Some((EvictionResult::Budget("b".into()), check())));
    reconciler.reconcile(key("next")).await.unwrap();
    let woken = async || {
        let mut woken = BTreeSet::new();
        while queue.depth() > 0 {
            let key = queue.get().await.unwrap();
            queue.done(&key);
            woken.insert(key.name.to_string());
        }
        woken
    };
    assert_eq!(woken().await, ["next".to_owned()].into());
    reconciler.answered(&key("first"), None);
    assert_eq!(woken().await, ["first".to_owned(), "next".to_owned()].into());
    reconciler.reconcile(key("next")).await.unwrap();
    reconciler.reconcile(key("first")).await.unwrap();
    reconciler.answered(&key("first"), Some((EvictionResult::TryAgain, check())));
    context.caches.requests.apply(withdrawn("first"));
    reconciler.reconcile(key("first")).await.unwrap();
    assert_eq!(woken().await, ["first".to_owned(), "next".to_owned()].into());
}

/// With each further healthy pod, all requests that were woken and refused again wrote their reports: 64
/// writes for each eviction.
#[tokio::test(start_paused = true)]
async fn a_change_of_a_budget_writes_the_requests_that_it_lets_go() {
    let names: Vec<String> = (0..600).map(|i| format!("p{i:03}")).collect();
    let pods: Vec<&str> = names.iter().map(String::as_str).collect();
    let room = Arc::new(AtomicUsize::new(0));
    let left = room.clone();
    let takes = move |_: &str| match left.fetch_update(SeqCst, SeqCst, |room| room.checked_sub(1)) {
        Ok(_) => accepted(),
        Err(_) => no_disruption(),
    };
    let healthy = |version: &str, current_healthy: i32| PodDisruptionBudget {
        current_healthy,
        desired_healthy: 599,
        expected_pods: 700,
        ..budget("b", version, (current_healthy - 599).max(0))
    };
    let mut running = RunningInterceptor::start(&[healthy("1", 598)], &pods, takes);
    let mut written = BTreeSet::new();
    while written.len() < pods.len() {
        if let HostCalls::Report(name, _) =
            running.until(|asked| matches!(asked, HostCalls::Report(..))).await
        {
            written.insert(name);
        }
    }
    // The budget is met, which helps pods alone that are not ready, and then has room for one.
    running.context.caches.budgets.apply(healthy("2", 599));
    room.store(1, SeqCst);
    running.context.caches.budgets.apply(healthy("3", 600));
    let (mut asked, mut told) = (0, BTreeSet::new());
    while told.is_empty() {
        match running.until(|_| true).await {
            HostCalls::Eviction(_) => asked += 1,
            HostCalls::Report(name, message) => {
                assert_eq!(message, "The eviction was accepted.");
                told.insert(name);
            }
        }
    }
    running.context.caches.budgets.apply(healthy("4", 599));
    let mut looks = 0;
    while looks < 64 {
        tokio::task::yield_now().await;
        looks += 1;
    }
    while let Ok(more) = running.asked.try_recv() {
        match more {
            HostCalls::Eviction(_) => asked += 1,
            HostCalls::Report(name, _) => drop(told.insert(name)),
        }
    }
    assert_eq!((asked, told.len()), (1, 1), "{told:?}");
}
