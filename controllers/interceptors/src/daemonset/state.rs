//! What the taint and the deletion of pods know together: which pods are to leave which nodes, which were deleted, and
//! which nodes wait for their taint.

use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{ControllerContext, NodeWriteRefusals};
use jiff::Timestamp;
use parking_lot::Mutex;

use super::deletions::Deletions;
use super::taint_waits::TaintWaits;
use super::targets::DaemonSetTargets;

/// State of the interceptor, for the two queues that work on it.
pub(super) struct DaemonSetState {
    /// Which pods were deleted, and which DaemonSets put new ones there.
    pub(super) deletions: Mutex<Deletions>,
    /// Which pods are being drained from which nodes.
    pub(super) targets: DaemonSetTargets,
    /// Nodes whose taint is looked at.
    pub(super) queue: WorkQueue<String>,
    /// Nodes whose taints cannot be changed.
    pub(super) refusals: NodeWriteRefusals,
    /// Nodes whose taint does not stand yet.
    pub(super) waits: TaintWaits,
}

/// Why a taint that is wanted does not stand yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingTaint {
    /// Since when it is wanted.
    pub(super) since: Timestamp,
    /// The words with which it was refused.
    pub(super) refused: Option<String>,
    /// How often others took it away since when, if they do so again and again.
    pub(super) taken: Option<(usize, Timestamp)>,
}

impl DaemonSetState {
    pub(super) fn new(context: &ControllerContext) -> Self {
        Self {
            deletions: Mutex::default(),
            targets: DaemonSetTargets::default(),
            queue: WorkQueue::new("daemonset_taint", &context.metrics, ExponentialBackoff::WRITES),
            refusals: NodeWriteRefusals::default(),
            waits: TaintWaits::default(),
        }
    }

    /// Why the taint of a node does not stand; none if it has not been decided yet whether it is wanted.
    pub(super) fn awaited(&self, node: &str) -> Option<PendingTaint> {
        let (since, taken) = self.waits.of(node)?;
        Some(PendingTaint { since, refused: self.refusals.of(node), taken })
    }

    /// The taint of a node is wanted since then.
    #[cfg(test)]
    pub(super) fn wanted(&self, node: &str, since: Timestamp) {
        self.waits.wanted(node, since);
    }

    /// The taint of a node stands, or is not wanted.
    pub(super) fn over(&self, node: &str, is_draining: bool) {
        self.refusals.forget(node);
        self.waits.over(node, is_draining);
        if !is_draining {
            self.deletions.lock().over(node);
        }
    }
}
