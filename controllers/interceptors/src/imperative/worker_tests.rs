//! Imperative eviction as a whole, against a host that is a function: what wakes whom, and what holds nobody up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use drydock_api::eviction_request::{InterceptorStatus, LocalPodReference, Requester};
use drydock_runtime::cache::Phase;
use drydock_runtime::testing::{context, failure};
use drydock_runtime::{Budget, Caches};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use super::*;
use crate::imperative::run;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// What the host was asked: evictions by the pod's name, and reports by the request's and their message.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    Eviction(String),
    Report(String, String),
}

/// A running interceptor.
struct Running {
    context: Context,
    asked: Receiver<Asked>,
}

impl Running {
    /// `answer` gives code and body for the eviction of the pod of this name.
    fn start(
        budgets: &[Budget],
        pods: &[&str],
        answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let (tell, asked) = channel(4096);
        let context = context(move |_, path, body| {
            let name = path.split('/').nth_back(1).unwrap_or_default().to_owned();
            if path.contains("/eviction?") || path.ends_with("/eviction") {
                let answered = answer(&name);
                let _ = tell.try_send(Asked::Eviction(name));
                return answered;
            }
            let message = body["status"]["interceptors"][0]["message"].as_str().unwrap_or_default();
            let _ = tell.try_send(Asked::Report(name.clone(), message.to_owned()));
            (200, serde_json::to_value(request(&name)).unwrap())
        });
        budgets.iter().for_each(|budget| context.caches.budgets.apply(budget.clone()));
        pods.iter().for_each(|name| context.caches.pods.apply(pod(name)));
        pods.iter().for_each(|name| context.caches.requests.apply(request(name)));
        let Caches { pods, budgets, requests, .. } = &context.caches;
        pods.finish_list(&pods.all().iter().map(|pod| pod.key()).collect());
        budgets.finish_list(&budgets.all().iter().map(|budget| budget.key()).collect());
        requests.finish_list(&requests.all().iter().map(|request| request.key()).collect());
        tokio::spawn(run(context.clone()));
        Self { context, asked }
    }

    /// Waits until the host was asked this.
    async fn until(&mut self, is_it: impl Fn(&Asked) -> bool) -> Asked {
        let found = async {
            loop {
                let asked = self.asked.recv().await.expect("it runs");
                if is_it(&asked) {
                    return asked;
                }
            }
        };
        tokio::time::timeout(LIMIT, found).await.expect("asked in time")
    }

    /// Waits until it is said that so many evictions of this pod failed: then it waits.
    async fn until_kept(&mut self, name: &str, retries: u32) {
        let said = format!("retries: {retries}");
        self.until(
            |asked| matches!(asked, Asked::Report(n, message) if n == name && message.contains(&said)),
        )
        .await;
    }

    async fn until_evicted(&mut self, name: &str) {
        self.until(|asked| *asked == Asked::Eviction(name.to_owned())).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.context.shutdown.cancel();
    }
}

/// A pod's UID is its name here.
fn pod(name: &str) -> Pod {
    Pod {
        name: name.into(),
        namespace: "ns".into(),
        uid: name.into(),
        phase: Phase::Running,
        ready: true,
        ..Default::default()
    }
}

fn request(pod: &str) -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", pod);
    request.metadata.uid = format!("request-{pod}");
    request.spec.target.pod = Some(LocalPodReference { name: pod.into(), uid: pod.into() });
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request.status.active_interceptors = vec![NAME.into()];
    request.status.interceptors = vec![InterceptorStatus { name: NAME.into(), ..Default::default() }];
    request
}

fn budget(name: &str, version: &str, disruptions_allowed: i32) -> Budget {
    Budget {
        name: name.into(),
        namespace: "ns".into(),
        resource_version: version.into(),
        selector: Some(Default::default()),
        disruptions_allowed,
        ..Default::default()
    }
}

fn accepted() -> (u16, Value) {
    (201, json!({"kind": "Status", "status": "Success"}))
}

/// With HTTP 201, as the host does it.
fn several() -> (u16, Value) {
    (
        201,
        json!({"kind": "Status", "status": "Failure", "code": 500, "message":
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}),
    )
}

fn no_room() -> (u16, Value) {
    let (code, mut body) = failure(429, "TooManyRequests");
    body["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": "b needs 2"}]});
    (code, body)
}

fn denied() -> (u16, Value) {
    let (code, mut body) = failure(403, "Forbidden");
    body["message"] = json!("admission webhook \"w.example.com\" denied the request: not now");
    (code, body)
}

/// Nobody was woken: the pod was looked at again with its next heartbeat, three minutes later.
#[tokio::test]
async fn a_pod_that_two_budgets_cover_is_asked_for_when_one_of_them_is_deleted() {
    let budgets = [budget("a", "1", 1), budget("b", "2", 1)];
    let mut running = Running::start(&budgets, &["p"], |_| several());
    running.until_evicted("p").await;
    running.until_kept("p", 1).await;
    running.context.caches.budgets.remove(&budgets[0].key());
    running.until_evicted("p").await;
}

#[tokio::test]
async fn what_is_left_of_several_budgets_is_waited_for() {
    let budgets = [budget("a", "1", 1), budget("b", "2", 0)];
    let mut running = Running::start(&budgets, &["p"], |_| several());
    running.until_evicted("p").await;
    running.until_kept("p", 1).await;
    running.context.caches.budgets.remove(&budgets[0].key());
    // It allows nothing, which is told.
    running.until(|asked| matches!(asked, Asked::Report(_, message) if message.contains("b allows 0"))).await;
    running.context.caches.budgets.apply(budget("b", "3", 1));
    running.until_evicted("p").await;
}

/// As many are woken as a budget may have room for. Had these all been denied by a webhook, the budget did not change
/// again, and those behind them waited for their heartbeats.
#[tokio::test]
async fn room_that_those_who_were_woken_do_not_take_is_for_the_next() {
    let names: Vec<String> = (0..80).map(|i| format!("p{i:02}")).collect();
    let pods: Vec<&str> = names.iter().map(String::as_str).collect();
    let has_room = Arc::new(AtomicBool::new(false));
    let opened = has_room.clone();
    let mut running =
        Running::start(
            &[budget("b", "1", 0)],
            &pods,
            move |_| {
                if opened.load(SeqCst) { denied() } else { no_room() }
            },
        );
    let mut kept = BTreeSet::new();
    while kept.len() < pods.len() {
        if let Asked::Report(name, _) = running.until(|asked| matches!(asked, Asked::Report(..))).await {
            kept.insert(name);
        }
    }
    has_room.store(true, SeqCst);
    running.context.caches.budgets.apply(budget("b", "2", 1));
    let mut asked = BTreeSet::new();
    while asked.len() < pods.len() {
        if let Asked::Eviction(name) = running.until(|asked| matches!(asked, Asked::Eviction(_))).await {
            asked.insert(name);
        }
    }
}

/// What was written to the old one was taken for what stands in the new one, which was told nothing for three minutes.
#[tokio::test]
async fn a_request_that_was_made_anew_while_nobody_watched_is_reported_to() {
    let mut running = Running::start(&[], &["p"], |_| accepted());
    running.until(|asked| matches!(asked, Asked::Report(..))).await;
    let mut anew = request("p");
    anew.metadata.uid = "anew".into();
    running.context.caches.requests.apply(anew);
    running.until(|asked| matches!(asked, Asked::Report(..))).await;
}

/// The place of an eviction whose task panicked was never free again, nor was its pod asked for.
#[tokio::test]
async fn an_eviction_that_panics_is_tried_again() {
    let first = AtomicBool::new(true);
    let mut running = Running::start(&[], &["p"], move |_| {
        assert!(!first.swap(false, SeqCst), "the host is a function that panics once");
        accepted()
    });
    running.until_evicted("p").await;
}

/// A tenant made 10,000 PodDisruptionBudgets with long names: each report and each event was 2.5 MB, the API server refused
/// the report every 30 s, and what was remembered of a thousand pods was several GB.
#[tokio::test]
async fn what_is_told_and_remembered_of_a_pod_does_not_grow_with_the_number_of_its_budgets() {
    let budgets: Vec<Budget> =
        (0..10_000).map(|i| budget(&format!("{i:05}-{}", "b".repeat(240)), "1", 1)).collect();
    let mut running = Running::start(&budgets, &["p"], |_| several());
    let told = running
        .until(|asked| matches!(asked, Asked::Report(_, message) if message.contains("retries: 1")))
        .await;
    let Asked::Report(_, message) = told else { unreachable!() };
    assert!(message.contains("more than one PodDisruptionBudget covers the pod"), "{message}");
    assert!(message.chars().count() <= 1000, "{} characters", message.chars().count());
}
