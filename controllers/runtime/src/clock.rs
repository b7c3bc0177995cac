//! Clocks: wall time for what stands in objects, and a monotonic clock that counts sleep for the lease.

use std::time::Duration;

use jiff::Timestamp;

/// Wall time.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Time since boot, including the time for which the machine slept (CLOCK_BOOTTIME). A process that was frozen with
/// its machine sees at once that its lease is over, where CLOCK_MONOTONIC would not.
pub fn since_boot() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(t.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(t.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}
