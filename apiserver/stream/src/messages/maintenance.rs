//! A NodeMaintenance as subscribers see it: its own fields, and sums over its nodes.

use drydock_api::metav1::{find_condition, is_condition_true};
use drydock_api::node_maintenance::{
    self, CORDONED, DRAINED, MAX_BLOCKERS, NodeMaintenance, NodeMaintenanceNodeStatus, WORKLOADS_DRAINED,
};
use drydock_api::text::number;
use drydock_proto::status::v1alpha1::{Blocker, Maintenance, Outcomes, PlanEntry};
use jiff::Timestamp;

use super::plan;
use super::values::{self, count, timestamp};
use crate::rate::DrainRate;

/// Returns the message of a maintenance. `drain_rate` comes from its earlier states, which the object does not contain.
pub fn message(object: &NodeMaintenance, drain_rate: DrainRate) -> Maintenance {
    let (spec, status) = (&object.spec, &object.status);
    let nodes = &status.node_statuses;
    let sum = |of: fn(&NodeMaintenanceNodeStatus) -> i32| count(nodes.iter().map(of));
    let is_true = |condition| is_condition_true(&status.conditions, condition);
    let (current_entry, current_entry_index) = current_entry(object).unzip();
    Maintenance {
        name: object.metadata.name.clone(),
        uid: object.metadata.uid.clone(),
        reason: values::text(&spec.reason),
        stage: values::stage(spec.stage).into(),
        create_time: object.metadata.creation_timestamp.map(timestamp),
        stage_start_time: status.started(spec.stage).map(timestamp),
        last_pod_type: values::pod_type(spec.last_pod_type).into(),
        current_entry,
        current_entry_index: current_entry_index.unwrap_or_default(),
        entries: number(spec.drain_plan.len()),
        nodes: number(nodes.len()),
        drained_nodes: status.drained_nodes,
        undrained_gone_nodes: status.gone_nodes.undrained,
        left: plan::sums(&spec.drain_plan, nodes.iter().flat_map(|node| &node.left)),
        pods_pending: sum(|node| node.pods_pending_evacuation),
        pods_evicting: sum(|node| node.pods_evacuating),
        blocked: sum(|node| node.blocked_pods),
        blockers: oldest_blockers(nodes),
        outcomes: Some(outcomes(&status.outcomes)),
        cordoned: is_true(CORDONED),
        drained: is_true(DRAINED),
        workloads_drained: is_true(WORKLOADS_DRAINED),
        message: find_condition(&status.conditions, DRAINED)
            .map_or_else(String::new, |c| values::text(&c.message)),
        evictions_per_minute: drain_rate.evictions_per_minute,
        estimated_finish_time: drain_rate.finish_time.map(timestamp),
    }
}

/// Returns the plan entry whose pods are evicted now, and its index; `None` outside the stage Drain.
fn current_entry(object: &NodeMaintenance) -> Option<(PlanEntry, i32)> {
    let index = object.status.drain_plan_position?;
    let entry = object.spec.drain_plan.get(usize::try_from(index).ok()?)?;
    is_draining(object).then(|| (plan::entry(entry), index))
}

/// Whether the maintenance evicts pods.
pub fn is_draining(object: &NodeMaintenance) -> bool {
    object.spec.stage == node_maintenance::NodeMaintenanceStage::Drain
}

fn outcomes(outcomes: &node_maintenance::NodeMaintenanceOutcomes) -> Outcomes {
    Outcomes {
        evicted: outcomes.evicted,
        canceled: outcomes.canceled,
        passed_over: outcomes.passed_over,
        returned: outcomes.returned,
    }
}

/// Returns the oldest blockers of all nodes; those without a time come last.
fn oldest_blockers(nodes: &[NodeMaintenanceNodeStatus]) -> Vec<Blocker> {
    let mut all: Vec<_> = nodes
        .iter()
        .flat_map(|node| node.blockers.iter().map(move |blocker| (node.node_ref.name.as_str(), blocker)))
        .collect();
    all.sort_by_key(|(_, blocker)| blocker.since_time.unwrap_or(Timestamp::MAX));
    all.into_iter().take(MAX_BLOCKERS).map(|(node, found)| blocker(node, found)).collect()
}

/// Returns the message of a blocker on a node.
pub(super) fn blocker(node: &str, blocker: &node_maintenance::Blocker) -> Blocker {
    Blocker {
        node: values::name(node),
        pod_namespace: values::name(&blocker.pod.namespace),
        pod_name: values::name(&blocker.pod.name),
        pod_uid: values::name(&blocker.pod.uid),
        reason: values::block_reason(&blocker.reason).into(),
        message: values::text(&blocker.message),
        since_time: blocker.since_time.map(timestamp),
    }
}

#[cfg(test)]
mod tests {
    use drydock_proto::status::v1alpha1::{BlockReason, PodType, Stage};
    use serde_json::json;

    use super::*;

    fn draining() -> NodeMaintenance {
        let blocker = |name: &str, since: &str| {
            json!({
                "pod": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")},
                "reason": "PodDisruptionBudget", "message": "PodDisruptionBudget web allows 0 disruptions",
                "sinceTime": since,
            })
        };
        let object = json!({
            "metadata": {"name": "rack-7", "uid": "u7", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "stage": "Drain", "reason": "firmware", "lastPodType": "DaemonSet",
                "drainPlan": [
                    {"podType": "Default", "podPriority": 1000},
                    {"podType": "DaemonSet", "podPriority": 2000000000},
                ],
            },
            "status": {
                "drainPlanPosition": 0, "drainedNodes": 1,
                "stageStatuses": [{"name": "Drain", "startTimestamp": "2026-01-01T00:01:00Z"}],
                "outcomes": {"evicted": 4, "canceled": 1, "passedOver": 2, "returned": 3},
                "goneNodes": {"drained": 1, "undrained": 2},
                "conditions": [
                    {"type": "Cordoned", "status": "True"},
                    {"type": "Drained", "status": "False", "message": "3 pods are left"},
                ],
                "nodeStatuses": [
                    {"nodeRef": {"name": "n1"}, "podsPendingEvacuation": 1, "podsEvacuating": 2, "blockedPods": 1,
                     "blockers": [blocker("late", "2026-01-01T00:03:00Z")],
                     "left": [{"podType": "Default", "priority": 1000, "count": 3}]},
                    {"nodeRef": {"name": "n2"}, "blockedPods": 1, "blockers": [blocker("early", "2026-01-01T00:02:00Z")]},
                ],
            },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_drain_is_told_with_sums_over_its_nodes() {
        let told = message(&draining(), DrainRate::default());
        assert_eq!(
            (told.name.as_str(), told.uid.as_str(), told.reason.as_str()),
            ("rack-7", "u7", "firmware")
        );
        assert_eq!((told.stage(), told.last_pod_type()), (Stage::Drain, PodType::DaemonSet));
        assert_eq!(told.stage_start_time.unwrap().seconds - told.create_time.unwrap().seconds, 60);
        assert_eq!(
            (told.current_entry.unwrap().priority, told.current_entry_index, told.entries),
            (1000, 0, 2)
        );
        assert_eq!((told.nodes, told.drained_nodes, told.undrained_gone_nodes), (2, 1, 2));
        assert_eq!((told.pods_pending, told.pods_evicting, told.blocked), (1, 2, 2));
        assert_eq!((told.left.len(), told.left[0].count), (1, 3));
        let names: Vec<_> = told.blockers.iter().map(|b| (b.node.as_str(), b.pod_name.as_str())).collect();
        assert_eq!(names, [("n2", "early"), ("n1", "late")]);
        assert_eq!(told.blockers[0].reason(), BlockReason::PodDisruptionBudget);
        assert_eq!(told.outcomes.unwrap(), Outcomes { evicted: 4, canceled: 1, passed_over: 2, returned: 3 });
        assert_eq!((told.cordoned, told.drained, told.workloads_drained), (true, false, false));
        assert_eq!(told.message, "3 pods are left");
        assert_eq!((told.evictions_per_minute, told.estimated_finish_time), (None, None));
    }

    #[test]
    fn there_is_no_current_entry_outside_the_stage_drain() {
        let mut object = draining();
        object.spec.stage = node_maintenance::NodeMaintenanceStage::Complete;
        assert_eq!(message(&object, DrainRate::default()).current_entry, None);
        object.spec.stage = node_maintenance::NodeMaintenanceStage::Drain;
        object.status.drain_plan_position = Some(7);
        assert_eq!(
            message(&object, DrainRate::default()).current_entry,
            None,
            "an index that the plan does not have"
        );
    }

    #[test]
    fn a_maintenance_without_a_status_is_told() {
        let told = message(&NodeMaintenance::default(), DrainRate::default());
        assert_eq!((told.nodes, told.blocked, told.create_time), (0, 0, None));
    }
}
