//! Clocks: wall time for what stands in objects, and a monotonic clock that counts sleep for the lease.

use std::time::Duration;

use jiff::Timestamp;

/// The clocks of the controllers, which each loop is given (k8s.io/utils/clock). Clones are the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock(ClockSource);

#[derive(Clone, Copy, Debug)]
enum ClockSource {
    /// The machine's clocks.
    System,
    /// Wall time at an instant of tokio's clock, which both times follow from there.
    #[cfg(any(test, feature = "test-util"))]
    Tokio(Timestamp, tokio::time::Instant),
}

impl Clock {
    /// The machine's clocks.
    pub const SYSTEM: Self = Self(ClockSource::System);

    /// A clock that shows this wall time now, and goes as tokio's clock does: in a test whose time is paused, timers and
    /// times in objects advance together.
    #[cfg(any(test, feature = "test-util"))]
    pub fn of_tokio(now: Timestamp) -> Self {
        Self(ClockSource::Tokio(now, tokio::time::Instant::now()))
    }

    /// Wall time.
    pub fn now(&self) -> Timestamp {
        match self.0 {
            ClockSource::System => Timestamp::now(),
            #[cfg(any(test, feature = "test-util"))]
            ClockSource::Tokio(start, began) => start.checked_add(began.elapsed()).unwrap_or(Timestamp::MAX),
        }
    }

    /// Time since boot, including the time for which the machine slept (CLOCK_BOOTTIME). A process that was frozen with
    /// its machine sees at once that its lease is over, where CLOCK_MONOTONIC would not.
    pub fn since_boot(&self) -> Duration {
        match self.0 {
            ClockSource::System => boot_time(),
            #[cfg(any(test, feature = "test-util"))]
            ClockSource::Tokio(_, began) => began.elapsed(),
        }
    }

    /// How long it is until a time; zero if it has passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }
}

fn boot_time() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(t.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(t.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}
