//! The state that the taint and the deletion of pods share: which pods are to leave which nodes, which were
//! deleted, and which nodes wait for their taint.

use drydock_api::node_maintenance::PodType;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{ControllerContext, NodeWriteRefusals};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::deletions::Deletions;
use super::taint_waits::TaintWaits;
use crate::node_targets::TargetIndex;

/// State of the interceptor, which the workers of its two queues share.
pub(super) struct DaemonSetState {
    /// The last deletions, which show the DaemonSets that put pods back.
    pub(super) deletions: Mutex<Deletions>,
    /// Which pods are being drained from which nodes.
    pub(super) targets: TargetIndex,
    /// Nodes whose taint is to be decided.
    pub(super) queue: WorkQueue<String>,
    /// Nodes whose taints cannot be changed.
    pub(super) refusals: NodeWriteRefusals,
    /// Nodes that need the taint and do not have it yet.
    pub(super) waits: TaintWaits,
}

/// Why a node does not have the taint yet that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingTaint {
    /// Since when the node needs it.
    pub(super) since: Timestamp,
    /// The words with which it was refused.
    pub(super) refused: Option<String>,
    /// How often others have removed it, and since when; none unless it was more than once.
    pub(super) taken: Option<(usize, Timestamp)>,
}

/// How long the cache may take to show the taint before a report says that the pod waits for it.
pub(super) const TAINT_SHOWS_WITHIN: SignedDuration = SignedDuration::from_secs(10);

impl PendingTaint {
    /// When a report says that the pod waits for the taint: at once if somebody keeps the taint away.
    pub(super) fn reported_at(&self) -> Timestamp {
        if self.refused.is_some() || self.taken.is_some() {
            return self.since;
        }
        self.since.checked_add(TAINT_SHOWS_WITHIN).unwrap_or(Timestamp::MAX)
    }
}

impl DaemonSetState {
    pub(super) fn new(context: &ControllerContext) -> Self {
        Self {
            deletions: Mutex::default(),
            targets: TargetIndex::of(PodType::DaemonSet),
            queue: WorkQueue::new("daemonset_taint", &context.metrics, ExponentialBackoff::WRITES),
            refusals: NodeWriteRefusals::default(),
            waits: TaintWaits::default(),
        }
    }

    /// Why a node does not have the taint yet; none if it is not known to need it.
    pub(super) fn pending_taint(&self, node: &str) -> Option<PendingTaint> {
        let (since, taken) = self.waits.of(node)?;
        Some(PendingTaint { since, refused: self.refusals.of(node), taken })
    }

    /// Forgets why a node waits for its taint, because it has the taint or does not need it.
    pub(super) fn over(&self, node: &str, is_draining: bool) {
        self.refusals.forget(node);
        self.waits.over(node, is_draining);
        if !is_draining {
            self.deletions.lock().over(node);
        }
    }
}
