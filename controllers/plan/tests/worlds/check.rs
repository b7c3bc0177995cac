//! What must hold in every world at every step.

use std::collections::BTreeSet;

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};

use super::{Live, Member, World};
use crate::model::compare::{list, within};
use crate::model::{FastForward, Maintenance, NodeOutcome, Outcome, first_cursor};

/// Checks a planning before it is written.
pub fn planned(world: &World, input: &[Maintenance], outcome: &Outcome) -> Result<(), String> {
    nothing_goes_back(world, input, outcome)?;
    rises_after_all_around_is_finished(world, input, outcome)?;
    for (pod, targeted) in world.pods.iter().zip(&outcome.targeted) {
        let mut shown = outcome.maintenances.iter().filter_map(|m| m.nodes.get(&pod.node));
        if shown.any(|n| pod.is_covered(&n.drain_targets)) != *targeted {
            return Err(format!("targeted {targeted} is not what is shown: {pod:?}"));
        }
    }
    for told in &outcome.fast_forwards {
        names_another(input, told)?;
        if told.node.is_none() {
            is_on_a_cycle(world, input, outcome, told.maintenance)?;
        }
    }
    for (m, planned) in input.iter().zip(&outcome.maintenances) {
        let own = format!(" {})", m.name);
        if let Some(node) = planned.nodes.values().find(|n| n.drain_message.ends_with(&own)) {
            return Err(format!("{} names itself: {}", m.name, node.drain_message));
        }
    }
    Ok(())
}

/// No drain target goes back, and all maintenances that select a node show the same for the types that they
/// drain.
fn nothing_goes_back(world: &World, input: &[Maintenance], outcome: &Outcome) -> Result<(), String> {
    for (m, planned) in input.iter().zip(&outcome.maintenances) {
        let spoken = |targets: &[DrainPlanEntry], k: &Maintenance| -> Vec<DrainPlanEntry> {
            let both = |e: &&DrainPlanEntry| m.drains(e.pod_type) && k.drains(e.pod_type);
            targets.iter().filter(both).cloned().collect()
        };
        for (name, node) in &planned.nodes {
            if node.drain_targets != spoken(&node.drain_targets, m) {
                return Err(format!("{} shows on {name} what is not its own", m.name));
            }
            let before = spoken(&world.counted(name), m);
            if !within(&before, &node.drain_targets) {
                let (old, new) = (list(&before), list(&node.drain_targets));
                return Err(format!("{name} goes back on {}: {old} to {new}", m.name));
            }
            let mut others = input.iter().zip(outcome.maintenances.iter().map(|o| o.nodes.get(name)));
            let differs = |k: &Maintenance, other: &NodeOutcome| {
                spoken(&other.drain_targets, k) != spoken(&node.drain_targets, k)
            };
            if others.any(|(k, other)| other.is_some_and(|other| differs(k, other))) {
                return Err(format!("{name} is not the same for all"));
            }
        }
    }
    Ok(())
}

/// A cursor rises, forced or not, only when no pod that was targeted is left on a node of its maintenance,
/// nor on one of a maintenance that shares a node with it.
fn rises_after_all_around_is_finished(
    world: &World,
    input: &[Maintenance],
    outcome: &Outcome,
) -> Result<(), String> {
    let pods: Vec<_> = world.pods.iter().map(Live::pod).collect();
    let is_targeted = |p: &&Live| p.is_covered(&world.counted(&p.node));
    let busy: BTreeSet<(&String, PodType)> =
        world.pods.iter().filter(is_targeted).map(|p| (&p.node, p.pod_type)).collect();
    for (m, planned) in input.iter().zip(&outcome.maintenances) {
        let first = first_cursor(m, &pods);
        let rises = planned.cursor > first;
        // The type of the first entry that it took.
        let next = m.plan.get(first + 1).map_or(PodType::Static, |e| e.pod_type);
        let is_near = |k: &&Maintenance| k.name == m.name || !k.nodes.is_disjoint(&m.nodes);
        let mut around = input.iter().filter(is_near).filter(|k| k.drains(next));
        let holds = |k: &Maintenance, (n, t): &(&String, PodType)| {
            k.nodes.contains(*n) && k.drains(*t) && m.drains(*t)
        };
        if rises && around.any(|k| busy.iter().any(|left| holds(k, left))) {
            return Err(format!("{} rises to {} while {busy:?} are busy", m.name, planned.cursor));
        }
    }
    Ok(())
}

fn names_another(input: &[Maintenance], told: &FastForward) -> Result<(), String> {
    let m = &input[told.maintenance];
    let Some(other) = &told.other else {
        return if told.node.is_some() { Ok(()) } else { Err(format!("a cycle with nobody: {told:?}")) };
    };
    let is_right =
        |k: &&Maintenance| k.name == other.name && k.name != m.name && (k.age() < m.age()) == other.is_older;
    input.iter().find(is_right).map(|_| ()).ok_or_else(|| format!("wrong other: {told:?}"))
}

/// A forced maintenance waits for itself, through maintenances no younger than itself. One waits for another at most
/// where it has reached a pod at the end of the planning that the other had not reached at its beginning.
fn is_on_a_cycle(
    world: &World,
    input: &[Maintenance],
    outcome: &Outcome,
    forced: usize,
) -> Result<(), String> {
    if !world.has_selectors {
        return Err(format!("{} is forced without selectors", input[forced].name));
    }
    let pods: Vec<_> = world.pods.iter().map(Live::pod).collect();
    let shown = |p: &Live| p.is_covered(&world.counted(&p.node));
    let hidden: Vec<&Live> = world.pods.iter().filter(|p| !shown(p)).collect();
    let reached = |p: &Live, m: usize, to: usize| p.place(&input[m].plan).is_some_and(|e| e <= to);
    let waits = |m: usize, k: usize| {
        hidden.iter().any(|p| {
            let has = |m: usize| input[m].nodes.contains(&p.node) && input[m].drains(p.pod_type);
            let both = has(m) && has(k);
            both && reached(p, m, outcome.maintenances[m].cursor)
                && !reached(p, k, first_cursor(&input[k], &pods))
        })
    };
    let mut found = BTreeSet::from([forced]);
    loop {
        let no_younger = (0..input.len()).filter(|k| input[*k].age() <= input[forced].age());
        let next: BTreeSet<usize> = no_younger.filter(|k| found.iter().any(|m| waits(*m, *k))).collect();
        if next.iter().any(|k| *k != forced && waits(*k, forced)) {
            return Ok(());
        }
        if next.is_subset(&found) {
            return Err(format!("{} is forced, and on no cycle", input[forced].name));
        }
        found.extend(next);
    }
}

/// Checks a pod that leaves now.
pub fn left(world: &World, pod: &Live) -> Result<(), String> {
    if world.on_for(&pod.node, pod.pod_type).next().is_none() {
        return Err(format!("nobody drains pods such as {pod:?}"));
    }
    for member in world.on_for(&pod.node, pod.pod_type) {
        is_reached(member, pod)?;
        is_in_order(world, member, pod)?;
    }
    Ok(())
}

/// Nothing is evicted that a maintenance on its node had not reached, unless the node had been there before the
/// maintenance came.
fn is_reached(member: &Member, pod: &Live) -> Result<(), String> {
    let (m, watch) = (&member.maintenance, &member.watch);
    let kept = watch.kept.get(&pod.node).is_some_and(|t| pod.is_covered(t));
    if kept || pod.place(&m.plan).is_some_and(|e| e <= watch.reached) {
        return Ok(());
    }
    Err(format!("{} had not reached {pod:?}, up to {}", m.name, watch.reached))
}

/// No pod leaves while a pod of an earlier entry is left on a node of the maintenance that was there when the
/// entry was taken, or when its node joined. What a node showed before another node joined may go on there,
/// and so may what it showed before it joined itself, if a fast-forward was reported.
fn is_in_order(world: &World, member: &Member, pod: &Live) -> Result<(), String> {
    let (m, watch) = (&member.maintenance, &member.watch);
    let since = watch.joined[&pod.node];
    let may_go_on = |node: &str| {
        let was_there = since < watch.joined[node] || watch.told.contains(&pod.node);
        was_there && watch.held[node].get(&pod.node).is_some_and(|t| pod.is_covered(t))
    };
    if watch.told.contains(&pod.node) && may_go_on(&pod.node) {
        return Ok(());
    }
    let place = pod.place(&m.plan).ok_or("plans cover everything")?;
    let taken = watch.taken.get(&place).copied().unwrap_or(world.step);
    let was_there = |q: &&Live| m.nodes.contains(&q.node) && q.came <= taken.max(watch.joined[&q.node]);
    let is_earlier = |q: &&Live| q.place(&m.plan).is_some_and(|e| e < place);
    let earlier = world.pods.iter().filter(is_earlier).filter(was_there);
    match earlier.filter(|q| !watch.excused.contains(&q.id)).find(|q| !may_go_on(&q.node)) {
        Some(q) => Err(format!("{}: {pod:?} leaves before {q:?}, taken {taken}", m.name)),
        None => Ok(()),
    }
}
