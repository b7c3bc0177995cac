//! How long history is kept: periodic compaction, and less history where space is short.
//!
//! Compaction by time alone keeps five to ten minutes of history, however large it is. A client that rewrites one
//! object again and again would fill the store with history. So a fuller store keeps less: a client that resumes a
//! watch within the kept history notices nothing, and older history matters less than space for the writes of all
//! clients.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::backend::{Backend, CompactionTurn, Revision, is_short};

/// The least time for which history is kept (kube-apiserver: --etcd-compaction-interval).
pub const COMPACTION_INTERVAL: Duration = Duration::from_secs(300);

/// Maximum number of samples kept.
const MAX_SAMPLES: usize = 64;
/// A compaction before its time must free 1/MIN_FREED of the quota, unless the store is full.
const MIN_FREED: u64 = 64;

/// Compacts every `interval`, and concurrently runs the backend's early compaction (`compact_early`), until `stop`.
pub async fn compact(backend: &dyn Backend, interval: Duration, stop: CancellationToken) {
    stop.run_until_cancelled(async { tokio::join!(take_turns(backend, interval), backend.compact_early()) })
        .await;
}

/// Never returns. Logs a turn that fails; the next turn discards what it left.
async fn take_turns(backend: &dyn Backend, interval: Duration) {
    let mut last = CompactionTurn::default();
    loop {
        tokio::time::sleep(interval).await;
        match backend.compaction_turn(last).await {
            Ok(turn) => last = turn,
            Err(error) => tracing::warn!(%error, "compaction failed; it is tried again"),
        }
    }
}

/// How long history is kept, by how full the store is.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// From half of the quota.
    pub half: Duration,
    /// From three quarters of the quota.
    pub three_quarters: Duration,
    /// From the whole quota. It is long enough that compaction does not overtake the watches that fill caches.
    pub full: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        let [half, three_quarters, full] = [60, 30, 5].map(Duration::from_secs);
        Self { half, three_quarters, full }
    }
}

/// What a store has to discard at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// History younger than this is kept.
    keep: Duration,
    /// Bytes that a compaction must free at least.
    min_freed: u64,
}

impl Retention {
    /// Returns the demand on a store that holds `used` of `quota` bytes; `None` while less than half is used.
    pub fn demand(&self, used: u64, quota: u64) -> Option<Demand> {
        let min_freed = quota / MIN_FREED;
        match used {
            _ if used >= quota => Some(Demand { keep: self.full, min_freed: 0 }),
            _ if used >= quota / 4 * 3 => Some(Demand { keep: self.three_quarters, min_freed }),
            _ if is_short(used, quota) => Some(Demand { keep: self.half, min_freed }),
            _ => None,
        }
    }
}

/// Which revision was current when. Its size depends on the time for which history is kept, not on the number of
/// writes.
#[derive(Debug)]
pub struct RevisionTimes {
    samples: VecDeque<RevisionSample>,
    /// The sample up to which history has been discarded.
    forgotten: RevisionSample,
    spacing: Duration,
    longest: Duration,
}

/// A moment, with the revision that was current.
#[derive(Clone, Copy, Debug)]
pub struct RevisionSample {
    at: Instant,
    /// The revision that was current.
    pub revision: Revision,
    /// Bytes written by then.
    written: u64,
}

impl RevisionTimes {
    /// Creates the samples of a store that is opened at the time `now` at `revision`.
    pub fn new(retention: &Retention, now: Instant, revision: Revision) -> Self {
        let start = RevisionSample { at: now, revision, written: 0 };
        let longest = retention.half.max(retention.three_quarters).max(retention.full);
        let shortest = retention.half.min(retention.three_quarters).min(retention.full);
        let spacing = (shortest / 4).max(longest / MAX_SAMPLES as u32);
        Self {
            samples: VecDeque::from([start]),
            forgotten: RevisionSample { revision: Revision(0), ..start },
            spacing,
            longest,
        }
    }

    /// Records that the store is at `revision`, after `written` bytes in all.
    pub fn note(&mut self, now: Instant, revision: Revision, written: u64) {
        let last = self.samples.back().copied();
        if last.is_some_and(|last| last.revision >= revision || last.at + self.spacing > now) {
            return;
        }
        self.samples.push_back(RevisionSample { at: now, revision, written });
        // Keep the first sample that is old enough for every demand.
        while self.samples.get(1).is_some_and(|next| next.at + self.longest <= now) {
            self.samples.pop_front();
        }
    }

    /// Returns the sample up to which to discard history now, if the demand is due.
    pub fn due(&self, now: Instant, demand: Demand) -> Option<RevisionSample> {
        let due = self.samples.iter().rev().find(|sample| sample.at + demand.keep <= now)?;
        self.frees_enough(due, demand).then_some(*due)
    }

    /// Returns when the demand is due if nothing more is written; `None` if there is nothing to discard.
    pub fn next(&self, demand: Demand) -> Option<Instant> {
        self.samples
            .iter()
            .find(|sample| self.frees_enough(sample, demand))
            .map(|sample| sample.at + demand.keep)
    }

    /// Records that the history before `sample` was discarded.
    pub fn forgot(&mut self, sample: RevisionSample) {
        self.forgotten = sample;
    }

    fn frees_enough(&self, sample: &RevisionSample, demand: Demand) -> bool {
        sample.revision > self.forgotten.revision
            && sample.written - self.forgotten.written >= demand.min_freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTA: u64 = 640;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn keeps(used: u64) -> Option<u64> {
        Retention::default().demand(used, QUOTA).map(|demand| demand.keep.as_secs())
    }

    #[test]
    fn the_fuller_a_store_the_less_history_it_keeps() {
        assert_eq!([0, 319, 320, 480, 640].map(keeps), [None, None, Some(60), Some(30), Some(5)]);
    }

    #[test]
    fn what_is_younger_than_is_kept_stays() {
        let (retention, start) = (Retention::default(), Instant::now());
        let mut times = RevisionTimes::new(&retention, start, Revision(1));
        for second in 1..=100 {
            times.note(start + secs(second), Revision(1 + second), second * 100);
        }
        let now = start + secs(100);
        for used in [QUOTA / 2, QUOTA / 4 * 3, QUOTA] {
            let demand = retention.demand(used, QUOTA).unwrap();
            let due = times.due(now, demand).unwrap();
            let age = 100 - (due.revision.0 - 1);
            let keep = demand.keep.as_secs();
            assert!((keep..=keep + 2).contains(&age), "{age} s of {keep}");
        }
        assert!(times.samples.len() <= MAX_SAMPLES, "{}", times.samples.len());
    }

    #[test]
    fn little_is_forgotten_only_where_the_store_is_full() {
        let (retention, start) = (Retention::default(), Instant::now());
        let mut times = RevisionTimes::new(&retention, start, Revision(1));
        times.forgot(times.samples[0]);
        times.note(start + secs(2), Revision(2), 9);
        let [short, full] = [QUOTA / 2, QUOTA].map(|used| retention.demand(used, QUOTA).unwrap());
        let now = start + secs(90);
        assert!(times.due(now, short).is_none() && times.next(short).is_none(), "9 bytes of 640");
        assert_eq!(times.next(full), Some(start + secs(7)));
        let due = times.due(now, full).unwrap();
        assert_eq!(due.revision, Revision(2));
        times.forgot(due);
        assert!(times.due(now, full).is_none() && times.next(full).is_none(), "nothing is left to forget");
    }
}
