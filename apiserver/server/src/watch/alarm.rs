//! What ends or interrupts a watch's wait for events.
//!
//! A watch looks at it before each event, and nearly always it is silent: it is polled once, rings a bell of its own
//! when it has something to say, and until then costs a look at the bell.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Rings at shutdown and at a time.
pub struct Alarm {
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    clock: Pin<Box<Sleep>>,
    bell: Arc<Bell>,
    /// Rings it.
    rope: Waker,
    /// Who hears it.
    heard_by: Option<Waker>,
}

/// Why an alarm rang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rang {
    /// The server stops.
    Shutdown,
    /// It is time.
    Clock,
}

struct Bell {
    rang: AtomicBool,
    /// The watch's task. It stays when it is woken: nearly always it is the same the next time.
    watch: Mutex<Option<Waker>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        let watch = self.watch.lock().clone();
        watch.into_iter().for_each(Waker::wake);
    }
}

impl Alarm {
    /// Rings at `time`, or earlier at `shutdown`.
    pub fn new(shutdown: CancellationToken, time: Instant) -> Self {
        // As if it had rung: what makes it ring has not been polled.
        let bell = Arc::new(Bell { rang: AtomicBool::new(true), watch: Mutex::default() });
        Self {
            shutdown: Box::pin(shutdown.cancelled_owned()),
            clock: Box::pin(tokio::time::sleep_until(time.into())),
            rope: bell.clone().into(),
            bell,
            heard_by: None,
        }
    }

    /// Rings at another time.
    pub fn set(&mut self, time: Instant) {
        self.clock.as_mut().reset(time.into());
        self.bell.rang.store(true, Ordering::Release);
    }

    /// Whether it rings; if not, the task is woken when it does.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Rang> {
        // In this order: who rings after the look at the bell finds whom to wake.
        self.be_heard_by(context.waker());
        if !self.bell.rang.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.bell.rang.swap(false, Ordering::AcqRel);
        let mut context = Context::from_waker(&self.rope);
        let rang = if self.shutdown.as_mut().poll(&mut context).is_ready() {
            Rang::Shutdown
        } else if self.clock.as_mut().poll(&mut context).is_ready() {
            Rang::Clock
        } else {
            return Poll::Pending;
        };
        // It goes on ringing until it is set anew.
        self.bell.rang.store(true, Ordering::Release);
        Poll::Ready(rang)
    }

    fn be_heard_by(&mut self, watch: &Waker) {
        if !self.heard_by.as_ref().is_some_and(|known| known.will_wake(watch)) {
            self.heard_by = Some(watch.clone());
            // Dropped without the lock: another task may end with it.
            let _before = self.bell.watch.lock().replace(watch.clone());
        }
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
        let mut alarm = Alarm::new(shutdown.clone(), Instant::now() + HOUR);
        assert!(poll!(poll_fn(|context| alarm.poll(context))).is_pending());
        let waiting = tokio::spawn(async move { poll_fn(|context| alarm.poll(context)).await });
        tokio::task::yield_now().await;
        shutdown.cancel();
        assert!(waiting.await.is_ok_and(|rang| rang == Rang::Shutdown));
    }

    #[tokio::test]
    async fn it_rings_at_its_time_until_it_is_set_anew() {
        let mut alarm = Alarm::new(CancellationToken::new(), Instant::now() + Duration::from_millis(1));
        for _ in 0..2 {
            assert_eq!(poll_fn(|context| alarm.poll(context)).await, Rang::Clock);
        }
        alarm.set(Instant::now() + HOUR);
        assert!(poll!(poll_fn(|context| alarm.poll(context))).is_pending());
        alarm.set(Instant::now());
        assert_eq!(poll_fn(|context| alarm.poll(context)).await, Rang::Clock);
    }
}
