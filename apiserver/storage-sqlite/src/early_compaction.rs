//! Decides when the writer compacts early because the store is filling up, and how many rows each step removes.

use std::time::{Duration, Instant};

use drydock_storage::backend::{BackendEvent, Revision};
use drydock_storage::retention::{Retention, RevisionSample, RevisionTimes};

use crate::compaction::STEP;
use crate::queue::size;
use crate::quota::StoreQuota;

/// The pause after a compaction that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// The writer's state for early compaction.
pub(super) struct EarlyCompaction {
    quota: StoreQuota,
    retention: Retention,
    revision_times: RevisionTimes,
    /// Bytes written since the store was opened.
    written: u64,
    /// Rows written by the last transaction.
    last_rows: usize,
    /// The earliest time of the next attempt.
    not_before: Instant,
}

impl EarlyCompaction {
    /// Creates the state for a store that is opened at the time `now` at `revision`.
    pub fn new(quota: StoreQuota, retention: Retention, now: Instant, revision: Revision) -> Self {
        let revision_times = RevisionTimes::new(&retention, now, revision);
        Self { quota, retention, revision_times, written: 0, last_rows: 0, not_before: now }
    }

    /// Records a committed transaction with these events.
    pub fn wrote(&mut self, events: &[BackendEvent]) {
        let bytes: usize = events.iter().map(|event| size(&event.key, event.value.as_ref())).sum();
        self.written += bytes as u64;
        self.last_rows = events.len();
    }

    /// Returns the sample up to which to discard history now, if any. `revision` is the current revision of the store.
    pub fn due(&mut self, now: Instant, revision: Revision) -> Option<RevisionSample> {
        self.revision_times.note(now, revision, self.written);
        let demand = self.quota.demand(&self.retention).filter(|_| now >= self.not_before)?;
        let due = self.revision_times.due(now, demand)?;
        // The next attempt waits for the pause, unless [`Self::met`] reports that this one succeeded.
        self.not_before = now + PAUSE;
        Some(due)
    }

    /// Records that the history up to `sample` was discarded.
    pub fn met(&mut self, sample: RevisionSample) {
        self.revision_times.forgot(sample);
        self.not_before = Instant::now();
    }

    /// Returns how long until there is history to discard; `None` while there is none.
    pub fn patience(&self, now: Instant) -> Option<Duration> {
        let next = self.revision_times.next(self.quota.demand(&self.retention)?)?;
        Some(next.max(self.not_before).saturating_duration_since(now))
    }

    /// Returns the rows that one step of a compaction walks: more than were written since the step before, or the
    /// compaction would never finish.
    pub fn rows(&self) -> usize {
        STEP.max(2 * self.last_rows)
    }
}
