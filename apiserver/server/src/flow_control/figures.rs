//! The figures behind the metrics of flow control.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use prometheus_client::metrics::histogram::Histogram;

use super::level::LevelQueues;
use super::share::{LEVELS, Share};

/// Buckets of the time that requests wait (k8s.io/apiserver pkg/util/flowcontrol/metrics/metrics.go).
const SECONDS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// The figures of one level.
#[derive(Clone, Debug)]
pub struct LevelFigures {
    /// Its seats.
    pub share: Share,
    /// Requests that wait.
    pub waiting: u64,
    /// Requests that hold seats.
    pub executing: u64,
    /// Seats that they hold.
    pub seats: u64,
    /// Requests that got their seats so far.
    pub dispatched: u64,
    /// Requests that did not, by reason.
    pub rejected: [(&'static str, u64); 3],
    /// How long requests waited.
    pub waits: Waits,
}

/// How long requests waited that were served, and those that were not.
#[derive(Clone, Debug)]
pub struct Waits {
    /// In seconds.
    pub served: Histogram,
    /// In seconds.
    pub rejected: Histogram,
}

/// Requests of a level so far, by what became of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCounts {
    pub(super) dispatched: u64,
    pub(super) queue_full: u64,
    pub(super) timed_out: u64,
    pub(super) cancelled: u64,
}

impl LevelFigures {
    pub(super) fn of<W>(level: &LevelQueues<W>, counts: RequestCounts, waits: &Waits) -> Self {
        Self {
            share: level.share,
            waiting: level.waiting as u64,
            executing: level.executing.into(),
            seats: level.used.into(),
            dispatched: counts.dispatched,
            rejected: [
                ("queue-full", counts.queue_full),
                ("time-out", counts.timed_out),
                ("cancelled", counts.cancelled),
            ],
            waits: waits.clone(),
        }
    }
}

/// Figures that need no lock.
pub(super) struct Figures {
    waits: [Waits; LEVELS],
    pub(super) in_flight: InFlight,
}

impl Default for Figures {
    fn default() -> Self {
        let histogram = || Histogram::new(SECONDS);
        let waits = std::array::from_fn(|_| Waits { served: histogram(), rejected: histogram() });
        Self { waits, in_flight: InFlight::default() }
    }
}

impl Figures {
    pub(super) fn waits(&self, level: usize) -> Option<&Waits> {
        self.waits.get(level)
    }

    pub(super) fn waited(&self, level: usize, served: bool, time: Duration) {
        let Some(waits) = self.waits.get(level) else { return };
        let waits = if served { &waits.served } else { &waits.rejected };
        waits.observe(time.as_secs_f64());
    }
}

/// Requests in flight that have their seats, or need none. A watch is one until its initial events have been sent.
#[derive(Debug, Default)]
pub struct InFlight {
    reading: AtomicU64,
    mutating: AtomicU64,
}

impl InFlight {
    /// How many there are: reading, mutating.
    pub fn now(&self) -> [u64; 2] {
        [&self.reading, &self.mutating].map(|count| count.load(Relaxed))
    }

    pub(super) fn begun(&self, mutating: bool) {
        self.of(mutating).fetch_add(1, Relaxed);
    }

    pub(super) fn ended(&self, mutating: bool) {
        self.of(mutating).fetch_sub(1, Relaxed);
    }

    fn of(&self, mutating: bool) -> &AtomicU64 {
        if mutating { &self.mutating } else { &self.reading }
    }
}
