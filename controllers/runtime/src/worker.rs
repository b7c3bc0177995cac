//! Workers over a queue.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::queue::{Key, Queue};

/// What is to happen with a key after work that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, until something changes.
    Done,
    /// The key is to be looked at again after this.
    After(Duration),
    /// The key is to be tried again with backoff, though nothing is wrong (a race was lost).
    Retry,
}

/// Failures before this many in a row are ordinary races and outages, logged at debug level.
const QUIET_FAILURES: u32 = 4;

/// Works on the queue's keys, at most `parallel` at once, until `stop`; then waits for what is under way. Each key is
/// worked on by one worker at a time. A failed key comes back with backoff.
pub async fn run_workers<K, E, F>(queue: Queue<K>, parallel: usize, stop: CancellationToken, work: F)
where
    K: Key,
    E: Display + Send + 'static,
    F: Fn(K) -> BoxFuture<'static, Result<Outcome, E>> + Send + Sync + 'static,
{
    let slots = Arc::new(Semaphore::new(parallel.max(1)));
    let tasks = TaskTracker::new();
    let work = Arc::new(work);
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { break };
        let key = tokio::select! {
            () = stop.cancelled() => break,
            key = queue.get() => key,
        };
        let Some(key) = key else { break };
        let (queue, work) = (queue.clone(), work.clone());
        tasks.spawn(async move {
            let result = std::panic::AssertUnwindSafe(work(key.clone())).catch_unwind().await;
            settle(&queue, key, result);
            drop(slot);
        });
    }
    queue.shut_down();
    tasks.close();
    tasks.wait().await;
}

fn settle<K: Key, E: Display, P>(queue: &Queue<K>, key: K, result: Result<Result<Outcome, E>, P>) {
    match result {
        Ok(Ok(Outcome::Done)) => queue.forget(&key),
        Ok(Ok(Outcome::After(delay))) => {
            queue.forget(&key);
            queue.add_after(key.clone(), delay);
        }
        Ok(Ok(Outcome::Retry)) => {
            queue.add_rate_limited(key.clone());
        }
        Ok(Err(error)) => report_failure(queue, &key, &error),
        // A panic is a bug; the other keys must not suffer from it.
        Err(_) => report_failure(queue, &key, &"the worker panicked"),
    }
    queue.done(&key);
}

fn report_failure<K: Key>(queue: &Queue<K>, key: &K, error: &dyn Display) {
    let failures = queue.failures(key);
    let retry_in = queue.add_rate_limited(key.clone());
    if failures < QUIET_FAILURES {
        debug!(?key, %error, ?retry_in, "failed, trying again");
    } else {
        warn!(?key, %error, failures, ?retry_in, "keeps failing, trying again");
    }
}
