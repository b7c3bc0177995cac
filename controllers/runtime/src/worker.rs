//! Workers over a queue.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use drydock_logging::{is_unreachable, with_causes};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, warn};

use crate::context::ControllerContext;
use crate::error::{self, ApiErrorKind, CallError};
use crate::lease::LeaseHandle;
use crate::queue::{QueueKey, WorkQueue};

/// When a key is worked on again after work that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Not before something adds it.
    Never,
    /// The key is to be looked at again after this.
    After(Duration),
    /// The key is to be tried again with backoff, though nothing is wrong (a race was lost).
    WithBackoff,
}

/// Returns what follows from a failed write. After a conflict the key is decided again, after `stale` if no
/// cache shows a newer version before. After a NotFound it is decided again with backoff, until the caches
/// show that the object is gone. Any other error is returned.
pub fn after_failed_write(
    what: &'static str,
    error: kube::Error,
    stale: Duration,
) -> Result<Requeue, CallError> {
    match error::classify(&error) {
        ApiErrorKind::NotFound => Ok(Requeue::WithBackoff),
        ApiErrorKind::Conflict => Ok(Requeue::After(stale)),
        _ => Err(CallError::of(what)(error)),
    }
}

/// Failures before this many in a row are ordinary races and outages, logged at debug level.
const QUIET_FAILURES: u32 = 4;

/// Works on the queue's keys, at most `parallel` at once, until shutdown; then waits for what is under way. Each key is
/// worked on by one worker at a time. A failed key comes back with backoff, and so does one whose work panics.
///
/// # Panics
/// The result of the work on a key cannot be noted: the key would not be worked on again.
pub async fn run_workers<K, F>(context: &ControllerContext, queue: WorkQueue<K>, parallel: usize, work: F)
where
    K: QueueKey,
    F: Fn(K) -> BoxFuture<'static, Result<Requeue, CallError>> + Send + Sync + 'static,
{
    let slots = Arc::new(Semaphore::new(parallel.max(1)));
    let mut workers = JoinSet::new();
    let work = Arc::new(work);
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else { break };
        let key = tokio::select! {
            () = context.tasks.shutdown().cancelled() => break,
            Some(ended) = workers.join_next() => {
                pass_on_panic(ended);
                continue;
            }
            key = queue.get() => key,
        };
        let Some(key) = key else { break };
        let (queue, lease, work) = (queue.clone(), context.lease.clone(), work.clone());
        workers.spawn(async move {
            let worked = async { work(key.clone()).await };
            let result = AssertUnwindSafe(worked).catch_unwind().await;
            settle(&queue, &lease, key, result);
            drop(slot);
        });
    }
    queue.shut_down();
    while let Some(ended) = workers.join_next().await {
        pass_on_panic(ended);
    }
}

/// Panics as the task did, if it did: in a `JoinSet` nobody would know of it.
pub fn pass_on_panic(ended: Result<(), JoinError>) {
    if let Err(Ok(panic)) = ended.map_err(JoinError::try_into_panic) {
        resume_unwind(panic);
    }
}

fn settle<K: QueueKey, P>(
    queue: &WorkQueue<K>,
    lease: &LeaseHandle,
    key: K,
    result: Result<Result<Requeue, CallError>, P>,
) {
    match result {
        Ok(Ok(Requeue::Never)) => queue.forget(&key),
        Ok(Ok(Requeue::After(delay))) => {
            queue.forget(&key);
            queue.add_after(key.clone(), delay);
        }
        Ok(Ok(Requeue::WithBackoff)) => {
            queue.add_rate_limited(key.clone());
        }
        Ok(Err(error)) => {
            let min_delay = error.call().and_then(error::min_retry_delay).unwrap_or_default();
            // The client logs a server that is not reached, and a refused term of the lease, once for all keys.
            let is_refused =
                |call| error::classify(call) == ApiErrorKind::RefusedToken && lease.refused_token().is_some();
            let is_logged = error.call().is_some_and(|call| is_unreachable(call) || is_refused(call));
            report_failure(queue, &key, &with_causes(&error), is_logged, min_delay);
        }
        // A panic is a bug; the other keys must not suffer from it.
        Err(_) => report_failure(queue, &key, "the worker panicked", false, Duration::ZERO),
    }
    queue.done(&key);
}

/// Logs a failure: as a warning if the key has failed [`QUIET_FAILURES`] times before and the words are new,
/// else at debug level.
fn report_failure<K: QueueKey>(
    queue: &WorkQueue<K>,
    key: &K,
    error: &str,
    is_logged: bool,
    min_delay: Duration,
) {
    let failures = queue.failures(key);
    let retry_in = queue.add_rate_limited_after(key.clone(), min_delay);
    if failures >= QUIET_FAILURES && !is_logged && queue.note_failure(key, error) {
        warn!(%key, error, failures, ?retry_in, "keeps failing, trying again");
    } else {
        debug!(%key, error, failures, ?retry_in, "failed, trying again");
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;
    use crate::clock::Clock;
    use crate::metrics::Metrics;
    use crate::queue::ExponentialBackoff;

    impl QueueKey for u8 {}

    fn writing(source: kube::Error) -> CallError {
        CallError::Api { what: "writing", source }
    }

    fn answered(code: u16, message: &str) -> kube::Error {
        kube::Error::Api(kube::core::Status::failure(message, "").with_code(code).boxed())
    }

    /// Writes that were answered 429 came again after 5 ms, whatever the server asked for.
    #[tokio::test(start_paused = true)]
    async fn a_throttled_key_waits_at_least_as_long_as_the_server_asks() {
        for (code, waits) in [(429, Duration::from_secs(1)), (503, Duration::from_millis(5))] {
            let queue: WorkQueue<u8> = WorkQueue::new("t", &Metrics::new(), ExponentialBackoff::WRITES);
            queue.add(1);
            let key = queue.get().await;
            let began = tokio::time::Instant::now();
            settle(&queue, &unrefused(), 1, Ok::<_, ()>(Err(writing(answered(code, "m")))));
            assert_eq!((key, queue.get().await), (Some(1), Some(1)));
            assert_eq!(began.elapsed(), waits, "{code}");
        }
    }

    fn unrefused() -> LeaseHandle {
        LeaseHandle::unelected(Clock::SYSTEM)
    }

    /// The warnings that failures of one key bring, by what it fails with.
    async fn warnings(lease: LeaseHandle, failures: impl IntoIterator<Item = kube::Error>) -> Vec<String> {
        let queue: WorkQueue<u8> = WorkQueue::new("t", &Metrics::new(), ExponentialBackoff::WRITES);
        let (log, _guard) = drydock_logging::testing::log("warn");
        queue.add(1);
        for error in failures {
            assert_eq!(queue.get().await, Some(1));
            settle(&queue, &lease, 1, Ok::<_, ()>(Err(writing(error))));
        }
        log.lines()
    }

    /// Each retry of a write that was refused was a warning, forever, with a Status in Rust debug output.
    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_stays_is_a_warning_once_in_plain_words_and_another_one_again() {
        let often = |words: &'static str| std::iter::repeat_with(move || answered(403, words)).take(20);
        let failures = often("pods is forbidden").chain(often("nodes is forbidden"));
        let lines = warnings(unrefused(), failures).await;
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("writing: pods is forbidden"), "{lines:?}");
        assert!(!lines[0].contains("Status"), "{lines:?}");
        assert!(lines[1].contains("nodes is forbidden"), "{lines:?}");
    }

    /// Regression: the refusal was taken for a stale cache, and no line of the log said why nothing was written.
    #[tokio::test(start_paused = true)]
    async fn a_refused_term_is_a_failure_that_the_client_logs_for_all_keys() {
        let refusal = || {
            let status = kube::core::Status::failure("token 1 is outdated", "FencingTokenRefused");
            kube::Error::Api(status.with_code(409).boxed())
        };
        let next = after_failed_write("writing", refusal(), Duration::from_secs(10));
        assert!(matches!(next, Err(CallError::Api { .. })), "{next:?}");
        let refused = LeaseHandle::refused(Clock::SYSTEM);
        let failures = || std::iter::repeat_with(refusal).take(20);
        assert_eq!(warnings(refused, failures()).await, Vec::<String>::new());
        // In the answer of a webhook of the host, say, nobody else tells of it.
        assert_eq!(warnings(unrefused(), failures()).await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_server_that_is_away_no_key_warns() {
        let away = || kube::Error::Service("connection refused".into());
        let failures = std::iter::repeat_with(away).take(20);
        assert_eq!(warnings(unrefused(), failures).await, Vec::<String>::new());
    }

    /// The client does not log it: the server answers other requests.
    #[tokio::test(start_paused = true)]
    async fn of_a_write_that_has_no_answer_a_key_warns() {
        let silent = || {
            let (request, waited) = ("PATCH /a".to_owned(), Duration::from_secs(75));
            kube::Error::Service(Box::new(drydock_logging::NoAnswer { request, waited, has_begun: false }))
        };
        let lines = warnings(unrefused(), std::iter::repeat_with(silent).take(20)).await;
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("PATCH /a: no answer within 75 s"), "{lines:?}");
    }

    /// Whether an `Uncopied` is worked on.
    static IS_WORKED_ON: AtomicBool = AtomicBool::new(false);

    /// A key of which no copy can be made while it is worked on, and so none to be added again.
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Uncopied;

    impl Clone for Uncopied {
        fn clone(&self) -> Self {
            assert!(!IS_WORKED_ON.load(Relaxed), "no copy is made");
            Self
        }
    }

    impl fmt::Display for Uncopied {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("uncopied")
        }
    }

    impl QueueKey for Uncopied {}

    /// A key that was never given back was never worked on again, and nobody knew.
    #[tokio::test(start_paused = true)]
    async fn a_panic_outside_of_the_work_on_a_key_ends_the_task_of_the_workers() {
        let context = crate::testing::context(|_, _, _| crate::testing::failure(404, "NotFound"));
        let queue = WorkQueue::new("t", &Metrics::new(), ExponentialBackoff::WRITES);
        queue.add(Uncopied);
        context.tasks.spawn("the workers", {
            let context = context.clone();
            async move {
                let work = |_: Uncopied| {
                    IS_WORKED_ON.store(true, Relaxed);
                    async { Ok(Requeue::After(Duration::from_secs(1))) }.boxed()
                };
                run_workers(&context, queue, 1, work).await;
            }
        });
        let error = context.tasks.run(std::future::pending()).await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"the workers\" panicked");
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_work_panics_comes_again() {
        let context = crate::testing::context(|_, _, _| crate::testing::failure(404, "NotFound"));
        let queue: WorkQueue<u8> = WorkQueue::new("t", &Metrics::new(), ExponentialBackoff::WRITES);
        queue.add(1);
        let (attempts, stop) = (AtomicBool::new(false), context.tasks.shutdown().clone());
        let work = move |_: u8| {
            // It panics before there is a future.
            assert!(attempts.swap(true, Relaxed), "the first time");
            stop.cancel();
            async { Ok(Requeue::Never) }.boxed()
        };
        run_workers(&context, queue, 1, work).await;
    }
}
