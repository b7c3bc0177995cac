//! Which DaemonSet pods the drain targets cover. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, PodType, Stage,
};
use drydock_runtime::{Change, Pod};

/// The maintenances in Drain whose targets on the pod's node cover this DaemonSet pod.
pub fn covering<'a>(pod: &Pod, maintenances: &'a [Arc<NodeMaintenance>]) -> Vec<&'a NodeMaintenance> {
    let draining = maintenances.iter().filter(|m| is_draining(m));
    draining.filter(|m| targets_on(m, &pod.node_name).any(|t| covers(t, pod))).map(Arc::as_ref).collect()
}

/// Nodes on which a maintenance in Drain has come to DaemonSet pods.
pub(crate) fn drained_nodes(maintenance: &NodeMaintenance) -> BTreeSet<String> {
    if !is_draining(maintenance) {
        return BTreeSet::new();
    }
    let statuses = maintenance.status.node_statuses.iter().filter(|s| names_daemon_sets(s));
    statuses.map(|s| s.node_ref.name.clone()).collect()
}

/// Whether a maintenance in Drain has come to DaemonSet pods on a node.
pub(crate) fn has_drained(maintenance: &NodeMaintenance, node: &str) -> bool {
    let mut statuses = maintenance.status.node_statuses.iter();
    is_draining(maintenance) && statuses.any(|s| s.node_ref.name == node && names_daemon_sets(s))
}

fn names_daemon_sets(status: &NodeMaintenanceNodeStatus) -> bool {
    status.drain_targets.iter().any(|t| t.pod_type == PodType::DaemonSet)
}

/// Nodes whose targets differ between the two sides of a change. Each side is read once: a status names thousands.
pub(crate) fn changed_nodes(change: &Change<NodeMaintenance>) -> BTreeSet<String> {
    let (old, new) = (by_node(change.old.as_deref()), by_node(change.new.as_deref()));
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    names.into_iter().filter(|node| old.get(node) != new.get(node)).map(str::to_owned).collect()
}

/// The targets of each node, while the maintenance drains.
fn by_node(maintenance: Option<&NodeMaintenance>) -> BTreeMap<&str, &[DrainPlanEntry]> {
    let statuses = maintenance.filter(|m| is_draining(m)).map(|m| m.status.node_statuses.as_slice());
    let statuses = statuses.unwrap_or_default().iter().filter(|s| !s.drain_targets.is_empty());
    statuses.map(|s| (s.node_ref.name.as_str(), s.drain_targets.as_slice())).collect()
}

fn is_draining(maintenance: &NodeMaintenance) -> bool {
    maintenance.spec.stage == Stage::Drain
}

fn targets_on<'a>(
    maintenance: &'a NodeMaintenance,
    node: &str,
) -> impl Iterator<Item = &'a DrainPlanEntry> + use<'a> {
    let status = maintenance.status.node_statuses.iter().find(|s| s.node_ref.name == node);
    status.into_iter().flat_map(|s| s.drain_targets.iter())
}

fn covers(target: &DrainPlanEntry, pod: &Pod) -> bool {
    target.pod_type == PodType::DaemonSet
        && pod.priority <= target.pod_priority
        && target.pod_selector.as_ref().is_none_or(|selector| selector.matches(&pod.labels))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::meta::LabelSelector;
    use drydock_api::node_maintenance::{NodeMaintenanceNodeStatus, NodeReference};
    use drydock_runtime::cache::OwnerRef;

    use super::*;

    fn target(pod_type: PodType, pod_priority: i32, app: Option<&str>) -> DrainPlanEntry {
        let selector = |app: &str| LabelSelector {
            match_labels: [("app".to_owned(), app.to_owned())].into(),
            ..Default::default()
        };
        DrainPlanEntry { pod_selector: app.map(selector), pod_priority, pod_type }
    }

    fn maintenance(stage: Stage, node: &str, targets: Vec<DrainPlanEntry>) -> Arc<NodeMaintenance> {
        let mut m = NodeMaintenance::default();
        m.metadata.name = "m".into();
        m.spec.stage = stage;
        m.status.node_statuses = vec![NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: node.into() },
            drain_targets: targets,
            ..Default::default()
        }];
        Arc::new(m)
    }

    fn pod(priority: i32, app: &str) -> Pod {
        let owner =
            OwnerRef { api_version: "apps/v1".into(), kind: "DaemonSet".into(), ..Default::default() };
        Pod {
            node_name: "n1".into(),
            priority,
            labels: [("app".to_owned(), app.to_owned())].into(),
            controller: Some(owner),
            ..Default::default()
        }
    }

    #[test]
    fn pod_is_covered_by_type_priority_and_selector_on_its_own_node() {
        let all = |t| [maintenance(Stage::Drain, "n1", vec![t])];
        let is = |pod: &Pod, m: &[Arc<NodeMaintenance>]| !covering(pod, m).is_empty();
        assert!(is(&pod(5000, "a"), &all(target(PodType::DaemonSet, 5000, None))));
        assert!(!is(&pod(5001, "a"), &all(target(PodType::DaemonSet, 5000, None))));
        assert!(!is(&pod(0, "a"), &all(target(PodType::Default, 5000, None))));
        assert!(is(&pod(0, "a"), &all(target(PodType::DaemonSet, 5000, Some("a")))));
        assert!(!is(&pod(0, "b"), &all(target(PodType::DaemonSet, 5000, Some("a")))));
        let elsewhere = [maintenance(Stage::Drain, "n2", vec![target(PodType::DaemonSet, 5000, None)])];
        assert!(!is(&pod(0, "a"), &elsewhere));
        assert!(has_drained(&elsewhere[0], "n2") && !has_drained(&elsewhere[0], "n1"));
    }

    #[test]
    fn only_the_drain_stage_covers() {
        for stage in [Stage::Idle, Stage::Cordon, Stage::Complete] {
            let m = maintenance(stage, "n1", vec![target(PodType::DaemonSet, 5000, None)]);
            assert!(drained_nodes(&m).is_empty() && !has_drained(&m, "n1"));
            assert!(covering(&pod(0, "a"), &[m]).is_empty());
        }
    }

    #[test]
    fn only_nodes_whose_targets_changed_are_looked_at() {
        let one = || vec![target(PodType::DaemonSet, 1, None)];
        let change = |old, new| Change { old, new };
        let (a, b) = (maintenance(Stage::Drain, "n1", vec![]), maintenance(Stage::Drain, "n1", one()));
        assert_eq!(changed_nodes(&change(Some(a), Some(b.clone()))).len(), 1);
        assert!(changed_nodes(&change(Some(b.clone()), Some(b.clone()))).is_empty());
        assert_eq!(changed_nodes(&change(Some(b), None)).len(), 1);
    }
}
