//! Which requests are removed, and how many at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use drydock_api::eviction_request::EVICTED;
use drydock_api::metav1::Condition;
use drydock_runtime::testing::{context, failure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// A request that was evicted `ago` seconds before the others of age 0, and is kept forever for its requester.
fn evicted(name: &str, ago: i64) -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", name);
    request.metadata.uid = format!("uid-{name}");
    request.metadata.resource_version = "7".into();
    request.spec.requesters = serde_json::from_value(json!([{"name": "r.example.com"}])).unwrap();
    request.status.conditions = vec![Condition {
        type_: EVICTED.into(),
        status: "True".into(),
        last_transition_time: Some(Timestamp::from_second(1_800_000_000 - ago).unwrap()),
        ..Default::default()
    }];
    request
}

fn keeping(most: usize) -> Config {
    Config { retention: None, max_finished: most, ..Config::default() }
}

fn of(context: &ControllerContext, most: usize) -> Removals {
    let turns = WorkQueue::new("turns", &context.metrics, ExponentialBackoff::WRITES);
    Removals::new(context, &keeping(most), &turns)
}

impl Removals {
    /// Works on the next request, if one waits.
    pub(crate) async fn remove_next(&self) -> bool {
        if self.queue.depth() == 0 {
            return false;
        }
        let key = self.queue.get().await.unwrap();
        self.remove(key.clone()).await.unwrap();
        self.queue.done(&key);
        true
    }
}

/// A namespace kept any number of finished requests as long as their requesters did not withdraw.
#[tokio::test]
async fn the_oldest_beyond_the_limit_are_removed_few_at_a_time_on_the_state_that_was_seen() {
    let deleted = Arc::new(Mutex::new(Vec::<(String, Value)>::new()));
    let log = deleted.clone();
    let context = context(move |method, path, body| {
        assert_eq!(method, "DELETE");
        log.lock()
            .push((path.rsplit('/').next().unwrap_or_default().to_owned(), body["preconditions"].clone()));
        failure(200, "")
    });
    let removals = of(&context, 10);
    for age in 0..40 {
        let request = evicted(&format!("{age:02}"), age);
        context.caches.requests.apply(request.clone());
        removals.note(&ObjectChange::between(None, Some(Arc::new(request))));
    }
    assert_eq!(removals.queue.depth(), 30);
    let running = tokio::spawn(removals.clone().run());
    while deleted.lock().len() < 30 {
        tokio::task::yield_now().await;
    }
    context.tasks.shutdown().cancel();
    running.await.unwrap();
    let deleted = deleted.lock();
    let mut names: Vec<&str> = deleted.iter().map(|(name, _)| name.trim_end_matches('?')).collect();
    names.sort_unstable();
    assert_eq!(names, (10..40).map(|age| format!("{age:02}")).collect::<Vec<_>>());
    assert_eq!(deleted[0].1["resourceVersion"], "7");
    assert!(deleted[0].1["uid"].as_str().unwrap().starts_with("uid-"));
}

#[tokio::test]
async fn what_is_no_longer_surplus_stays() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let context = context(move |_, _, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        failure(200, "")
    });
    let removals = of(&context, 1);
    let (old, new) = (evicted("old", 9), evicted("new", 1));
    for request in [&old, &new] {
        context.caches.requests.apply(request.clone());
        removals.note(&ObjectChange::between(None, Some(Arc::new(request.clone()))));
    }
    assert_eq!(removals.queue.depth(), 1);
    removals.note(&ObjectChange::between(Some(Arc::new(new)), None));
    assert_eq!(removals.remove(old.key()).await.unwrap(), Requeue::Never);
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_removal_that_lost_a_race_is_decided_again_when_the_cache_shows_what_has_changed() {
    let context = context(|_, _, _| failure(409, "Conflict"));
    let removals = of(&context, 0);
    let request = evicted("a", 1);
    context.caches.requests.apply(request.clone());
    removals.note(&ObjectChange::between(None, Some(Arc::new(request.clone()))));
    let key = removals.queue.get().await.unwrap();
    assert_eq!(removals.remove(key.clone()).await.unwrap(), Requeue::After(STALE_RETRY_AFTER));
    removals.queue.done(&key);
    assert_eq!(removals.queue.depth(), 0);
    removals.note(&ObjectChange::between(Some(Arc::new(request.clone())), Some(Arc::new(request))));
    assert_eq!(removals.queue.depth(), 1);
}
