//! One planning, from what is recorded to what is to be recorded.

use std::collections::BTreeMap;

use crate::advance;
use crate::contradiction::Forced;
use crate::drain::Drain;
use crate::input::{Maintenance, Pod, TargetsByNode};
use crate::message::{Messages, fast_forwarded_by};
use crate::outcome::{FastForward, MaintenanceOutcome, NodeOutcome, Other, Outcome};
use crate::planning::{PlannedNode, Planning};

/// Plans all maintenances in Drain together, since they share nodes. Pods on other nodes are not targeted.
///
/// Nothing is remembered: what has to survive stands in the positions and targets of the statuses, so that a restart
/// changes nothing. `ended` are the targets that maintenances show which are in Drain no longer and whose status still
/// stands.
pub fn plan(maintenances: &[Maintenance], ended: &TargetsByNode, pods: &[Pod<'_>]) -> Outcome {
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
    Outcome { maintenances: outcomes(&planning), targeted, fast_forwards }
}

/// Maintenances that have come to a node which is further along.
fn newcomers(planning: &Planning, maintenances: &[Maintenance]) -> Vec<FastForward> {
    let mut found = Vec::new();
    for (id, (drain, maintenance)) in planning.drains.iter().zip(maintenances).enumerate() {
        let is_new = |node: &&PlannedNode| {
            maintenance.position.is_none() || !maintenance.recorded.contains_key(&node.name)
        };
        for node in planning.nodes_of(drain).filter(is_new) {
            let Some(by) = fast_forwarded_by(planning, drain, node) else { continue };
            let other = by.map(|other| seen_from(drain, other));
            found.push(FastForward { maintenance: id, node: Some(node.name.clone()), other });
        }
    }
    found
}

fn contradiction(planning: &Planning, forced: &Forced) -> FastForward {
    let both = planning.drains.get(forced.drain).zip(planning.drains.get(forced.waited_for));
    let other = both.map(|(drain, other)| seen_from(drain, other));
    FastForward { maintenance: forced.drain, node: None, other }
}

fn seen_from(drain: &Drain, other: &Drain) -> Other {
    Other { name: other.name.clone(), is_older: other.age < drain.age }
}

fn outcomes(planning: &Planning) -> Vec<MaintenanceOutcome> {
    let messages = Messages::new(planning);
    planning.drains.iter().enumerate().map(|(id, drain)| outcome(planning, &messages, id, drain)).collect()
}

fn outcome(planning: &Planning, messages: &Messages<'_>, id: usize, drain: &Drain) -> MaintenanceOutcome {
    let nodes = drain.nodes.iter().filter_map(|at| Some((*at, planning.nodes.get(*at)?)));
    let shown = nodes.map(|(at, node)| {
        let one = NodeOutcome {
            drain_targets: planning.entries(drain, node),
            drain_message: messages.message(id, drain, at, node),
            by_entry: by_entry(drain, node),
        };
        (node.name.clone(), one)
    });
    let waits_for = messages.waits_for(id).map(str::to_owned);
    MaintenanceOutcome { cursor: drain.cursor, waits_for, nodes: shown.collect() }
}

fn by_entry(drain: &Drain, node: &PlannedNode) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for (class, count) in &node.classes {
        if let Some(entry) = drain.first_entry(class) {
            *counts.entry(entry).or_default() += count;
        }
    }
    counts
}
