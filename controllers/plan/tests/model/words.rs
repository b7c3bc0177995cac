//! What a state shows to people: messages, counts and fast-forwards.

use std::collections::BTreeSet;

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use super::targets::{covers, has_none};
use super::{FastForward, MaintenanceOutcome, NodeOutcome, Outcome, Pod, State};

pub fn outcome(state: &State<'_>, forced: BTreeSet<FastForward>) -> Outcome {
    let mut fast_forwards: Vec<FastForward> = forced.into_iter().collect();
    for m in state.indexes() {
        let new = |n: &&String| !state.all[m].recorded.contains_key(*n);
        let behind = |n: &&String| is_behind(state, m, n);
        fast_forwards.extend(state.all[m].nodes.iter().filter(new).filter(behind).map(|n| FastForward {
            maintenance: m,
            node: Some(n.clone()),
            other: forwarder(state, m, n).map(|k| state.other(m, k)),
        }));
    }
    Outcome {
        maintenances: state.indexes().map(|m| maintenance(state, m)).collect(),
        targeted: state.pods.iter().map(|p| state.is_targeted(p)).collect(),
        fast_forwards,
    }
}

fn maintenance(state: &State<'_>, m: usize) -> MaintenanceOutcome {
    let nodes = &state.all[m].nodes;
    let node = |n: &String| NodeOutcome {
        drain_targets: shown(state, m, n).cloned().collect(),
        drain_message: message(state, m, n),
    };
    MaintenanceOutcome {
        cursor: state.cursors[m],
        nodes: nodes.iter().map(|n| (n.clone(), node(n))).collect(),
    }
}

/// The drainTargets of a node that a maintenance shows: those of types that it drains.
fn shown<'s>(state: &'s State<'_>, m: usize, node: &str) -> impl Iterator<Item = &'s DrainPlanEntry> {
    state.targets[node].iter().filter(move |t| state.all[m].drains(t.pod_type))
}

/// Whether targeted pods are left on a node that exist for all of these maintenances.
fn is_busy(state: &State<'_>, node: &str, seen_by: &[usize]) -> bool {
    let exists = |p: &Pod<'_>| seen_by.iter().all(|m| state.all[*m].drains(p.pod_type));
    state.pods_on(node).any(|p| state.is_targeted(p) && exists(p))
}

/// drainMessage of a maintenance for a node.
fn message(state: &State<'_>, m: usize, node: &str) -> String {
    if state.pods_of(m).is_empty() {
        return "Drained".to_owned();
    }
    if !is_busy(state, node, &[m]) {
        return waiting(state, m);
    }
    let name = |k: usize| &state.all[k].name;
    if let Some(k) = limiter(state, m, node) {
        return format!("Evacuating (limited by {})", name(k));
    }
    if !is_behind(state, m, node) {
        return "Evacuating".to_owned();
    }
    match forwarder(state, m, node) {
        Some(k) if state.other(m, k).is_older => {
            format!("Evacuating (fast-forwarded by older {})", name(k))
        }
        Some(k) => format!("Evacuating (fast-forwarded by {})", name(k)),
        None => "Evacuating (fast-forwarded)".to_owned(),
    }
}

/// Whether a maintenance has reached a target: an entry up to its cursor covers all of it.
fn has_reached(state: &State<'_>, m: usize, target: &DrainPlanEntry) -> bool {
    state.entries(m).iter().any(|e| covers(e, target))
}

/// The place of a cursor in the order of entries: type, priority, selector before no selector.
fn place(state: &State<'_>, m: usize) -> Option<(PodType, i32, bool)> {
    let entry = state.entries(m).last()?;
    Some((entry.pod_type, entry.pod_priority, has_none(entry)))
}

/// The one with the lowest cursor, the oldest among equals.
fn lowest(state: &State<'_>, among: impl Iterator<Item = usize>) -> Option<usize> {
    among.min_by_key(|k| (place(state, *k), state.all[*k].age()))
}

/// Returns the maintenance on the node that has not reached a target which this one has reached and the node does
/// not show: of several, the one with the lowest cursor.
fn limiter(state: &State<'_>, m: usize, node: &str) -> Option<usize> {
    let is_shown = |e: &&DrainPlanEntry| shown(state, m, node).any(|t| covers(t, e));
    let ahead: Vec<_> = state.entries(m).iter().filter(|e| !is_shown(e)).collect();
    let lags =
        |k: &usize| ahead.iter().any(|e| state.all[*k].drains(e.pod_type) && !has_reached(state, *k, e));
    lowest(state, state.on(node).into_iter().filter(lags))
}

/// Whether the node is further along: it shows a target that the maintenance has not reached.
fn is_behind(state: &State<'_>, m: usize, node: &str) -> bool {
    shown(state, m, node).any(|t| !has_reached(state, m, t))
}

/// Returns the maintenance on the node that has reached one of its targets which this one has not: of several, the
/// one with the lowest cursor.
fn forwarder(state: &State<'_>, m: usize, node: &str) -> Option<usize> {
    let missing: Vec<_> = shown(state, m, node).filter(|t| !has_reached(state, m, t)).collect();
    let leads = |k: &usize| missing.iter().any(|t| has_reached(state, *k, t));
    lowest(state, state.on(node).into_iter().filter(leads))
}

/// Names its own first node with targeted pods, else such a node of the nearest maintenance (by hops over shared
/// nodes, then node name, then age). Pods count that exist for both, or, if there are none, for that other one.
fn waiting(state: &State<'_>, m: usize) -> String {
    let first = |k: usize, seen_by: &[usize]| state.all[k].nodes.iter().find(|n| is_busy(state, n, seen_by));
    if let Some(node) = first(m, &[m]) {
        return format!("Waiting for node {node}.");
    }
    for with_own_eyes in [true, false] {
        let busy = |k: usize| if with_own_eyes { first(k, &[m, k]) } else { first(k, &[k]) };
        let mut near = BTreeSet::from([m]);
        loop {
            let next: BTreeSet<usize> = state
                .indexes()
                .filter(|k| !near.contains(k) && near.iter().any(|n| state.share_a_node(*n, *k)))
                .collect();
            let found = next.iter().filter_map(|k| Some((busy(*k)?, state.all[*k].age())));
            if let Some((node, (_, _, name))) = found.min() {
                return format!("Waiting for node {node} ({name}).");
            }
            if next.is_empty() {
                break;
            }
            near.extend(next);
        }
    }
    // Only plans that do not cover everything come here; the page does not say what they show.
    "Evacuating".to_owned()
}
