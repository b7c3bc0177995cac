//! Runs deep recursion on large stacks: the parser and the interpreter recurse as deep as an expression nests,
//! without a limit of their own.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

/// Stack size for evaluating the deepest expression that can be compiled; only the used part takes memory.
const STACK: usize = 64 << 20;
/// Stack size for parsing the longest text that is parsed.
const PARSING: usize = 512 << 20;

/// Maximum number of concurrent evaluations. An evaluation that asks an authorizer spends most of its time waiting
/// for it.
const MAX_EVALUATIONS: usize = 64;

static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MAX_EVALUATIONS)));

thread_local! {
    /// Whether the current thread was started by `on_large_stack`.
    static ON_LARGE_STACK: Cell<bool> = const { Cell::new(false) };
    static CANCELED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Runs `work` on a thread of its own and waits for it. Fails if it panics or no thread can be started. A nested call
/// runs on the current thread, so only the outermost one can fail to start a thread.
pub fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if ON_LARGE_STACK.get() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(|_| unexpected(&"it panicked"));
    }
    std::thread::scope(|scope| {
        let work = || {
            ON_LARGE_STACK.set(true);
            work()
        };
        let thread =
            builder().stack_size(PARSING).spawn_scoped(scope, work).map_err(|error| unexpected(&error))?;
        thread.join().map_err(|_| unexpected(&"it panicked"))
    })
}

/// As [`on_large_stack`], but without blocking the caller's thread, and with a result by `deadline`. When the caller
/// no longer waits, the work is ended at its next charge.
pub async fn on_evaluation_thread<T: Send + 'static>(
    deadline: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let late = |_| unexpected(&"it took longer than the request may take");
    let permit = timeout_at(deadline.into(), PERMITS.clone().acquire_owned()).await.map_err(late)?;
    let permit = permit.map_err(|error| unexpected(&error))?;
    let (sender, result) = tokio::sync::oneshot::channel();
    let cancel = CancelOnDrop::default();
    let canceled = cancel.0.clone();
    let evaluating = builder().spawn(move || {
        CANCELED.set(Some(canceled));
        let answer = work();
        // Released only now, even if no caller waits for the result: the permit belongs to the thread.
        drop(permit);
        // The caller of a request that has timed out no longer waits.
        let _ = sender.send(answer);
    });
    evaluating.map_err(|error| unexpected(&error))?;
    timeout_at(deadline.into(), result).await.map_err(late)?.map_err(|_| unexpected(&"it panicked"))
}

/// Whether the caller of this thread's evaluation no longer waits.
pub(super) fn is_canceled() -> bool {
    CANCELED
        .with_borrow(|canceled| canceled.as_ref().is_some_and(|canceled| canceled.load(Ordering::Relaxed)))
}

/// The caller's side of an evaluation; dropping it sets the flag.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name("cel".to_owned()).stack_size(STACK)
}

fn unexpected(why: &dyn std::fmt::Display) -> String {
    format!("unexpected internal error evaluating expression: {why}")
}
