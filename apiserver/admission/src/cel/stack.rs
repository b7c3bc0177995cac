//! A stack for what descends: the parser and the interpreter go as deep as an expression nests, and nobody asks them
//! how deep that is.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

/// Enough to evaluate the deepest expression that is compiled; only what is used of it takes memory.
const STACK: usize = 64 << 20;
/// Enough to parse the longest text that is parsed.
const PARSING: usize = 512 << 20;

/// Evaluations under way at a time. Most of one's time is spent waiting for an authorizer, if it asks one.
const MOST: usize = 64;

static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MOST)));

thread_local! {
    /// Whether this is a thread of `deep`.
    static DEEP: Cell<bool> = const { Cell::new(false) };
    static WATCHED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Does `work` on a thread of its own and waits for it; an error if it panicked or there was no thread to have. What does
/// that within such work stays on the thread that it is on, so that only the outermost can lack one.
pub fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    if DEEP.get() {
        return catch_unwind(AssertUnwindSafe(work)).map_err(|_| unexpected(&"it panicked"));
    }
    std::thread::scope(|scope| {
        let work = || {
            DEEP.set(true);
            work()
        };
        let thread =
            builder().stack_size(PARSING).spawn_scoped(scope, work).map_err(|error| unexpected(&error))?;
        thread.join().map_err(|_| unexpected(&"it panicked"))
    })
}

/// The same, without keeping the caller's thread, and with the answer there by `deadline`. What spends after nobody waits
/// for it any more is unwound.
pub async fn deep_aside<T: Send + 'static>(
    deadline: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let late = |_| unexpected(&"it took longer than the request may take");
    let turn = timeout_at(deadline.into(), TURNS.clone().acquire_owned()).await.map_err(late)?;
    let turn = turn.map_err(|error| unexpected(&error))?;
    let (tell, told) = tokio::sync::oneshot::channel();
    let waiting = Waiting::default();
    let watched = waiting.0.clone();
    let evaluating = builder().spawn(move || {
        WATCHED.set(Some(watched));
        let answer = work();
        // Only now, whoever waits for it: the turn is that of the thread.
        drop(turn);
        // Nobody waits any more for the answer to a request that has run out of time.
        let _ = tell.send(answer);
    });
    evaluating.map_err(|error| unexpected(&error))?;
    timeout_at(deadline.into(), told).await.map_err(late)?.map_err(|_| unexpected(&"it panicked"))
}

/// Whether nobody waits for what this thread evaluates.
pub(super) fn is_abandoned() -> bool {
    WATCHED.with_borrow(|watched| watched.as_ref().is_some_and(|gone| gone.load(Ordering::Relaxed)))
}

/// Of one who waits: true once it is dropped.
#[derive(Default)]
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
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
