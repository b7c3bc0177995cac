//! What ends or interrupts the wait of a stream for its next event: shutdown, or a time.
//!
//! A stream polls it before each event, and nearly always it has not fired. So its two futures are polled with a waker
//! of its own, which sets a flag and wakes the task of the stream; while the flag is not set, a poll reads no more than
//! that.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Fires at shutdown and at a time.
pub struct StreamTimer {
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    clock: Pin<Box<Sleep>>,
    signal: Arc<Signal>,
    /// Sets the signal.
    waker: Waker,
    /// The waker of the stream's task, as the signal has it.
    task: Option<Waker>,
}

/// Why a timer fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fired {
    /// The server stops.
    Shutdown,
    /// The time has come.
    Time,
}

struct Signal {
    fired: AtomicBool,
    /// Wakes the task of the stream. It is kept when it is woken: nearly always it is the same the next time.
    task: Mutex<Option<Waker>>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.fired.store(true, Ordering::Release);
        let task = self.task.lock().clone();
        task.into_iter().for_each(Waker::wake);
    }
}

impl StreamTimer {
    /// Fires at `time`, or earlier at `shutdown`.
    pub fn new(shutdown: CancellationToken, time: Instant) -> Self {
        // As if it had fired: the futures have not been polled yet.
        let signal = Arc::new(Signal { fired: AtomicBool::new(true), task: Mutex::default() });
        Self {
            shutdown: Box::pin(shutdown.cancelled_owned()),
            clock: Box::pin(tokio::time::sleep_until(time.into())),
            waker: signal.clone().into(),
            signal,
            task: None,
        }
    }

    /// Fires at another time.
    pub fn set(&mut self, time: Instant) {
        self.clock.as_mut().reset(time.into());
        self.signal.fired.store(true, Ordering::Release);
    }

    /// Whether it has fired; if not, the task is woken when it does.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fired> {
        // In this order: one that fires after the flag was read finds the waker.
        self.register(context.waker());
        if !self.signal.fired.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.signal.fired.swap(false, Ordering::AcqRel);
        let mut context = Context::from_waker(&self.waker);
        let fired = if self.shutdown.as_mut().poll(&mut context).is_ready() {
            Fired::Shutdown
        } else if self.clock.as_mut().poll(&mut context).is_ready() {
            Fired::Time
        } else {
            return Poll::Pending;
        };
        // It stays fired until it is set anew.
        self.signal.fired.store(true, Ordering::Release);
        Poll::Ready(fired)
    }

    fn register(&mut self, task: &Waker) {
        if !self.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            self.task = Some(task.clone());
            // Dropped without the lock: another task may end with it.
            let _before = self.signal.task.lock().replace(task.clone());
        }
    }
}

const EVERY: Duration = Duration::from_secs(60);
const BEFORE_END: Duration = Duration::from_secs(2);

/// The next time for a bookmark.
pub struct BookmarkTimer {
    due: Instant,
    ends: Instant,
}

impl BookmarkTimer {
    /// For a watch that starts now.
    pub fn new(now: Instant, ends: Instant) -> Self {
        Self { due: next(now, ends), ends }
    }

    /// When the next one is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Records that one has been sent.
    pub fn passed(&mut self, now: Instant) {
        self.due = next(now, self.ends);
    }
}

fn next(now: Instant, ends: Instant) -> Instant {
    let regular = now + EVERY;
    match ends.checked_sub(BEFORE_END) {
        Some(last) if last > now && last < regular => last,
        _ => regular,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use futures::poll;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn it_wakes_who_waits_when_the_server_stops() {
        let shutdown = CancellationToken::new();
        let mut timer = StreamTimer::new(shutdown.clone(), Instant::now() + HOUR);
        assert!(poll!(poll_fn(|context| timer.poll(context))).is_pending());
        let waiting = tokio::spawn(async move { poll_fn(|context| timer.poll(context)).await });
        tokio::task::yield_now().await;
        shutdown.cancel();
        assert!(waiting.await.is_ok_and(|fired| fired == Fired::Shutdown));
    }

    #[tokio::test]
    async fn it_fires_at_its_time_until_it_is_set_anew() {
        let mut timer = StreamTimer::new(CancellationToken::new(), Instant::now() + Duration::from_millis(1));
        for _ in 0..2 {
            assert_eq!(poll_fn(|context| timer.poll(context)).await, Fired::Time);
        }
        timer.set(Instant::now() + HOUR);
        assert!(poll!(poll_fn(|context| timer.poll(context))).is_pending());
        timer.set(Instant::now());
        assert_eq!(poll_fn(|context| timer.poll(context)).await, Fired::Time);
    }

    #[test]
    fn the_last_bookmark_comes_two_seconds_before_the_end() {
        let now = Instant::now();
        let mut timer = BookmarkTimer::new(now, now + Duration::from_secs(90));
        assert_eq!(timer.due(), now + EVERY);
        timer.passed(now + EVERY);
        assert_eq!(timer.due(), now + Duration::from_secs(88));
        timer.passed(now + Duration::from_secs(88));
        assert!(timer.due() > now + Duration::from_secs(90));
    }
}
