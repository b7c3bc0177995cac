//! Metrics of node maintenance, in the style of KEP-4563's.

use std::time::Duration;

use drydock_api::node_maintenance::NodeMaintenanceNodeStatus;
use drydock_runtime::metrics::fair::SERIES;
use drydock_runtime::metrics::{Metrics, Shown};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use crate::world::World;

type PerMaintenance = Family<Vec<(&'static str, String)>, Gauge>;
type Shows = Shown<PerMaintenance>;

/// Maintenances that have series, three each: those beyond, the last by name, are counted.
const MAINTENANCES: usize = SERIES / 3;

/// The gauges, one series a maintenance while it exists.
#[derive(Clone, Debug)]
pub(crate) struct Gauges {
    pending: Shows,
    evacuating: Shows,
    nodes: Shows,
    left_out: Gauge,
    blocked: Gauge,
    planning: Histogram,
}

impl Gauges {
    pub(crate) fn register(metrics: &Metrics) -> Self {
        let planning = Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0]);
        let name = |what: &str| format!("nodemaintenance_controller_{what}");
        let help = "Time that a planning of all maintenances took";
        metrics.register(&name("planning_duration_seconds"), help, planning.clone());
        Self {
            pending: metrics.add(&name("pods_pending"), "Pods that have not started evacuation"),
            evacuating: metrics.add(&name("pods_evacuating"), "Pods that have started evacuation"),
            nodes: metrics.add(&name("nodes"), "Nodes of the maintenance"),
            left_out: metrics.add(
                &name("maintenances_left_out"),
                "NodeMaintenances that have no series, as there are too many",
            ),
            blocked: metrics.add(
                &name("blocked_pods"),
                "Blockers: targeted pods that something keeps, and nodes that cannot be made unschedulable",
            ),
            planning,
        }
    }

    pub(crate) fn planned(&self, took: Duration) {
        self.planning.observe(took.as_secs_f64());
    }

    pub(crate) fn look(&self, world: &World, blocked: usize) {
        self.blocked.set(i64::try_from(blocked).unwrap_or(i64::MAX));
        let [pending, evacuating, of_nodes] = <[PerMaintenance; 3]>::default();
        let left_out = world.maintenances.len().saturating_sub(MAINTENANCES);
        self.left_out.set(i64::try_from(left_out).unwrap_or(i64::MAX));
        for maintenance in world.maintenances.iter().take(MAINTENANCES) {
            let labels = vec![("name", maintenance.metadata.name.clone())];
            let statuses = &maintenance.status.node_statuses;
            let sum = |count: fn(&NodeMaintenanceNodeStatus) -> i32| {
                statuses.iter().map(|s| i64::from(count(s))).sum::<i64>()
            };
            pending.get_or_create(&labels).set(sum(|s| s.pods_pending_evacuation));
            evacuating.get_or_create(&labels).set(sum(|s| s.pods_evacuating));
            let nodes = i64::try_from(statuses.len()).unwrap_or(i64::MAX);
            of_nodes.get_or_create(&labels).set(nodes);
        }
        self.pending.replace(pending);
        self.evacuating.replace(evacuating);
        self.nodes.replace(of_nodes);
    }
}
