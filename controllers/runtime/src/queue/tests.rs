//! Keys are given out once, or after a delay, or again after a failure, and never to two workers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use super::*;

impl QueueKey for &'static str {}

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(
        "test",
        &Metrics::new(),
        ExponentialBackoff { first: Duration::from_secs(1), max: Duration::from_secs(8) },
    )
}

#[tokio::test(start_paused = true)]
async fn key_added_twice_is_given_once() {
    let queue = queue();
    queue.add("a");
    queue.add("a");
    assert_eq!(queue.get().await, Some("a"));
    assert_eq!(queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn key_added_during_work_comes_back_only_when_done() {
    let queue = queue();
    queue.add("a");
    let key = queue.get().await.unwrap();
    queue.add("a");
    assert_eq!(queue.depth(), 0);
    queue.done(&key);
    assert_eq!(queue.get().await, Some("a"));
}

#[tokio::test(start_paused = true)]
async fn earliest_of_several_delayed_adds_counts() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", Duration::from_secs(60));
    queue.add_after("a", Duration::from_secs(5));
    queue.add_after("a", Duration::from_secs(30));
    assert_eq!(queue.get().await, Some("a"));
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    queue.done(&"a");
    queue.shut_down();
    assert_eq!(queue.get().await, None);
}

#[tokio::test(start_paused = true)]
async fn waiting_worker_is_woken_by_an_earlier_deadline() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("late", Duration::from_secs(100));
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await }
    });
    tokio::task::yield_now().await;
    queue.add_after("early", Duration::from_secs(1));
    assert_eq!(worker.await.unwrap(), Some("early"));
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn retries_back_off_until_forgotten() {
    let queue = queue();
    let delays: Vec<u64> = (0..5).map(|_| queue.add_rate_limited("a").as_secs()).collect();
    assert_eq!(delays, [1, 2, 4, 8, 8]);
    assert_eq!(queue.failures(&"a"), 5);
    queue.forget(&"a");
    assert_eq!(queue.add_rate_limited("a").as_secs(), 1);
}

#[test]
fn backoff_never_overflows() {
    let backoff = ExponentialBackoff { first: Duration::from_secs(3), max: Duration::from_secs(900) };
    assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(900));
}

#[tokio::test(start_paused = true)]
async fn far_deadline_does_not_overflow() {
    let queue = queue();
    queue.add_after("a", Duration::MAX);
    queue.add("b");
    assert_eq!(queue.get().await, Some("b"));
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_all_waiting_workers_after_what_is_ready() {
    let queue = queue();
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while let Some(key) = queue.get().await {
                    seen.push(key);
                    queue.done(&key);
                }
                seen
            })
        })
        .collect();
    queue.add("a");
    queue.shut_down();
    queue.add("never");
    let mut seen = Vec::new();
    for worker in workers {
        seen.extend(worker.await.unwrap());
    }
    assert_eq!(seen, ["a"]);
}

/// A namespace with a thousand requests was worked off before the one that came after it.
#[tokio::test(start_paused = true)]
async fn namespaces_take_turns_and_keys_of_none_take_every_second() {
    let backoff = ExponentialBackoff { first: Duration::from_secs(1), max: Duration::from_secs(8) };
    let queue = WorkQueue::new("test", &Metrics::new(), backoff);
    for (namespace, name) in
        [("loud", "1"), ("loud", "2"), ("loud", "3"), ("", "x"), ("quiet", "4"), ("", "y")]
    {
        queue.add(ObjectKey::new(namespace, name));
    }
    assert_eq!(queue.depth(), 6);
    let mut taken = Vec::new();
    for _ in 0..6 {
        let key = queue.get().await.unwrap();
        queue.done(&key);
        taken.push(key.name.to_string());
    }
    assert_eq!(taken, ["x", "1", "y", "4", "2", "3"]);
    assert_eq!(queue.depth(), 0);
}
