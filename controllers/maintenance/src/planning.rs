//! One planning over all maintenances in Drain: gives `drydock_plan` what the statuses record, and takes the
//! pods that may be asked to leave from its outcome. Pure.

use std::collections::HashSet;
use std::sync::Arc;

use drydock_api::node_maintenance::{NodeMaintenance, NodeMaintenanceStage};
use drydock_plan::{CountedPod, DrainingMaintenance, PlanOutcome};
use drydock_runtime::Pod;

use crate::world::recorded::{self, Recorded};
use crate::world::{PlannedDrains, WorldView};

/// Plans the maintenances in Drain.
pub(crate) fn plan<'a>(view: &WorldView<'a>) -> PlannedDrains<'a> {
    let draining = view
        .world
        .maintenances
        .iter()
        .enumerate()
        .filter(|(_, m)| m.spec.stage == NodeMaintenanceStage::Drain);
    let draining: Vec<(usize, &Arc<NodeMaintenance>)> = draining.collect();
    let in_drain = |(i, m): &(usize, &Arc<NodeMaintenance>)| {
        recorded::plan_input(m, &recorded::fitting_nodes(view, *i), view.now)
    };
    let input: Vec<DrainingMaintenance> = draining.iter().map(in_drain).collect();
    let pods = pods_of(view, &input);
    let as_input = |pod: &&'a Arc<Pod>| CountedPod {
        node: &pod.node_name,
        pod_type: pod.pod_type(),
        priority: pod.priority,
        labels: pod.known_labels(),
    };
    let ended = recorded::ended(view.world, &input);
    let outcome = drydock_plan::plan(&input, &ended, &pods.iter().map(as_input).collect::<Vec<_>>());
    let places = draining.iter().enumerate().map(|(place, (i, _))| (*i, place)).collect();
    let targeted = stored_targets(view, &outcome, &pods);
    PlannedDrains { outcome, places, targeted }
}

/// The pods that count on the nodes that are planned.
fn pods_of<'a>(view: &WorldView<'a>, input: &[DrainingMaintenance]) -> Vec<&'a Arc<Pod>> {
    let nodes: HashSet<&str> = input.iter().flat_map(|m| &m.nodes).map(String::as_str).collect();
    let counted = view.counted.iter().filter(|(node, _)| nodes.contains(*node));
    counted.flat_map(|(_, pods)| pods.clone()).collect()
}

/// Of the pods that the plan targets, those that the stored targets cover: if a planning raises a node's
/// targets, they are stored before further pods leave.
fn stored_targets<'a>(
    view: &WorldView<'a>,
    outcome: &PlanOutcome,
    pods: &[&'a Arc<Pod>],
) -> HashSet<&'a str> {
    let recorded = Recorded::of(view);
    let planned = outcome.maintenances.iter().flat_map(|m| &m.nodes);
    // Each maintenance shows only the types that it drains: some show less than others.
    let raised: HashSet<&str> = planned
        .filter(|(name, node)| !recorded.is(name, &node.drain_targets))
        .map(|(name, _)| name.as_str())
        .collect();
    let leaving = pods.iter().zip(&outcome.targeted).filter(|(_, targeted)| **targeted);
    let is_stored = |pod: &Pod| !raised.contains(pod.node_name.as_str()) || recorded.cover(pod);
    leaving.filter(|(pod, _)| is_stored(pod)).map(|(pod, _)| pod.uid.as_str()).collect()
}
