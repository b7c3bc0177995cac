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
    // What does not end fails the test.
    #![allow(clippy::expect_used)]

    use std::time::{Duration, Instant};

    use tokio::sync::oneshot;

    /// How long a time lapse may take: only what never ends takes as long.
    const LIMIT: Duration = Duration::from_secs(120);

    /// Moves the clock on. Timers that are due by then fire; then the clock goes on as before. The runtime must be one of
    /// a single thread.
    pub async fn pass(time: Duration) {
        tokio::time::pause();
        let _resumes = Resumes;
        tokio::time::advance(time).await;
    }

    /// Lets the clock go on when it is dropped, as a future may be before its end.
    #[derive(Debug)]
    struct Resumes;

    impl Drop for Resumes {
        fn drop(&mut self) {
            tokio::time::resume();
        }
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

    /// The runtime's clock, stopped until this is dropped. tokio does not move it to the next timer, even when every task
    /// waits.
    #[derive(Debug)]
    pub struct StoppedClock {
        // While a blocking task runs, tokio does not move a paused clock to the next timer by itself.
        _runs: oneshot::Sender<()>,
        _resumes: Resumes,
    }

    impl StoppedClock {
        /// Stops it.
        pub fn stop() -> Self {
            let (runs, end) = oneshot::channel();
            tokio::time::pause();
            drop(tokio::task::spawn_blocking(move || end.blocking_recv()));
            Self { _runs: runs, _resumes: Resumes }
        }

        /// Moves it on, and by a millisecond more, as timers round up to a millisecond. Timers that are due by then fire.
        pub async fn advance(&self, time: Duration) {
            tokio::time::advance(time + Duration::from_millis(1)).await;
        }
    }
}
