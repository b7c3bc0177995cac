//! The end: the finalizer goes when the work of Complete is done.

use drydock_api::node_maintenance::{FINALIZER, NodeMaintenance, Stage};

use crate::actions::{Action, Decision, Task};
use crate::failures::Failures;
use crate::requests;
use crate::view::View;

pub(crate) fn has_finalizer(maintenance: &NodeMaintenance) -> bool {
    maintenance.metadata.finalizers.iter().any(|f| f == FINALIZER)
}

/// Decides about every maintenance in Complete. Runs last: what is left to do stands in the actions.
pub(crate) fn decide(view: &View<'_>, failures: &Failures, decision: &mut Decision) {
    let mut done = Vec::new();
    for (i, maintenance) in view.world.maintenances.iter().enumerate() {
        let complete = maintenance.spec.stage == Stage::Complete && has_finalizer(maintenance);
        let deleting = maintenance.metadata.deletion_timestamp.is_some();
        let told =
            deleting || !decision.actions.contains_key(&Task::Status(maintenance.metadata.name.clone()));
        if complete && told && is_released(view, failures, i, decision) {
            done.push(maintenance.clone());
        }
    }
    for maintenance in done {
        let task = Task::Finalizer(maintenance.metadata.name.clone());
        decision.actions.insert(task, Action::Finalizer { maintenance });
    }
}

/// Whether each node of a maintenance is released: nothing is left to be written to it, and no request of ours is open
/// there, unless another maintenance holds it.
fn is_released(view: &View<'_>, failures: &Failures, maintenance: usize, decision: &Decision) -> bool {
    let ended = view.world.maintenances.get(maintenance).and_then(|m| {
        let complete = m.status.stage_statuses.iter().find(|s| s.name == Stage::Complete);
        complete.and_then(|stage| stage.start_timestamp)
    });
    view.nodes_of(maintenance).iter().all(|node| {
        let name = &node.name;
        let untouched = !decision.actions.contains_key(&Task::Cordon(name.clone()))
            && !decision.actions.contains_key(&Task::Conditions(name.clone()));
        view.is_held(name)
            || (untouched && (view.is_draining(name) || !requests::is_open_on(view, failures, name, ended)))
    })
}
