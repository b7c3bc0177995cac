//! Nodes that need the taint and do not have it: since when, and how often others have removed it.

use std::collections::HashMap;
use std::time::Duration;

use drydock_runtime::UndoneByOthers;
use drydock_runtime::queue::ExponentialBackoff;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Delay before a taint that others removed for the second time is set again; each later one is twice as
/// long. Pods wait for the taint meanwhile.
const TAINT_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(1), max: Duration::from_secs(30) };

/// The nodes from which DaemonSet pods are being drained, by name.
#[derive(Default)]
pub(super) struct TaintWaits(Mutex<HashMap<String, TaintWait>>);

#[derive(Default)]
struct TaintWait {
    since: Option<Timestamp>,
    taken: UndoneByOthers,
}

/// A taint that is to be set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DueTaint {
    /// The earliest time at which to set it.
    pub(super) at: Timestamp,
    /// If an event is due: how often others have removed it, and since when.
    pub(super) report: Option<(usize, Timestamp)>,
}

impl TaintWaits {
    /// Records that others removed the taint of a node.
    pub(super) fn taken(&self, node: &str, now: Timestamp) {
        self.0.lock().entry(node.to_owned()).or_default().taken.undone(1, now);
    }

    /// Records that a node needs the taint and does not have it; returns when to set it.
    pub(super) fn record_missing(&self, node: &str, now: Timestamp) -> DueTaint {
        let mut waits = self.0.lock();
        let wait = waits.entry(node.to_owned()).or_default();
        wait.since.get_or_insert(now);
        wait.taken.forget(now);
        let delay =
            wait.times().map(|times| TAINT_BACKOFF.delay(u32::try_from(times - 2).unwrap_or(u32::MAX)));
        let at = wait.taken.last().zip(delay).and_then(|(last, delay)| last.checked_add(delay).ok());
        DueTaint { at: at.unwrap_or(now), report: wait.taken.report(now) }
    }

    /// Ends the wait for the taint of a node, which has it or does not need it. What others did is remembered
    /// while the node is being drained.
    pub(super) fn over(&self, node: &str, is_draining: bool) {
        let mut waits = self.0.lock();
        if let Some(wait) = waits.get_mut(node) {
            wait.since = None;
            if !is_draining {
                waits.remove(node);
            }
        }
    }

    /// Since when a node waits for the taint, if it does; with how often others have removed it, and since
    /// when, if that was more than once.
    pub(super) fn of(&self, node: &str) -> Option<(Timestamp, Option<(usize, Timestamp)>)> {
        let waits = self.0.lock();
        let wait = waits.get(node)?;
        Some((wait.since?, wait.taken.since()))
    }
}

impl TaintWait {
    /// How often others have lately removed the taint; none for a single time, which may be a mistake.
    fn times(&self) -> Option<usize> {
        Some(self.taken.times()).filter(|times| *times > 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// It was set again at once each time, for as long as the drain lasted, without an event.
    #[test]
    fn a_taint_that_others_take_away_is_set_later_each_time() {
        let (waits, mut now, mut waited) = (TaintWaits::default(), at(0), Vec::new());
        for _ in 0..9 {
            waits.taken("n", now);
            let due = waits.record_missing("n", now);
            waited.push(due.at.duration_since(now).as_secs());
            now = due.at;
            waits.over("n", true);
        }
        assert_eq!(waited, [0, 1, 2, 4, 8, 16, 30, 30, 30]);
        waits.over("n", false);
        assert_eq!(waits.record_missing("n", now), DueTaint { at: now, report: None }, "another drain");
    }

    #[test]
    fn a_conflict_is_reported_once_a_minute_and_shown_while_it_lasts() {
        let waits = TaintWaits::default();
        let after = |second| {
            waits.taken("n", at(second));
            (waits.record_missing("n", at(second)).report, waits.of("n"))
        };
        assert_eq!(after(0), (None, Some((at(0), None))));
        assert_eq!(after(1), (Some((2, at(0))), Some((at(0), Some((2, at(0)))))));
        assert_eq!(after(2), (None, Some((at(0), Some((3, at(0)))))));
        waits.over("n", true);
        assert_eq!(waits.of("n"), None);
        assert_eq!(after(61), (Some((4, at(0))), Some((at(61), Some((4, at(0)))))));
    }

    #[test]
    fn memory_is_of_nodes_that_are_drained() {
        let waits = TaintWaits::default();
        for node in ["a", "b"] {
            waits.taken(node, at(0));
            waits.record_missing(node, at(0));
            waits.over(node, false);
        }
        assert!(waits.0.lock().is_empty());
    }
}
