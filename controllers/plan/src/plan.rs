//! Makes one planning from what the statuses record.

use std::collections::BTreeMap;

use crate::advance;
use crate::contradiction::ForcedAdvance;
use crate::message::{Messages, fast_forwarded_by};
use crate::planned_maintenance::PlannedMaintenance;
use crate::planning::{PlannedNode, Planning};
use crate::types::{
    CountedPod, DrainingMaintenance, FastForward, MaintenanceOutcome, NodeOutcome, Other, PlanOutcome,
    TargetsByNode,
};

/// Plans all maintenances in Drain together, since they share nodes. Pods on other nodes are not targeted.
///
/// No state is kept between plannings: what has to survive stands in the positions and targets of the
/// statuses, so that a restart changes nothing. `ended` has the targets that still stand in the statuses of
/// maintenances that are no longer in Drain.
pub fn plan(
    maintenances: &[DrainingMaintenance],
    ended: &TargetsByNode,
    pods: &[CountedPod<'_>],
) -> PlanOutcome {
    let mut planning = Planning::new(maintenances, ended);
    let placed = planning.count(pods);
    planning.place_cursors(maintenances);
    let forced = advance::run(&mut planning);
    let targeted = placed.iter().map(|placed| {
        let node = placed.as_ref().and_then(|(id, class)| Some((planning.nodes.get(*id)?, class)));
        node.is_some_and(|(node, class)| planning.targets(node, class))
    });
    let targeted = targeted.collect();
    let mut fast_forwards = newcomers(&planning, maintenances);
    fast_forwards.extend(forced.iter().map(|forced| contradiction(&planning, forced)));
    PlanOutcome { maintenances: outcomes(&planning), targeted, fast_forwards }
}

/// Maintenances that have come to a node which is further along.
fn newcomers(planning: &Planning, maintenances: &[DrainingMaintenance]) -> Vec<FastForward> {
    let mut found = Vec::new();
    for (id, (planned, maintenance)) in planning.maintenances.iter().zip(maintenances).enumerate() {
        let is_new = |node: &&PlannedNode| {
            maintenance.position.is_none() || !maintenance.recorded.contains_key(&node.name)
        };
        for node in planning.nodes_of(planned).filter(is_new) {
            let Some(by) = fast_forwarded_by(planning, planned, node) else { continue };
            let other = by.map(|other| seen_from(planned, other));
            found.push(FastForward { maintenance: id, node: Some(node.name.clone()), other });
        }
    }
    found
}

fn contradiction(planning: &Planning, forced: &ForcedAdvance) -> FastForward {
    let both =
        planning.maintenances.get(forced.maintenance).zip(planning.maintenances.get(forced.waited_for));
    let other = both.map(|(planned, other)| seen_from(planned, other));
    FastForward { maintenance: forced.maintenance, node: None, other }
}

fn seen_from(planned: &PlannedMaintenance, other: &PlannedMaintenance) -> Other {
    Other { name: other.name.clone(), is_older: other.age < planned.age }
}

fn outcomes(planning: &Planning) -> Vec<MaintenanceOutcome> {
    let messages = Messages::new(planning);
    planning
        .maintenances
        .iter()
        .enumerate()
        .map(|(id, planned)| outcome(planning, &messages, id, planned))
        .collect()
}

fn outcome(
    planning: &Planning,
    messages: &Messages<'_>,
    id: usize,
    planned: &PlannedMaintenance,
) -> MaintenanceOutcome {
    let nodes = planned.nodes.iter().filter_map(|at| Some((*at, planning.nodes.get(*at)?)));
    let shown = nodes.map(|(at, node)| {
        let one = NodeOutcome {
            drain_targets: planning.entries(planned, node),
            drain_message: messages.message(id, planned, at, node),
            by_entry: by_entry(planned, node),
        };
        (node.name.clone(), one)
    });
    let waits_for = messages.waits_for(id).map(str::to_owned);
    MaintenanceOutcome { cursor: planned.cursor, waits_for, nodes: shown.collect() }
}

fn by_entry(planned: &PlannedMaintenance, node: &PlannedNode) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for (class, count) in &node.classes {
        if let Some(entry) = planned.first_entry(class) {
            *counts.entry(entry).or_default() += count;
        }
    }
    counts
}
