//! A node as subscribers see it: the progress of each maintenance on it, and counts of the evictions of its pods.

use drydock_api::node_maintenance::{MAX_BLOCKERS, NodeMaintenance, NodeMaintenanceNodeStatus};
use drydock_api::text::number;
use drydock_proto::status::v1alpha1::{EvictionCounts, Node, NodeProgress};
use jiff::Timestamp;

use super::values::{self, timestamp};
use super::{maintenance, plan};

/// Returns the message of a node. `progress` is ordered by the age of the maintenances.
pub fn message<'p>(
    name: &str,
    progress: impl ExactSizeIterator<Item = &'p NodeProgress>,
    evictions: EvictionCounts,
    expected_finish_time: Option<Timestamp>,
) -> Node {
    Node {
        name: name.to_owned(),
        maintenances: number(progress.len()),
        progress: values::first(progress.cloned(), values::PROGRESS_MAX),
        evictions: Some(evictions),
        expected_finish_time: expected_finish_time.map(timestamp),
    }
}

/// Returns the progress of a maintenance on one of its nodes.
pub fn progress(object: &NodeMaintenance, status: &NodeMaintenanceNodeStatus) -> NodeProgress {
    let node = &status.node_ref.name;
    let blockers = status.blockers.iter().take(MAX_BLOCKERS);
    NodeProgress {
        maintenance: object.metadata.name.clone(),
        stage: values::stage(object.spec.stage).into(),
        message: values::text(&status.drain_message),
        pods_pending: status.pods_pending_evacuation,
        pods_evicting: status.pods_evacuating,
        blocked: status.blocked_pods,
        blockers: blockers.map(|blocker| maintenance::blocker(node, blocker)).collect(),
        left: plan::left(&status.left),
    }
}

#[cfg(test)]
mod tests {
    use drydock_proto::status::v1alpha1::{BlockReason, Stage};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_maintenance_tells_of_its_node_what_its_status_has() {
        let object = json!({
            "metadata": {"name": "rack-7"}, "spec": {"stage": "Drain"},
            "status": {"nodeStatuses": [{
                "nodeRef": {"name": "n1"}, "drainMessage": "Evacuating", "podsPendingEvacuation": 1,
                "podsEvacuating": 2, "blockedPods": 1,
                "blockers": [{"pod": {"namespace": "", "name": "", "uid": ""}, "reason": "NodeUpdateRefused"}],
                "left": [{"podType": "Default", "priority": 7, "count": 3}],
            }]},
        });
        let object: NodeMaintenance = serde_json::from_value(object).unwrap();
        let told = progress(&object, &object.status.node_statuses[0]);
        assert_eq!(
            (told.maintenance.as_str(), told.stage(), told.message.as_str()),
            ("rack-7", Stage::Drain, "Evacuating")
        );
        assert_eq!((told.pods_pending, told.pods_evicting, told.blocked), (1, 2, 1));
        assert_eq!(
            (told.blockers[0].node.as_str(), told.blockers[0].reason()),
            ("n1", BlockReason::NodeUpdateRefused)
        );
        assert_eq!((told.left[0].count, told.left[0].entry.as_ref().unwrap().priority), (3, 7));
    }
}
