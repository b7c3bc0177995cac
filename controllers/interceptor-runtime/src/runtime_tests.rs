//! Which turns are served after which events of the watch.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;
use crate::testing::{ApiServer, NAME, client, request};

/// How long a test waits before it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// How many futures of the author run.
#[derive(Clone, Default)]
struct RunningWork(Arc<(AtomicUsize, Notify)>);

/// One that runs.
struct RunningOne(RunningWork);

impl RunningWork {
    fn one(&self) -> RunningOne {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        self.0.1.notify_one();
        RunningOne(self.clone())
    }

    /// Waits until so many run; panics if that does not come.
    async fn is(&self, number: usize) {
        let changed = async {
            while self.0.0.load(Ordering::SeqCst) != number {
                self.0.1.notified().await;
            }
        };
        tokio::time::timeout(LIMIT, changed).await.expect("another number of futures runs");
    }
}

impl Drop for RunningOne {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
        self.0.0.1.notify_one();
    }
}

/// The turns of an interceptor whose futures never end by themselves, and the number of those that run.
fn turns() -> (OpenTurns, RunningWork) {
    let running = RunningWork::default();
    let counted = running.clone();
    let act: Act = Arc::new(move |_| {
        let one = counted.one();
        Box::pin(async move {
            let _one = one;
            std::future::pending().await
        })
    });
    let requests = client(&ApiServer::start());
    (OpenTurns { requests, act, tasks: JoinSet::new(), open: HashMap::new() }, running)
}

fn ours(uid: &str) -> Value {
    request(uid, json!({"name": NAME, "message": ""}))
}

fn object(request: Value) -> DynamicObject {
    serde_json::from_value(request).unwrap()
}

/// Turns of which one is served.
async fn serving() -> (OpenTurns, RunningWork, HashSet<RequestKey>) {
    let ((mut turns, running), mut listed) = (turns(), HashSet::new());
    turns.see(Event::Apply(object(ours("own"))), &mut listed);
    turns.see(Event::Apply(object(ours("own"))), &mut listed);
    running.is(1).await;
    (turns, running, listed)
}

#[tokio::test]
async fn a_turn_that_ends_otherwise_drops_the_authors_future() {
    let set = |field: &str, value: Value| {
        let mut request = ours("own");
        request["status"][field] = value;
        request
    };
    let canceled = json!([{"type": "Canceled", "status": "True", "reason": "NoRequesters", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let mut deleted = ours("own");
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let skipped =
        request("own", json!({"name": NAME, "message": "", "completionTime": "2026-01-01T00:00:00Z"}));
    let passed_over = set("activeInterceptors", json!(["imperative-eviction.k8s.io"]));
    for over in [set("conditions", canceled), deleted, skipped, passed_over] {
        let (mut turns, running, mut listed) = serving().await;
        turns.see(Event::Apply(object(over)), &mut listed);
        running.is(0).await;
    }
}

#[tokio::test]
async fn a_request_that_is_deleted_ends_its_turn() {
    let (mut turns, running, mut listed) = serving().await;
    turns.see(Event::Delete(object(ours("own"))), &mut listed);
    running.is(0).await;
}

#[tokio::test]
async fn a_new_list_ends_the_turns_of_requests_that_are_not_in_it() {
    let (mut turns, running, mut listed) = serving().await;
    turns.see(Event::Init, &mut listed);
    turns.see(Event::InitApply(object(ours("own"))), &mut listed);
    turns.see(Event::InitDone, &mut listed);
    assert_eq!(turns.open.len(), 1);
    turns.see(Event::Init, &mut listed);
    turns.see(Event::InitDone, &mut listed);
    running.is(0).await;
}

/// While the watch was interrupted, the request was deleted and made anew under its name.
#[tokio::test]
async fn a_request_that_was_made_anew_is_another_turn() {
    let (mut turns, _running, mut listed) = serving().await;
    let first = turns.open.values().next().unwrap().task.clone();
    turns.see(Event::Apply(object(ours("another"))), &mut listed);
    assert!(turns.tasks.join_next().await.unwrap().unwrap_err().is_cancelled() && first.is_finished());
    turns.ended(Some((("ns".to_owned(), "pod-uid".to_owned()), "own".to_owned())));
    assert_eq!(turns.open.values().next().unwrap().uid, "another");
}

#[tokio::test]
async fn turns_of_others_are_not_served() {
    let (mut turns, _running) = turns();
    let mut other = ours("own");
    other["status"]["activeInterceptors"] = json!(["imperative-eviction.k8s.io"]);
    turns.see(Event::Apply(object(other)), &mut HashSet::new());
    assert!(turns.open.is_empty());
}

/// Five hundred requests at a time, as large as tenants make them, took hundreds of MiB.
#[tokio::test]
async fn requests_are_listed_in_short_pages() {
    let (asked, first) = tokio::sync::oneshot::channel();
    let asked = Arc::new(parking_lot::Mutex::new(Some(asked)));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let uri = request.uri().to_string();
        if let Some(asked) = asked.lock().take() {
            asked.send(uri).unwrap();
        }
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
    });
    let runtime = InterceptorRuntime::new(Client::new(service, "default"), NAME);
    let act = |_| async { Ok::<_, String>(TurnEnd::Done(String::new())) };
    let running = tokio::spawn(runtime.run(act));
    let uri = tokio::time::timeout(LIMIT, first).await.unwrap().unwrap();
    running.abort();
    assert!(uri.contains("limit=50"), "{uri}");
}

/// The author's whole interceptor, and what it promises.
#[test]
fn an_interceptor_takes_fewer_than_fifty_lines() {
    let example = include_str!("../examples/checkpoint.rs");
    assert!(example.lines().count() < 50, "{} lines", example.lines().count());
}
