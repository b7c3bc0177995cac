//! The monotonic clock. Timers are tokio's, so the times that they are set to are read from the same clock: a test that
//! moves it moves both.

use std::time::Instant;

/// Returns the present.
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// For tests: time that passes without being waited for.
#[cfg(any(test, feature = "test-util"))]
pub mod testing {
    #![allow(clippy::expect_used)]

    use std::time::{Duration, Instant};

    use tokio::sync::oneshot;

    /// How long a time lapse may take: only what never ends takes as long.
    const LIMIT: Duration = Duration::from_secs(120);

    /// Moves the clock on. Timers that are due by then fire; then the clock goes on as before. The runtime must be one of
    /// a single thread.
    pub async fn pass(time: Duration) {
        tokio::time::pause();
        tokio::time::advance(time).await;
        tokio::time::resume();
    }

    /// Awaits something for which several times must pass: a second in each millisecond.
    pub async fn time_lapse<T>(awaited: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let flies = async {
            while began.elapsed() < LIMIT {
                pass(Duration::from_secs(1)).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            biased;
            done = awaited => Some(done),
            () = flies => None,
        }
        .expect("it ends")
    }

    /// The clock of the runtime, which stands still until this is dropped, though nothing else runs.
    #[derive(Debug)]
    pub struct StoppedClock {
        // While a blocking task runs, tokio does not move a paused clock to the next timer by itself.
        _runs: oneshot::Sender<()>,
    }

    impl StoppedClock {
        /// Stops it.
        pub fn stop() -> Self {
            let (runs, end) = oneshot::channel();
            tokio::time::pause();
            drop(tokio::task::spawn_blocking(move || end.blocking_recv()));
            Self { _runs: runs }
        }

        /// Moves it on. Timers that are due by then fire: they count in milliseconds that have passed, so it is one more.
        pub async fn advance(&self, time: Duration) {
            tokio::time::advance(time + Duration::from_millis(1)).await;
        }
    }

    impl Drop for StoppedClock {
        fn drop(&mut self) {
            tokio::time::resume();
        }
    }
}
