//! Helpers with which the plan's tests are written.

use std::collections::BTreeMap;

use drydock_api::metav1::LabelSelector;
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};
use drydock_plan::{CountedPod, DrainingMaintenance, FastForward, MaintenanceOutcome, PlanOutcome};

pub use drydock_api::node_maintenance::PodType::{DaemonSet, Default as Plain, Static};

pub fn entry(pod_type: PodType, priority: i32) -> DrainPlanEntry {
    DrainPlanEntry { pod_selector: None, pod_priority: priority, pod_type }
}

pub fn app(pod_type: PodType, priority: i32, app: &str) -> DrainPlanEntry {
    let match_labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    let pod_selector = Some(LabelSelector { match_labels, match_expressions: vec![] });
    DrainPlanEntry { pod_selector, pod_priority: priority, pod_type }
}

pub fn maintenance(name: &str, created: i64, plan: &[DrainPlanEntry], nodes: &[&str]) -> DrainingMaintenance {
    DrainingMaintenance {
        name: name.to_owned(),
        started: created,
        created,
        plan: plan.to_vec(),
        last_pod_type: Static,
        nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
        position: None,
        recorded: BTreeMap::new(),
    }
}

/// A pod of a test, which stays until it is removed.
#[derive(Clone, Debug, PartialEq)]
pub struct TestPod {
    pub node: String,
    pub pod_type: PodType,
    pub priority: i32,
    pub labels: BTreeMap<String, String>,
}

pub fn pod(node: &str, pod_type: PodType, priority: i32) -> TestPod {
    TestPod { node: node.to_owned(), pod_type, priority, labels: BTreeMap::new() }
}

pub fn app_pod(node: &str, pod_type: PodType, priority: i32, app: &str) -> TestPod {
    let labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    TestPod { labels, ..pod(node, pod_type, priority) }
}

/// Plans, and writes the outcome into the statuses.
pub fn plan(maintenances: &mut [DrainingMaintenance], pods: &[TestPod]) -> PlanOutcome {
    let outcome = look(maintenances, pods);
    for (maintenance, outcome) in maintenances.iter_mut().zip(&outcome.maintenances) {
        record(maintenance, outcome);
    }
    outcome
}

/// Plans, and writes nothing.
pub fn look(maintenances: &[DrainingMaintenance], pods: &[TestPod]) -> PlanOutcome {
    let pods = pods.iter();
    let pods: Vec<CountedPod<'_>> = pods
        .map(|p| CountedPod {
            node: &p.node,
            pod_type: p.pod_type,
            priority: p.priority,
            labels: (&p.labels).into(),
        })
        .collect();
    drydock_plan::plan(maintenances, &BTreeMap::new(), &pods)
}

/// Writes an outcome into a maintenance, as a status would.
pub fn record(maintenance: &mut DrainingMaintenance, outcome: &MaintenanceOutcome) {
    maintenance.position = Some(outcome.cursor);
    let shown = outcome.nodes.iter().map(|(name, node)| (name.clone(), node.drain_targets.clone()));
    maintenance.recorded = shown.collect();
}

/// Whom a maintenance was fast-forwarded by, and whether that one is older.
pub fn other(told: &FastForward) -> (&str, bool) {
    told.other.as_ref().map(|other| (other.name.as_str(), other.is_older)).unwrap_or_default()
}

/// Message and targets that a maintenance shows for a node.
pub fn shown(outcome: &PlanOutcome, maintenance: usize, node: &str) -> (String, Vec<DrainPlanEntry>) {
    let node = &outcome.maintenances[maintenance].nodes[node];
    (node.drain_message.clone(), node.drain_targets.clone())
}

/// Removes the targeted pods of a node (of all nodes if none is named).
pub fn evict(outcome: &PlanOutcome, pods: &mut Vec<TestPod>, node: Option<&str>) {
    let mut targeted = outcome.targeted.iter();
    pods.retain(|p| !targeted.next().unwrap() || node.is_some_and(|n| n != p.node));
}
