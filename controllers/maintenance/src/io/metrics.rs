//! Metrics of node maintenance, in the style of KEP-4563's and of kube-state-metrics.

use std::time::Duration;

use drydock_api::metav1::find_condition;
use drydock_api::node_maintenance::{
    CORDONED, DRAINED, EVICTED_PODS_UNSCHEDULABLE, NodeMaintenance, NodeMaintenanceNodeStatus,
    NodeMaintenanceStage, PODS_WILL_BE_LOST, WORKLOADS_DRAINED,
};
use drydock_runtime::metrics::series::{self, MAX_SERIES};
use drydock_runtime::metrics::{Metrics, SnapshotMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::shown;
use crate::blockers::Blockers;
use crate::world::World;

type Series = Family<Vec<(&'static str, String)>, Gauge>;

const STAGES: [NodeMaintenanceStage; 4] = [
    NodeMaintenanceStage::Idle,
    NodeMaintenanceStage::Cordon,
    NodeMaintenanceStage::Drain,
    NodeMaintenanceStage::Complete,
];
/// The conditions of a maintenance that have series; others could have any name.
const CONDITIONS: [&str; 5] =
    [CORDONED, WORKLOADS_DRAINED, DRAINED, PODS_WILL_BE_LOST, EVICTED_PODS_UNSCHEDULABLE];
const CONDITION_STATUSES: [&str; 3] = ["True", "False", "Unknown"];
/// Number of series of one maintenance, without those of its blockers.
const SERIES_PER_MAINTENANCE: usize = 5 + STAGES.len() + CONDITIONS.len() * CONDITION_STATUSES.len();
/// Most maintenances that have series. Those beyond are only counted; `shown` chooses them.
const MAX_SHOWN_MAINTENANCES: usize = MAX_SERIES / SERIES_PER_MAINTENANCE;

/// The gauges, which show the maintenances that exist.
#[derive(Clone, Debug)]
pub(crate) struct MaintenanceGauges {
    shown: ShownSeries,
    left_out: Gauge,
    blocked_left_out: Gauge,
    planning: Histogram,
}

#[derive(Clone, Debug)]
struct ShownSeries {
    pending: SnapshotMetric<Series>,
    evacuating: SnapshotMetric<Series>,
    nodes: SnapshotMetric<Series>,
    blocked: SnapshotMetric<Series>,
    created: SnapshotMetric<Series>,
    stage: SnapshotMetric<Series>,
    stage_start: SnapshotMetric<Series>,
    conditions: SnapshotMetric<Series>,
}

impl MaintenanceGauges {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let planning = Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0]);
        let name = |what: &str| format!("nodemaintenance_controller_{what}");
        let help = "Seconds that a planning of all maintenances took";
        metrics.register(&name("planning_duration_seconds"), help, planning.clone());
        let add = |name: &str, help: &str| metrics.add(name, help);
        let shown = ShownSeries {
            pending: add(
                &name("pods_pending"),
                "Pods on the maintenance's nodes that are not asked to leave yet",
            ),
            evacuating: add(
                &name("pods_evacuating"),
                "Pods on the maintenance's nodes that are asked to leave, and are still there",
            ),
            nodes: add(&name("nodes"), "Nodes in the maintenance's status"),
            blocked: add(
                &name("blocked_pods"),
                "Pods on the node that are asked to leave and are kept for this reason (for NodeUpdateRefused the node, as one)",
            ),
            created: add("nodemaintenance_created", "Unix time at which the maintenance was created"),
            stage: add(
                "nodemaintenance_stage",
                "1 for the stage in the maintenance's spec, 0 for the others",
            ),
            stage_start: add(
                "nodemaintenance_stage_start_time",
                "Unix time at which the maintenance's stage began",
            ),
            conditions: add(
                "nodemaintenance_status_condition",
                "1 for the status that the condition of the maintenance has, 0 for the others",
            ),
        };
        Self {
            shown,
            left_out: metrics.add(
                &name("maintenances_left_out"),
                "NodeMaintenances that have no series, as there are too many",
            ),
            blocked_left_out: metrics.add(
                &name("blocked_pods_series_left_out"),
                "Series of nodemaintenance_controller_blocked_pods that are not shown, as there are too many",
            ),
            planning,
        }
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.planning.observe(took.as_secs_f64());
    }

    pub(crate) fn update(&self, world: &World, blockers: &Blockers) {
        self.left_out.set(gauge(world.maintenances.len().saturating_sub(MAX_SHOWN_MAINTENANCES)));
        let mut next = NextSeries::default();
        shown::choose(&world.maintenances, MAX_SHOWN_MAINTENANCES)
            .for_each(|maintenance| next.add(maintenance));
        self.blocked_left_out.set(gauge(next.add_blocked(world, blockers)));
        self.shown.pending.replace(next.pending);
        self.shown.evacuating.replace(next.evacuating);
        self.shown.nodes.replace(next.nodes);
        self.shown.blocked.replace(next.blocked);
        self.shown.created.replace(next.created);
        self.shown.stage.replace(next.stage);
        self.shown.stage_start.replace(next.stage_start);
        self.shown.conditions.replace(next.conditions);
    }
}

/// The series of the next scrape.
#[derive(Default)]
struct NextSeries {
    pending: Series,
    evacuating: Series,
    nodes: Series,
    blocked: Series,
    created: Series,
    stage: Series,
    stage_start: Series,
    conditions: Series,
}

impl NextSeries {
    fn add(&mut self, maintenance: &NodeMaintenance) {
        let status = &maintenance.status;
        let label = || ("nodemaintenance", maintenance.metadata.name.clone());
        let set = |series: &Series, value| {
            series.get_or_create(&vec![label()]).set(value);
        };
        let sum = |count: fn(&NodeMaintenanceNodeStatus) -> i32| {
            status.node_statuses.iter().map(|s| i64::from(count(s))).sum::<i64>()
        };
        set(&self.pending, sum(|s| s.pods_pending_evacuation));
        set(&self.evacuating, sum(|s| s.pods_evacuating));
        set(&self.nodes, gauge(status.node_statuses.len()));
        if let Some(created) = maintenance.metadata.creation_timestamp {
            set(&self.created, created.as_second());
        }
        let now = maintenance.spec.stage;
        for stage in STAGES {
            let labels = vec![label(), ("stage", stage.as_str().to_owned())];
            self.stage.get_or_create(&labels).set(i64::from(stage == now));
        }
        if let Some(started) = status.started(now) {
            let labels = vec![label(), ("stage", now.as_str().to_owned())];
            self.stage_start.get_or_create(&labels).set(started.as_second());
        }
        let conditions = CONDITIONS.iter().filter_map(|type_| find_condition(&status.conditions, type_));
        for condition in conditions {
            for status in CONDITION_STATUSES {
                let (condition_, status_) = (condition.type_.clone(), status.to_ascii_lowercase());
                let labels = vec![label(), ("condition", condition_), ("status", status_)];
                self.conditions.get_or_create(&labels).set(i64::from(condition.status == status));
            }
        }
    }

    /// Adds the series of blockers; if there are too many, each creator gets about as many, and of those each maintenance.
    /// Returns how many are left out.
    fn add_blocked<'w>(&mut self, world: &'w World, blockers: &'w Blockers) -> usize {
        let drains = world.maintenances.iter().filter(|m| m.spec.stage == NodeMaintenanceStage::Drain);
        let of_one = |m: &'w NodeMaintenance| {
            let nodes = m.status.node_statuses.iter().filter(|s| s.blocked_pods > 0);
            let (maintenance, creator) = (m.metadata.name.as_str(), m.status.creator.as_str());
            let series = nodes.flat_map(move |s| {
                let node = s.node_ref.name.as_str();
                let by_reason = blockers.by_reason(node, m.spec.last_pod_type).into_iter();
                by_reason.map(move |(reason, count)| (node, reason, count))
            });
            series.enumerate().map(move |(place, (node, reason, count))| BlockedSeries {
                creator,
                maintenance,
                place,
                node,
                reason,
                count,
            })
        };
        let (shown, left_out) = choose_blocked(drains.flat_map(|m| of_one(m)).collect(), MAX_SERIES);
        for series in shown {
            let BlockedSeries { maintenance, node, reason, count, .. } = series;
            let of = [("nodemaintenance", maintenance), ("node", node), ("reason", reason)];
            let labels = of.map(|(label, value)| (label, value.to_owned())).to_vec();
            self.blocked.get_or_create(&labels).set(gauge(count));
        }
        left_out
    }
}

/// A series of the pods of one node that one reason keeps.
#[derive(Clone, Copy, Debug)]
struct BlockedSeries<'w> {
    creator: &'w str,
    maintenance: &'w str,
    /// Its place among those of its maintenance.
    place: usize,
    node: &'w str,
    reason: &'w str,
    count: usize,
}

/// Returns at most `most` of them, of each creator about as many, and of those of each maintenance; and how many are left out.
fn choose_blocked(mut all: Vec<BlockedSeries<'_>>, most: usize) -> (Vec<BlockedSeries<'_>>, usize) {
    let left_out = all.len().saturating_sub(most);
    if left_out == 0 {
        return (all, 0);
    }
    // The first of each maintenance, then the second of each.
    all.sort_by_key(|series| (series.creator, series.place, series.maintenance));
    let mut shown = Vec::with_capacity(most);
    series::each(all.into_iter().map(|series| (series.creator, series)), |series| {
        if shown.len() < most {
            shown.push(series);
        }
        1
    });
    (shown, left_out)
}

fn gauge(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each maintenance had as many: a creator of a thousand had a thousand times the share of one with a single maintenance.
    #[test]
    fn series_of_blocked_pods_are_shared_by_creators_and_then_by_maintenances() {
        let series = |creator, maintenance, place| BlockedSeries {
            creator,
            maintenance,
            place,
            node: "n",
            reason: "r",
            count: 1,
        };
        let of_one = |creator, maintenance| (0..4).map(move |place| series(creator, maintenance, place));
        let loud = ["a", "b", "c"].into_iter().flat_map(|maintenance| of_one("loud", maintenance));
        let all: Vec<_> = loud.chain(of_one("quiet", "z")).collect();
        let (shown, left_out) = choose_blocked(all.clone(), 8);
        let count = |name: &str| shown.iter().filter(|series| series.maintenance == name).count();
        assert_eq!((["a", "b", "c", "z"].map(count), left_out), ([2, 1, 1, 4], 8));
        assert_eq!(choose_blocked(all, 16).1, 0);
    }
}
