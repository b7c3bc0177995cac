//! Finds maintenances that wait for each other in a cycle, and the one that takes its next entry before its
//! plan allows it.

use crate::planned_maintenance::PlannedMaintenance;
use crate::planning::{PlannedNode, Planning};

/// A maintenance that takes its next entry although pods that it has reached are left.
pub(crate) struct ForcedAdvance {
    pub(crate) maintenance: usize,
    /// The maintenance of the cycle that it waited for.
    pub(crate) waited_for: usize,
}

/// Returns the maintenance that takes its next entry when none may advance: the oldest of those that are the
/// youngest of a cycle and for which `is_free` holds. A maintenance on no cycle is never forced, and a cycle
/// whose youngest is not free holds up no other cycle. `is_free` says whether a maintenance and all that
/// share a node with it are finished (see `DrainProgress::is_free`).
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

/// Whether a maintenance closes a cycle as its youngest: it waits for `first`, which waits for it, directly
/// or through others, and all of these are older.
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

/// Whether a maintenance waits for another one: on a node of both there is a pod, of a type that both drain,
/// that the first has reached, that the other has not reached, and that is not targeted.
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
