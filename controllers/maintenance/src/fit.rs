//! Node statuses within what storage takes of one object: what is only help for people goes first, and what does not fit
//! at all is counted, so that it can be told.

use drydock_api::json_len;
use drydock_api::node_maintenance::NodeMaintenanceNodeStatus;
use drydock_api::node_maintenance::validation::{MAX_NODE_STATUSES_BYTES, MAX_NODES};

/// Node statuses that the API server takes.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) statuses: Vec<NodeMaintenanceNodeStatus>,
    /// Nodes that have none, because it would not fit.
    pub(crate) left_out: usize,
}

/// Makes room: the blockers that were seen last go first (they are counted still), then all messages, then the last
/// nodes.
pub(crate) fn fit(mut statuses: Vec<NodeMaintenanceNodeStatus>) -> Fitted {
    let all = statuses.len();
    statuses.truncate(MAX_NODES);
    let mut over = excess(&statuses);
    if over > 0 {
        over = drop_blockers(&mut statuses, over);
    }
    if over > 0 {
        statuses.iter_mut().for_each(|s| s.drain_message.clear());
        over = excess(&statuses);
    }
    while over > 0
        && let Some(last) = statuses.pop()
    {
        over = over.saturating_sub(json_len(&last) + 1);
    }
    Fitted { left_out: all - statuses.len(), statuses }
}

/// Bytes beyond the limit.
fn excess(statuses: &[NodeMaintenanceNodeStatus]) -> usize {
    json_len(statuses).saturating_sub(MAX_NODE_STATUSES_BYTES)
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
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::node_maintenance::{Blocker, DrainPlanEntry, NodeReference, PodReference};
    use jiff::Timestamp;

    use super::*;

    fn status(node: usize, blockers: usize, message: usize) -> NodeMaintenanceNodeStatus {
        let blocker = |i: usize| Blocker {
            pod: PodReference { name: "p".repeat(100), ..Default::default() },
            reason: "Other".into(),
            message: "m".repeat(256),
            since_time: Timestamp::from_second(i64::try_from(node * 10 + i).unwrap()).ok(),
        };
        NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: format!("node-{node:05}") },
            drain_targets: vec![DrainPlanEntry::default(); 3],
            drain_message: "w".repeat(message),
            blockers: (0..blockers).map(blocker).collect(),
            blocked_pods: 7,
            ..Default::default()
        }
    }

    fn fitted(nodes: usize, blockers: usize, message: usize) -> Fitted {
        let fitted = fit((0..nodes).map(|n| status(n, blockers, message)).collect());
        assert_eq!(excess(&fitted.statuses), 0);
        assert_eq!(fitted.left_out + fitted.statuses.len(), nodes);
        fitted
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let all: Vec<_> = (0..100).map(|n| status(n, 10, 20)).collect();
        assert_eq!(fit(all.clone()), Fitted { statuses: all, left_out: 0 });
    }

    /// Ten blockers on each of 4,000 nodes made a status that was refused for ever, and with it everything else in it.
    #[test]
    fn the_blockers_that_were_seen_last_go_first_and_stay_counted() {
        let fitted = fitted(4000, 1, 20);
        assert_eq!(fitted.left_out, 0);
        let shown: Vec<usize> = fitted.statuses.iter().map(|s| s.blockers.len()).collect();
        assert!(shown.windows(2).all(|w| w[0] >= w[1]) && shown[0] == 1 && shown[3999] == 0);
        assert!(fitted.statuses.iter().all(|s| s.blocked_pods == 7 && !s.drain_message.is_empty()));
    }

    #[test]
    fn messages_go_before_nodes() {
        let fitted = fitted(4000, 0, 300);
        assert_eq!(fitted.left_out, 0);
        assert!(fitted.statuses.iter().all(|s| s.drain_message.is_empty() && !s.drain_targets.is_empty()));
    }

    #[test]
    fn nodes_that_do_not_fit_are_counted() {
        assert_eq!(fitted(4001, 0, 0).left_out, 1);
        let mut wide: Vec<_> = (0..4000).map(|n| status(n, 0, 0)).collect();
        wide.iter_mut().for_each(|s| s.drain_targets = vec![DrainPlanEntry::default(); 100]);
        let fitted = fit(wide);
        assert!(fitted.left_out > 3000 && excess(&fitted.statuses) == 0);
    }
}
