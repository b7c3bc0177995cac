//! DaemonSets that put a new pod on a node as soon as theirs is deleted (those that tolerate every taint do): deleted
//! again with a growing delay, so that the two controllers do not chase each other for as long as the maintenance lasts.

use std::collections::HashMap;
use std::time::Duration;

use drydock_runtime::queue::Backoff;
use jiff::Timestamp;

/// Delay before the second deletion, then twice as long each time. Short at first: the pod may have been put there just
/// before the node got its taint.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(900) };
/// A deletion that the cache does not show within this time is sent again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);
/// A DaemonSet that was quiet for this long begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// Entries from which on the forgotten ones are dropped.
const MANY: usize = 4096;

/// What was deleted lately.
#[derive(Debug, Default)]
pub(super) struct Returns {
    /// By node, and namespace and UID of the DaemonSet.
    last: HashMap<(String, String), Deleted>,
    /// Number of entries at which the forgotten ones are dropped next.
    sweep_at: usize,
}

#[derive(Debug)]
struct Deleted {
    pod: String,
    at: Timestamp,
    times: u32,
}

/// When a pod may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once.
    Now,
    /// It has been, just now; again if it does not show by then.
    Sent { until: Timestamp },
    /// Its DaemonSet's pods were deleted that many times; not before then.
    Later { until: Timestamp, times: u32 },
}

impl Returns {
    /// When a DaemonSet's pod on a node may be deleted.
    pub(super) fn when(&self, node: &str, daemon_set: &str, pod: &str, now: Timestamp) -> When {
        let key = (node.to_owned(), daemon_set.to_owned());
        let Some(last) = self.last.get(&key).filter(|last| !last.is_forgotten(now)) else { return When::Now };
        let after = |delay| last.at.checked_add(delay).unwrap_or(Timestamp::MAX);
        let when = if last.pod == pod {
            When::Sent { until: after(SHOWS_WITHIN) }
        } else {
            When::Later { until: after(AGAIN.delay(last.times.saturating_sub(1))), times: last.times }
        };
        match when {
            When::Sent { until } | When::Later { until, .. } if until <= now => When::Now,
            when => when,
        }
    }

    /// A pod was deleted.
    pub(super) fn deleted(&mut self, node: &str, daemon_set: &str, pod: &str, now: Timestamp) {
        if self.last.len() >= self.sweep_at.max(MANY) {
            self.last.retain(|_, last| !last.is_forgotten(now));
            self.sweep_at = self.last.len() * 2;
        }
        let key = (node.to_owned(), daemon_set.to_owned());
        let before = self.last.get(&key).filter(|last| !last.is_forgotten(now));
        let times = before.map_or(1, |b| if b.pod == pod { b.times } else { b.times.saturating_add(1) });
        self.last.insert(key, Deleted { pod: pod.to_owned(), at: now, times });
    }
}

impl Deleted {
    fn is_forgotten(&self, now: Timestamp) -> bool {
        self.at.checked_add(FORGOTTEN_AFTER).is_ok_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_first_pod_goes_at_once_and_each_that_returns_later_than_the_one_before() {
        let (mut returns, mut now) = (Returns::default(), at(0));
        let mut waited = Vec::new();
        for i in 0..12 {
            let pod = format!("p{i}");
            if let When::Later { until, times } = returns.when("n", "ds", &pod, now) {
                assert_eq!(times, i);
                waited.push(until.duration_since(now).as_secs());
                now = until;
            }
            assert_eq!(returns.when("n", "ds", &pod, now), When::Now);
            returns.deleted("n", "ds", &pod, now);
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900]);
    }

    #[test]
    fn other_nodes_and_daemon_sets_do_not_wait() {
        let mut returns = Returns::default();
        returns.deleted("n", "ds", "p", at(0));
        assert_eq!(returns.when("n", "other", "q", at(1)), When::Now);
        assert_eq!(returns.when("m", "ds", "q", at(1)), When::Now);
    }

    #[test]
    fn a_deletion_is_not_sent_twice_before_the_cache_can_show_it() {
        let mut returns = Returns::default();
        returns.deleted("n", "ds", "p", at(0));
        assert_eq!(returns.when("n", "ds", "p", at(29)), When::Sent { until: at(30) });
        assert_eq!(returns.when("n", "ds", "p", at(30)), When::Now);
    }

    #[test]
    fn a_daemon_set_that_was_quiet_begins_anew_and_memory_is_bounded() {
        let mut returns = Returns::default();
        (0..20_000).for_each(|i| returns.deleted(&format!("n{i}"), "ds", "p", at(i)));
        assert!(returns.last.len() <= 2 * MANY);
        assert_eq!(returns.when("n19999", "ds", "q", at(20_000 + 3600)), When::Now);
    }
}
