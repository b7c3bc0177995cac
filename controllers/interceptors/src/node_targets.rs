//! Which pods of a type the drain targets cover: an index over the maintenances in Drain, because each may name thousands
//! of nodes and the question is asked for each pod.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, PodType,
};
use drydock_api::text::first_of;
use drydock_runtime::{ObjectChange, Pod, Store};
use parking_lot::RwLock;

/// Most maintenances that a log line names.
const MAX_NAMED: usize = 5;

/// The nodes for which maintenances in Drain have drain targets of one pod type. Clones share it.
#[derive(Clone)]
pub(crate) struct TargetIndex {
    pod_type: PodType,
    nodes: Arc<RwLock<HashMap<String, NodeTargets>>>,
}

/// The maintenances in Drain that have drain targets of that type for one node, ordered by name.
#[derive(Clone, Default)]
pub(crate) struct NodeTargets(Vec<NodeTarget>);

/// A maintenance, and the index of the node's status in it.
#[derive(Clone)]
struct NodeTarget {
    maintenance: Arc<NodeMaintenance>,
    status: usize,
    pod_type: PodType,
}

impl TargetIndex {
    /// An index of no maintenances yet.
    pub(crate) fn of(pod_type: PodType) -> Self {
        Self { pod_type, nodes: Arc::default() }
    }

    /// Keeps the index current with a store. Handlers that subscribe later find each change in the index.
    pub(crate) fn follow(&self, maintenances: &Store<NodeMaintenance>) {
        let targets = self.clone();
        maintenances.subscribe(move |change| targets.take(change));
    }

    /// Which pods are being drained from a node.
    pub(crate) fn on(&self, node: &str) -> NodeTargets {
        self.nodes.read().get(node).cloned().unwrap_or_default()
    }

    /// Whether a maintenance in Drain has drain targets of the type for a node.
    pub(crate) fn has_reached(&self, node: &str) -> bool {
        self.nodes.read().contains_key(node)
    }

    fn take(&self, change: &ObjectChange<NodeMaintenance>) {
        let (mut nodes, pod_type) = (self.nodes.write(), self.pod_type);
        for old in change.old.iter() {
            for (_, status) in drained(old, pod_type) {
                let node = &status.node_ref.name;
                if nodes.get_mut(node).is_some_and(|on_node| on_node.forget(old)) {
                    nodes.remove(node);
                }
            }
        }
        for new in change.new.iter() {
            for (status, of_node) in drained(new, pod_type) {
                let target = NodeTarget { maintenance: new.clone(), status, pod_type };
                nodes.entry(of_node.node_ref.name.clone()).or_default().insert(target);
            }
        }
    }
}

impl NodeTargets {
    /// Whether no maintenance has drain targets of the type there.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the targets cover this pod, which is of the type and on the node.
    pub(crate) fn covers(&self, pod: &Pod) -> bool {
        self.0.iter().any(|target| target.covers(pod))
    }

    /// The maintenances whose targets cover it.
    pub(crate) fn covering(&self, pod: &Pod) -> impl Iterator<Item = &NodeMaintenance> {
        self.0.iter().filter(|target| target.covers(pod)).map(|target| &*target.maintenance)
    }

    /// Names of these maintenances, the first few; for the log.
    pub(crate) fn names(&self) -> Option<String> {
        let names = self.0.iter().map(|target| &target.maintenance.metadata.name);
        (!self.is_empty()).then(|| first_of(names, MAX_NAMED))
    }

    fn insert(&mut self, target: NodeTarget) {
        let name = |target: &NodeTarget| target.maintenance.metadata.name.clone();
        let at = self.0.partition_point(|other| name(other) <= name(&target));
        self.0.insert(at, target);
    }

    /// Forgets a maintenance; returns whether none is left.
    fn forget(&mut self, old: &NodeMaintenance) -> bool {
        self.0.retain(|target| target.maintenance.metadata.name != old.metadata.name);
        self.is_empty()
    }
}

impl NodeTarget {
    fn covers(&self, pod: &Pod) -> bool {
        let status = self.maintenance.status.node_statuses.get(self.status);
        let targets = status.map(|status| status.drain_targets.as_slice()).unwrap_or_default();
        targets.iter().any(|target| target.covers(self.pod_type, pod.priority, pod.known_labels()))
    }
}

/// The statuses of a maintenance in Drain that have drain targets of the type, with their indexes.
fn drained(
    maintenance: &NodeMaintenance,
    pod_type: PodType,
) -> impl Iterator<Item = (usize, &NodeMaintenanceNodeStatus)> {
    let statuses = maintenance.status.node_statuses.iter().enumerate();
    let drains_them = is_draining(maintenance) && maintenance.spec.drains(pod_type);
    let has_targets =
        move |status: &NodeMaintenanceNodeStatus| status.drain_targets.iter().any(|t| t.pod_type == pod_type);
    statuses.filter(move |(_, status)| drains_them && has_targets(status))
}

/// Nodes whose targets differ between the two sides of a change. Each side is read once: a status names thousands.
pub(crate) fn changed_nodes(change: &ObjectChange<NodeMaintenance>) -> BTreeSet<String> {
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
    maintenance.spec.stage == NodeMaintenanceStage::Drain
}

#[cfg(test)]
impl NodeTargets {
    /// Returns the targets of type DaemonSet that these maintenances show for a node.
    pub(crate) fn of(node: &str, maintenances: &[Arc<NodeMaintenance>]) -> Self {
        let targets = TargetIndex::of(PodType::DaemonSet);
        for maintenance in maintenances {
            targets.take(&ObjectChange::between(None, Some(maintenance.clone())));
        }
        targets.on(node)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::metav1::{LabelSelector, LabelSelectorRequirement};
    use drydock_api::node_maintenance::{NodeMaintenanceNodeStatus, NodeReference};
    use drydock_runtime::ObjectKey;
    use drydock_runtime::testing::of_daemon_set;

    use super::*;

    fn of(maintenance: &Arc<NodeMaintenance>) -> TargetIndex {
        let targets = TargetIndex::of(PodType::DaemonSet);
        targets.take(&ObjectChange::between(None, Some(maintenance.clone())));
        targets
    }

    fn target(pod_type: PodType, pod_priority: i32, app: Option<&str>) -> DrainPlanEntry {
        let selector = |app: &str| LabelSelector {
            match_labels: [("app".to_owned(), app.to_owned())].into(),
            ..Default::default()
        };
        DrainPlanEntry { pod_selector: app.map(selector), pod_priority, pod_type }
    }

    fn maintenance(
        stage: NodeMaintenanceStage,
        node: &str,
        targets: Vec<DrainPlanEntry>,
    ) -> Arc<NodeMaintenance> {
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
        let pod = Pod {
            node_name: "n1".into(),
            priority,
            labels: BTreeMap::from([("app".to_owned(), app.to_owned())]).into(),
            ..Default::default()
        };
        of_daemon_set("agent", "ds", pod)
    }

    #[test]
    fn pod_is_covered_by_type_priority_and_selector_on_its_own_node() {
        let all = |t| maintenance(NodeMaintenanceStage::Drain, "n1", vec![t]);
        let is = |pod: &Pod, m: Arc<NodeMaintenance>| of(&m).on("n1").covers(pod);
        assert!(is(&pod(5000, "a"), all(target(PodType::DaemonSet, 5000, None))));
        assert!(!is(&pod(5001, "a"), all(target(PodType::DaemonSet, 5000, None))));
        assert!(!is(&pod(0, "a"), all(target(PodType::Default, 5000, None))));
        assert!(is(&pod(0, "a"), all(target(PodType::DaemonSet, 5000, Some("a")))));
        assert!(!is(&pod(0, "b"), all(target(PodType::DaemonSet, 5000, Some("a")))));
        let elsewhere =
            of(&maintenance(NodeMaintenanceStage::Drain, "n2", vec![target(PodType::DaemonSet, 5000, None)]));
        assert!(!elsewhere.on("n1").covers(&pod(0, "a")));
        assert!(elsewhere.has_reached("n2") && !elsewhere.has_reached("n1"));
        assert!(!of(&all(target(PodType::Default, 5000, None))).has_reached("n1"));
    }

    /// A pod with thousands of labels was deleted in the tier of a selector that spares pods with one of these labels.
    #[test]
    fn a_target_that_depends_on_a_label_that_is_not_known_covers_no_pod() {
        let without = LabelSelectorRequirement {
            key: "keep".into(),
            operator: "DoesNotExist".into(),
            ..LabelSelectorRequirement::default()
        };
        let selector = LabelSelector { match_expressions: vec![without], ..LabelSelector::default() };
        let sparing =
            DrainPlanEntry { pod_selector: Some(selector), ..target(PodType::DaemonSet, 5000, None) };
        let targets = of(&maintenance(NodeMaintenanceStage::Drain, "n1", vec![sparing])).on("n1");
        assert!(targets.covers(&pod(0, "a")));
        assert!(!targets.covers(&Pod { labels_cut_from: Some("b".into()), ..pod(0, "a") }));
    }

    #[test]
    fn only_the_drain_stage_covers() {
        for stage in
            [NodeMaintenanceStage::Idle, NodeMaintenanceStage::Cordon, NodeMaintenanceStage::Complete]
        {
            let m = maintenance(stage, "n1", vec![target(PodType::DaemonSet, 5000, None)]);
            assert!(!of(&m).has_reached("n1"));
        }
    }

    /// Each pod was looked for in every status of every maintenance.
    #[test]
    fn the_index_says_of_each_node_what_its_maintenances_say_now() {
        let named = |name: &str, node: &str, priority| {
            let m = maintenance(
                NodeMaintenanceStage::Drain,
                node,
                vec![target(PodType::DaemonSet, priority, None)],
            );
            let mut m = Arc::unwrap_or_clone(m);
            m.metadata.name = name.into();
            m
        };
        let store = Store::default();
        let targets = TargetIndex::of(PodType::DaemonSet);
        targets.follow(&store);
        let why = |node: &str| {
            let on_node = targets.on(node);
            on_node.covering(&pod(5, "a")).map(|m| m.metadata.name.clone()).collect::<Vec<_>>()
        };
        for (m, priority) in [("b", 5), ("a", 5), ("low", 4)] {
            store.apply(named(m, "n1", priority));
        }
        assert_eq!(why("n1"), ["a", "b"]);
        store.apply(named("a", "n2", 5));
        assert_eq!((why("n1"), why("n2")), (vec!["b".to_owned()], vec!["a".to_owned()]));
        store.apply(NodeMaintenance { spec: Default::default(), ..named("a", "n2", 5) });
        for m in ["b", "low"] {
            store.delete(&ObjectKey::new("", m));
        }
        assert!(!targets.has_reached("n1") && !targets.has_reached("n2"));
        assert!(targets.nodes.read().is_empty());
    }

    /// Our controller writes no such status. If somebody else does, no DaemonSet pod is deleted because of it.
    #[test]
    fn one_that_does_not_drain_daemon_sets_covers_none_whatever_its_status_says() {
        let mut m = Arc::unwrap_or_clone(maintenance(
            NodeMaintenanceStage::Drain,
            "n1",
            vec![target(PodType::DaemonSet, 5, None)],
        ));
        assert!(!NodeTargets::of("n1", &[Arc::new(m.clone())]).is_empty());
        m.spec.last_pod_type = PodType::Default;
        assert!(NodeTargets::of("n1", &[Arc::new(m)]).is_empty());
    }

    #[test]
    fn only_nodes_whose_targets_changed_are_looked_at() {
        let one = || vec![target(PodType::DaemonSet, 1, None)];
        let change = |old, new| ObjectChange::between(old, new);
        let (a, b) = (
            maintenance(NodeMaintenanceStage::Drain, "n1", vec![]),
            maintenance(NodeMaintenanceStage::Drain, "n1", one()),
        );
        assert_eq!(changed_nodes(&change(Some(a), Some(b.clone()))).len(), 1);
        assert!(changed_nodes(&change(Some(b.clone()), Some(b.clone()))).is_empty());
        assert_eq!(changed_nodes(&change(Some(b), None)).len(), 1);
    }
}
