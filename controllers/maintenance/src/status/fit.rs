//! Fits node statuses into the size of an object that storage takes. What only helps people is dropped first;
//! nodes that do not fit at all are counted, so that an event can say so.

use std::collections::{HashMap, HashSet};

use drydock_api::node_maintenance::limits::{
    MAX_DRAIN_PLAN, MAX_NODE_STATUSES_BYTES, MAX_NODES, MAX_OBJECT_BYTES,
};
use drydock_api::node_maintenance::{DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, PodType};
use drydock_machinery::object::json_len;

/// Bytes that are kept for the rest of a status, and for what its write adds to the managed fields.
const REST_OF_STATUS_BYTES: usize = 32 * 1024;

/// Node statuses that fit, and those that do not.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) statuses: Vec<NodeMaintenanceNodeStatus>,
    /// How many nodes have no status, because it would not fit.
    pub(crate) left_out: usize,
    /// Names of the nodes that were left out in this step.
    pub(crate) dropped: Vec<String>,
    /// Whether the targets are those of the stored status, because higher ones would not fit: the drain stands still.
    pub(crate) held: bool,
    /// Whether all maintenances together leave less room than the object has.
    pub(crate) all_are_full: bool,
}

impl Fitted {
    /// Adds statuses as long as they fit. They only help people.
    pub(crate) fn add(&mut self, more: impl Iterator<Item = NodeMaintenanceNodeStatus>, max_bytes: usize) {
        let mut size = json_len(&self.statuses);
        for status in more {
            size += json_len(&status) + 1;
            if self.statuses.len() >= MAX_NODES || size > max_bytes {
                break;
            }
            self.statuses.push(status);
        }
        self.statuses.sort_by(|a, b| a.node_ref.cmp(&b.node_ref));
    }
}

/// Bytes that the node statuses of a maintenance may have, beside the rest of the object, of which `turns` bytes tell of
/// turns.
pub(crate) fn max_bytes(maintenance: &NodeMaintenance, turns: usize) -> usize {
    let kept = json_len(&maintenance.metadata) + json_len(&maintenance.spec) + turns;
    let rest = kept + maintenance.metadata.trimmed_bytes + REST_OF_STATUS_BYTES;
    MAX_NODE_STATUSES_BYTES.min(MAX_OBJECT_BYTES.saturating_sub(rest))
}

/// Drops what does not fit: the counts by entry go first, then the youngest blockers (they are still counted), then all
/// messages, then targets that another one covers, then nodes that the stored status (`old`) does not have.
/// Recorded targets are never lowered, as the plan's progress stands in them: where higher ones do not fit,
/// the stored ones stay.
pub(crate) fn fit(
    mut statuses: Vec<NodeMaintenanceNodeStatus>,
    old: &HashMap<&str, &NodeMaintenanceNodeStatus>,
    max_bytes: usize,
) -> Fitted {
    let all: Vec<String> = statuses.iter().map(|status| status.node_ref.name.clone()).collect();
    let is_new = |s: &NodeMaintenanceNodeStatus| !old.contains_key(s.node_ref.name.as_str());
    statuses.iter_mut().filter(|s| has_too_many(s)).for_each(drop_covered);
    statuses.retain(|s| !(has_too_many(s) && is_new(s)));
    let mut over = excess(&statuses, max_bytes);
    if over > 0 {
        statuses.iter_mut().for_each(|s| s.left.clear());
        over = excess(&statuses, max_bytes);
    }
    if over > 0 {
        over = drop_blockers(&mut statuses, over);
    }
    if over > 0 {
        statuses.iter_mut().for_each(|s| s.drain_message.clear());
        over = excess(&statuses, max_bytes);
    }
    if over > 0 {
        statuses.iter_mut().for_each(drop_covered);
        over = excess(&statuses, max_bytes);
    }
    while over > 0
        && let Some(at) = statuses.iter().rposition(is_new)
    {
        over = over.saturating_sub(json_len(&statuses.remove(at)) + 1);
    }
    let held = over > 0 || statuses.iter().any(has_too_many);
    if held {
        hold(&mut statuses, old, max_bytes);
    }
    let kept: HashSet<&str> = statuses.iter().map(|status| status.node_ref.name.as_str()).collect();
    let dropped: Vec<String> = all.into_iter().filter(|name| !kept.contains(name.as_str())).collect();
    Fitted { left_out: dropped.len(), dropped, statuses, held, all_are_full: false }
}

/// Puts the stored targets back. If they do not fit beside the present counts, which have grown, also puts the
/// stored counts back.
fn hold(
    statuses: &mut [NodeMaintenanceNodeStatus],
    old: &HashMap<&str, &NodeMaintenanceNodeStatus>,
    max_bytes: usize,
) {
    let stored = |status: &NodeMaintenanceNodeStatus| old.get(status.node_ref.name.as_str()).copied();
    for status in statuses.iter_mut() {
        if let Some(old) = stored(status) {
            status.drain_targets.clone_from(&old.drain_targets);
        }
    }
    if excess(statuses, max_bytes) == 0 {
        return;
    }
    for status in statuses {
        if let Some(old) = stored(status) {
            status.pods_pending_evacuation = old.pods_pending_evacuation;
            status.pods_evacuating = old.pods_evacuating;
            status.blocked_pods = old.blocked_pods;
        }
    }
}

/// Drops targets with a selector that one without a selector covers. Nothing is lost: the plan adds them again.
fn drop_covered(status: &mut NodeMaintenanceNodeStatus) {
    let all = status.drain_targets.iter().filter(|target| target.pod_selector.is_none());
    let wide: Vec<(PodType, i32)> = all.map(|target| (target.pod_type, target.pod_priority)).collect();
    let covers = |target: &DrainPlanEntry, (pod_type, priority): &(PodType, i32)| {
        *pod_type == target.pod_type && *priority >= target.pod_priority
    };
    status
        .drain_targets
        .retain(|target| target.pod_selector.is_none() || !wide.iter().any(|wide| covers(target, wide)));
}

/// Bytes beyond the room there is.
fn excess(statuses: &[NodeMaintenanceNodeStatus], max_bytes: usize) -> usize {
    json_len(statuses).saturating_sub(max_bytes)
}

/// Whether a node has more targets than the API server takes: those of several plans may come together.
fn has_too_many(status: &NodeMaintenanceNodeStatus) -> bool {
    status.drain_targets.len() > MAX_DRAIN_PLAN
}

/// Drops blockers until `over` bytes are gone; returns what is still over.
fn drop_blockers(statuses: &mut [NodeMaintenanceNodeStatus], mut over: usize) -> usize {
    let each = statuses.iter().enumerate();
    let mut youngest_first: Vec<_> =
        each.flat_map(|(node, s)| s.blockers.iter().map(move |b| (b.since_time, node))).collect();
    youngest_first.sort_unstable_by(|a, b| b.cmp(a));
    for (_, node) in youngest_first {
        if over == 0 {
            break;
        }
        // A node's blockers are ordered by time.
        if let Some(dropped) = statuses.get_mut(node).and_then(|s| s.blockers.pop()) {
            over = over.saturating_sub(json_len(&dropped));
        }
    }
    over
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
