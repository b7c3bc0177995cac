//! Moves the cursors of all maintenances to their fixed point.

use drydock_api::node_maintenance::PodType;

use crate::catalog::Class;
use crate::contradiction::{self, ForcedAdvance};
use crate::planned_maintenance::PlannedMaintenance;
use crate::planning::Planning;

/// Moves every cursor as far as it may go. Returns the maintenances that went on because plans contradict
/// each other. The loop ends, because each round moves a cursor and plans are finite.
pub(crate) fn run(planning: &mut Planning) -> Vec<ForcedAdvance> {
    let mut all_forced = Vec::new();
    planning.raise_targets();
    loop {
        let progress = DrainProgress::of(planning);
        let next: Vec<usize> =
            (0..planning.maintenances.len()).filter(|id| progress.may_advance(planning, *id)).collect();
        if !next.is_empty() {
            planning.step(&next);
            continue;
        }
        let Some(forced) = contradiction::find(planning, |id| progress.is_free(planning, id)) else {
            return all_forced;
        };
        planning.step(&[forced.maintenance]);
        all_forced.push(forced);
    }
}

/// Which pods each maintenance still waits for, at one moment.
struct DrainProgress {
    /// By maintenance: the first pod type among the targeted pods that are left on its nodes. A maintenance
    /// is finished if there is none, or if it does not drain that type.
    first_left: Vec<Option<PodType>>,
    /// By maintenance: whether no pod that it has reached is left on any of its nodes.
    done: Vec<bool>,
}

impl DrainProgress {
    fn of(planning: &Planning) -> Self {
        let of_node: Vec<Option<PodType>> =
            planning.nodes.iter().map(|n| planning.first_targeted(n)).collect();
        let first_left = |planned: &PlannedMaintenance| {
            planned.nodes.iter().filter_map(|n| of_node.get(*n).copied().flatten()).min()
        };
        let done = |planned: &PlannedMaintenance| {
            let reached = |class: &Class| planned.reached.covers(class);
            !planning.nodes_of(planned).any(|node| node.classes.keys().any(reached))
        };
        Self {
            first_left: planning.maintenances.iter().map(first_left).collect(),
            done: planning.maintenances.iter().map(done).collect(),
        }
    }

    /// Whether a maintenance has nodes and a next entry, and whether it and every maintenance that shares a
    /// node with it and drains the entry's type are finished. Only pods of types that this maintenance drains
    /// count.
    fn is_free(&self, planning: &Planning, id: usize) -> bool {
        let Some(planned) = planning.maintenances.get(id) else { return false };
        let Some(next) = planned.next_type() else { return false };
        let is_finished = |id: &usize| {
            let Some(other) = planning.maintenances.get(*id).filter(|other| other.drains(next)) else {
                return true;
            };
            let first = self.first_left.get(*id).copied().flatten();
            !first.is_some_and(|first| planned.drains(first) && other.drains(first))
        };
        !planned.nodes.is_empty()
            && planning.nodes_of(planned).all(|node| node.maintenances.iter().all(is_finished))
    }

    fn may_advance(&self, planning: &Planning, id: usize) -> bool {
        self.done.get(id) == Some(&true) && self.is_free(planning, id)
    }
}
