//! Maintenances that wait for each other in a cycle: one of them has to go on before its plan says so.

use crate::planned_maintenance::PlannedMaintenance;
use crate::planning::{PlannedNode, Planning};

/// A maintenance that took an entry although its plan was not that far.
pub(crate) struct ForcedAdvance {
    pub(crate) maintenance: usize,
    /// The one of the cycle that it waited for.
    pub(crate) waited_for: usize,
}

/// The maintenance that is to go on when none may: of those that are the youngest of a cycle and are finished, as is each that
/// shares a node with them, the oldest. One that stands on no cycle is never forced, and one that is not finished elsewhere
/// holds no cycle up. `is_free` says of a maintenance whether it and those are finished.
pub(crate) fn find(planning: &Planning, is_free: impl Fn(usize) -> bool) -> Option<ForcedAdvance> {
    let mut by_age: Vec<(usize, &PlannedMaintenance)> = planning.maintenances.iter().enumerate().collect();
    by_age.sort_by_key(|(_, planned)| planned.age);
    let free = by_age.iter().filter(|(id, _)| is_free(*id));
    free.filter_map(|(id, _)| {
        let waited_for =
            by_age.iter().map(|(other, _)| *other).find(|other| closes(planning, *id, *other))?;
        Some(ForcedAdvance { maintenance: *id, waited_for })
    })
    .next()
}

/// Whether a maintenance waits for another one, which waits for it in turn, through older ones alone.
fn closes(planning: &Planning, id: usize, first: usize) -> bool {
    let Some(planned) = planning.maintenances.get(id) else { return false };
    if !waits_for(planning, id, first) {
        return false;
    }
    let is_older = |other: usize| planning.maintenances.get(other).is_some_and(|d| d.age < planned.age);
    let mut reached = vec![first];
    let mut next = 0;
    while let Some(at) = reached.get(next).copied().filter(|at| is_older(*at)) {
        next += 1;
        if waits_for(planning, at, id) {
            return true;
        }
        let further =
            (0..planning.maintenances.len()).filter(|other| is_older(*other) && !reached.contains(other));
        let further: Vec<usize> = further.filter(|other| waits_for(planning, at, *other)).collect();
        reached.extend(further);
    }
    false
}

/// Whether a maintenance waits for another one: on a node of both there is a pod of a type of which both speak that the one has
/// reached and the other has not, so that it is not targeted.
fn waits_for(planning: &Planning, id: usize, other: usize) -> bool {
    let (Some(planned), Some(other_planned)) =
        (planning.maintenances.get(id), planning.maintenances.get(other))
    else {
        return false;
    };
    let holds = |node: &PlannedNode| {
        node.maintenances.contains(&other)
            && node.classes.keys().filter(|class| other_planned.drains(class.pod_type)).any(|class| {
                planned.reached.covers(class)
                    && !other_planned.reached.covers(class)
                    && !planning.targets(node, class)
            })
    };
    id != other && planning.nodes_of(planned).any(holds)
}
