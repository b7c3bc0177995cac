//! Remembers which DaemonSet pods were deleted. Some DaemonSets put a new pod on a node as soon as theirs is
//! deleted: those that tolerate our taint, and all while the taint may not be set yet. Their pods are deleted
//! with a growing delay, so that the two controllers do not work against each other without a pause.

use std::collections::HashMap;
use std::time::Duration;

use drydock_runtime::Pod;
use drydock_runtime::queue::ExponentialBackoff;
use jiff::{SignedDuration, Timestamp};

/// Delay before the second deletion; each later one is twice as long. It is short at first, because the pod
/// may have been put there just before the node got its taint.
const DELETION_BACKOFF: ExponentialBackoff =
    ExponentialBackoff { first: Duration::from_secs(1), max: Duration::from_secs(900) };
/// A deletion that the cache does not show within this time is sent again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);
/// If the last deletion is longer ago than this, the delays start from the beginning.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);
/// A pod that is older than the last deletion by more than this was there before it. The host's clock may
/// differ from ours.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(10);
/// From this number of entries on, those that no longer count are dropped.
const PRUNE_FROM: usize = 4096;

/// The last deletion of each DaemonSet's pods by node, while it is recent.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    /// By node, then by namespace and UID of the DaemonSet.
    last: HashMap<String, HashMap<String, LastDeletion>>,
    /// Number of entries.
    count: usize,
    /// Number of entries at which those that no longer count are dropped next.
    prune_at: usize,
}

#[derive(Debug)]
struct LastDeletion {
    pod: String,
    at: Timestamp,
    times: u32,
    /// Whether the pod tolerated our taint.
    tolerated: bool,
}

/// When a pod may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionTime {
    /// At once.
    Now,
    /// The deletion was sent; it is sent again if the cache does not show it by then.
    Sent { until: Timestamp },
    /// Not before this time, because the DaemonSet's pods were deleted so many times in a row.
    Later { until: Timestamp, times: u32 },
}

impl Deletions {
    /// When a DaemonSet's pod may be deleted.
    pub(super) fn when(&self, pod: &Pod, now: Timestamp) -> DeletionTime {
        let Some(last) = self.last_of(pod, now) else { return DeletionTime::Now };
        let after = |delay| last.at.checked_add(delay).unwrap_or(Timestamp::MAX);
        let when = if last.pod == pod.uid {
            DeletionTime::Sent { until: after(SHOWS_WITHIN) }
        } else if last.was_before(pod) {
            DeletionTime::Later {
                until: after(DELETION_BACKOFF.delay(last.times.saturating_sub(1))),
                times: last.times,
            }
        } else {
            DeletionTime::Now
        };
        match when {
            DeletionTime::Sent { until } | DeletionTime::Later { until, .. } if until <= now => {
                DeletionTime::Now
            }
            when => when,
        }
    }

    /// Whether the DaemonSet put this pod there after its previous pod was deleted.
    pub(crate) fn has_returned(&self, pod: &Pod, now: Timestamp) -> bool {
        self.last_of(pod, now).is_some_and(|last| last.was_before(pod))
    }

    /// Records that a pod was deleted.
    pub(crate) fn deleted(&mut self, pod: &Pod, now: Timestamp) {
        if self.count >= self.prune_at.max(PRUNE_FROM) {
            self.last.values_mut().for_each(|of_node| of_node.retain(|_, last| !last.is_forgotten(now)));
            self.last.retain(|_, of_node| !of_node.is_empty());
            self.count = self.last.values().map(HashMap::len).sum();
            self.prune_at = self.count * 2;
        }
        let before = self.last_of(pod, now);
        let times = before.map_or(1, |b| b.times.saturating_add(u32::from(b.was_before(pod))));
        let deleted =
            LastDeletion { pod: pod.uid.clone(), at: now, times, tolerated: pod.tolerates_drain_taint };
        let of_node = self.last.entry(pod.node_name.clone()).or_default();
        let is_new = of_node.insert(pod.daemon_set().unwrap_or_default(), deleted).is_none();
        self.count += usize::from(is_new);
    }

    /// Forgets the deletions on a node whose drain of DaemonSet pods is over.
    pub(crate) fn over(&mut self, node: &str) {
        self.count -= self.last.remove(node).map_or(0, |of_node| of_node.len());
    }

    /// The last deletion of a pod of this DaemonSet on the node. None if the DaemonSet tolerated our taint
    /// then and does not any more: the taint keeps its pods away now.
    fn last_of(&self, pod: &Pod, now: Timestamp) -> Option<&LastDeletion> {
        let last = self.last.get(&pod.node_name)?.get(&pod.daemon_set().unwrap_or_default())?;
        let is_mended = last.tolerated && !pod.tolerates_drain_taint;
        Some(last).filter(|last| !last.is_forgotten(now) && !is_mended)
    }
}

impl LastDeletion {
    /// Whether the deletion was before the pod was created. A tenant may give any number of pods the same
    /// owner; those that were there already do not wait for each other.
    fn was_before(&self, pod: &Pod) -> bool {
        let made = pod.creation_timestamp.and_then(|made| made.checked_add(MAX_CLOCK_SKEW).ok());
        self.pod != pod.uid && made.is_none_or(|made| self.at <= made)
    }

    fn is_forgotten(&self, now: Timestamp) -> bool {
        self.at.checked_add(FORGOTTEN_AFTER).is_ok_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_runtime::testing::of_daemon_set;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(node: &str, daemon_set: &str, uid: &str) -> Pod {
        let pod = Pod { uid: uid.into(), node_name: node.into(), ..Default::default() };
        of_daemon_set("agent", daemon_set, pod)
    }

    #[test]
    fn the_first_pod_goes_at_once_and_each_that_returns_later_than_the_one_before() {
        let (mut deletions, mut now) = (Deletions::default(), at(0));
        let mut waited = Vec::new();
        for i in 0..12 {
            let pod = Pod { creation_timestamp: Some(now), ..pod("n", "ds", &format!("p{i}")) };
            if let DeletionTime::Later { until, times } = deletions.when(&pod, now) {
                assert_eq!(times, i);
                waited.push(until.duration_since(now).as_secs());
                now = until;
            }
            assert_eq!(deletions.has_returned(&pod, now), i > 0);
            assert_eq!(deletions.when(&pod, now), DeletionTime::Now);
            deletions.deleted(&pod, now);
        }
        assert_eq!(waited, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900]);
    }

    #[test]
    fn other_nodes_and_daemon_sets_do_not_wait() {
        let mut deletions = Deletions::default();
        deletions.deleted(&pod("n", "ds", "p"), at(0));
        assert_eq!(deletions.when(&pod("n", "other", "q"), at(1)), DeletionTime::Now);
        assert_eq!(deletions.when(&pod("m", "ds", "q"), at(1)), DeletionTime::Now);
    }

    /// Twenty pods of a tenant that named the same DaemonSet kept their node for hours, each waiting longer
    /// than the one before it.
    #[test]
    fn pods_that_were_there_already_do_not_wait_for_each_other() {
        let mut deletions = Deletions::default();
        for i in 0..20 {
            let pod = Pod { creation_timestamp: Some(at(0)), ..pod("n", "ds", &format!("p{i}")) };
            assert_eq!(deletions.when(&pod, at(100)), DeletionTime::Now);
            deletions.deleted(&pod, at(100));
        }
        let new = Pod { creation_timestamp: Some(at(99)), ..pod("n", "ds", "new") };
        assert_eq!(deletions.when(&new, at(100)), DeletionTime::Later { until: at(101), times: 1 });
    }

    #[test]
    fn a_deletion_is_not_sent_twice_before_the_cache_can_show_it() {
        let (mut deletions, pod) = (Deletions::default(), pod("n", "ds", "p"));
        deletions.deleted(&pod, at(0));
        assert_eq!(deletions.when(&pod, at(29)), DeletionTime::Sent { until: at(30) });
        assert_eq!(deletions.when(&pod, at(30)), DeletionTime::Now);
    }

    #[test]
    fn a_daemon_set_that_was_quiet_begins_anew_and_memory_is_bounded() {
        let mut deletions = Deletions::default();
        (0..20_000).for_each(|i| deletions.deleted(&pod(&format!("n{i}"), "ds", "p"), at(i)));
        assert!(deletions.count <= 2 * PRUNE_FROM);
        assert_eq!(deletions.count, deletions.last.values().map(HashMap::len).sum::<usize>());
        assert_eq!(deletions.when(&pod("n19999", "ds", "q"), at(20_000 + 3600)), DeletionTime::Now);
    }

    /// The next maintenance began with the delays of the one before.
    #[test]
    fn a_node_whose_drain_is_over_begins_anew() {
        let mut deletions = Deletions::default();
        (0..3).for_each(|n| deletions.deleted(&pod("n", "ds", &n.to_string()), at(n)));
        assert!(matches!(
            deletions.when(&pod("n", "ds", "new"), at(4)),
            DeletionTime::Later { times: 3, .. }
        ));
        deletions.over("other");
        assert!(deletions.has_returned(&pod("n", "ds", "new"), at(4)));
        deletions.over("n");
        assert_eq!((deletions.when(&pod("n", "ds", "new"), at(4)), deletions.count), (DeletionTime::Now, 0));
    }

    /// Its toleration was removed, as the message asks, and the next deletion was delayed as before.
    #[test]
    fn a_daemon_set_that_does_not_tolerate_the_taint_any_more_begins_anew() {
        let mut deletions = Deletions::default();
        let tolerates = |uid: &str| Pod { tolerates_drain_taint: true, ..pod("n", "ds", uid) };
        (0..3).for_each(|n| deletions.deleted(&tolerates(&n.to_string()), at(n)));
        assert!(matches!(deletions.when(&tolerates("new"), at(4)), DeletionTime::Later { .. }));
        assert_eq!(deletions.when(&pod("n", "ds", "new"), at(4)), DeletionTime::Now);
    }
}
