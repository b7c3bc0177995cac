//! When the writer gives up history before its time, because the store fills up; and how fast it removes it.

use std::time::{Duration, Instant};

use super::compaction::STEP;
use super::queue::size;
use super::quota::Quota;
use crate::backend::{BackendEvent, Revision};
use crate::retention::{Mark, Marks, Retention};

/// After a compaction that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What the writer keeps in mind for it.
pub(super) struct Pressure {
    quota: Quota,
    retention: Retention,
    marks: Marks,
    /// Bytes that were written since the store was opened.
    written: u64,
    /// Rows of the last transaction.
    last_rows: usize,
    /// Nothing is tried before.
    not_before: Instant,
}

impl Pressure {
    /// Of a store that is opened `now` at `revision`.
    pub fn new(quota: Quota, retention: Retention, now: Instant, revision: Revision) -> Self {
        let marks = Marks::new(&retention, now, revision);
        Self { quota, retention, marks, written: 0, last_rows: 0, not_before: now }
    }

    /// A transaction of these events was made.
    pub fn wrote(&mut self, events: &[BackendEvent]) {
        let bytes: usize = events.iter().map(|event| size(&event.key, event.value.as_ref())).sum();
        self.written += bytes as u64;
        self.last_rows = events.len();
    }

    /// The revision up to which history is to be given up now, if any; the store is at `revision`.
    pub fn due(&mut self, now: Instant, revision: Revision) -> Option<Mark> {
        self.marks.note(now, revision, self.written);
        let demand = self.quota.demand(&self.retention).filter(|_| now >= self.not_before)?;
        let due = self.marks.due(now, demand)?;
        // Until it is told otherwise.
        self.not_before = now + PAUSE;
        Some(due)
    }

    /// It was given up.
    pub fn met(&mut self, mark: Mark) {
        self.marks.forgot(mark);
        self.not_before = Instant::now();
    }

    /// How long until there is something to give up; `None` while there is nothing.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        let next = self.marks.next(self.quota.demand(&self.retention)?)?;
        Some(next.max(self.not_before).saturating_duration_since(now))
    }

    /// Rows that one step of a compaction walks: more than were written since the step before, or else it would never come
    /// to an end.
    pub fn rows(&self) -> usize {
        STEP.max(2 * self.last_rows)
    }
}
