//! Decides what is to be written, from the caches and from its own memory. Pure but for that memory.

use jiff::Timestamp;

use crate::actions::MaintenanceDecision;
use crate::blockers::{Blockers, CauseContext};
use crate::config::Config;
use crate::milestones::Milestones;
use crate::nodes::awaiting_cordon::AwaitingCordon;
use crate::nodes::conditions::ConfirmedEmpty;
use crate::nodes::cordon::UncordonConflicts;
use crate::nodes::gone::GoneNodes;
use crate::nodes::{conditions, cordon};
use crate::requests::failures::RequestFailures;
use crate::requests::outcomes::Outcomes;
use crate::requests::returns::PodReturns;
use crate::status::{StatusMemory, StatusSources};
use crate::world::World;
use crate::world::WorldView;
use crate::{planning, release, requests, status};

/// The memory between steps. A new one restores what matters from the objects.
#[derive(Clone, Debug, Default)]
pub struct MachineMemory {
    pub(crate) uncordon_conflicts: UncordonConflicts,
    pub(crate) awaiting_cordon: AwaitingCordon,
    pub(crate) emptied: ConfirmedEmpty,
    pub(crate) gone: GoneNodes,
    pub(crate) blockers: Blockers,
    pub(crate) returns: PodReturns,
    pub(crate) failures: RequestFailures,
    pub(crate) outcomes: Outcomes,
    pub(crate) status: StatusMemory,
    pub(crate) milestones: Milestones,
}

/// One step over all maintenances.
pub fn step(
    world: &World,
    memory: &mut MachineMemory,
    now: Timestamp,
    config: &Config,
) -> MaintenanceDecision {
    let mut decision = MaintenanceDecision::default();
    let mut view = WorldView::new(world, config, now, memory.status.left_out.clone());
    view.planned = planning::plan(&view);
    view.waiting = Some(memory.awaiting_cordon.update(&view, &mut decision));
    memory.failures.update(&view);
    memory.emptied.update(&view);
    memory.gone.update(&view, &memory.emptied);
    cordon::decide(&view, &mut memory.uncordon_conflicts, &mut decision);
    let returned = memory.returns.update(&view, &mut decision);
    memory.outcomes.update(&view, &returned);
    let known = CauseContext {
        failures: &memory.failures,
        returns: &memory.returns,
        uncordon_conflicts: &memory.uncordon_conflicts,
    };
    memory.blockers.update(&view, &known, &mut decision);
    memory.milestones.update(&view, &memory.blockers, &memory.emptied, &memory.returns, &mut decision);
    requests::decide(&view, &mut memory.failures, &memory.returns, &mut decision);
    conditions::decide(&view, &memory.emptied, &mut decision);
    let MachineMemory { blockers, uncordon_conflicts, outcomes, gone, emptied, failures, status, .. } =
        memory;
    let turns = &failures.turns;
    let sources = StatusSources { blockers, uncordon_conflicts, outcomes, gone, emptied, turns };
    status::decide(&view, &sources, status, &mut decision);
    release::decide(&view, &memory.failures, &mut decision);
    decision
}

#[cfg(test)]
#[path = "machine_tests/mod.rs"]
mod tests;
