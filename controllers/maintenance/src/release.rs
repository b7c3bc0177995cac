//! Removes the finalizer of a maintenance when the work of the stage Complete is done.

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_api::text::first_of;

use crate::actions::{Action, MaintenanceDecision, Task};
use crate::requests;
use crate::requests::failures::RequestFailures;
use crate::world::WorldView;
use crate::world::recorded;

/// Most nodes that a message names, and most maintenances of each.
const MAX_NAMED: usize = 3;

/// Decides about every maintenance in Complete. It runs last, because the actions show what is left to do.
pub(crate) fn decide(view: &WorldView<'_>, failures: &RequestFailures, decision: &mut MaintenanceDecision) {
    let mut done = Vec::new();
    for (i, maintenance) in view.world.maintenances.iter().enumerate() {
        let deleting = maintenance.metadata.deletion_timestamp.is_some();
        let is_reported =
            deleting || !decision.actions.contains_key(&Task::Status(maintenance.metadata.name.clone()));
        if maintenance.is_ending() && is_reported && is_released(view, failures, i, maintenance, decision) {
            done.push((maintenance.clone(), message(view, i)));
        }
    }
    for (maintenance, message) in done {
        decision.add(Action::Finalizer { maintenance, message });
    }
}

/// The message of the event that a maintenance has ended: which of its nodes stay cordoned, and for which
/// others.
fn message(view: &WorldView<'_>, place: usize) -> String {
    let held: Vec<_> = view.nodes_of(place).iter().filter(|node| view.is_held(&node.name)).collect();
    let holders = |node: &str| {
        let names: Vec<&str> = view.holders_of(node).map(|m| m.metadata.name.as_str()).collect();
        let kind = if names.len() == 1 { "NodeMaintenance" } else { "NodeMaintenances" };
        format!("for {kind} {}", first_of(names, MAX_NAMED))
    };
    match held.as_slice() {
        [] => "The maintenance has released its nodes".to_owned(),
        [node] => {
            format!("The maintenance has ended; node {0} stays cordoned {1}", node.name, holders(&node.name))
        }
        nodes => {
            let each = nodes.iter().map(|node| format!("{} ({})", node.name, holders(&node.name)));
            format!(
                "The maintenance has ended; {} nodes stay cordoned: {}",
                nodes.len(),
                first_of(each, MAX_NAMED)
            )
        }
    }
}

/// Whether each node of a maintenance is released: nothing is left to be written to it, and no request of ours is open
/// there, unless another maintenance holds it.
fn is_released(
    view: &WorldView<'_>,
    failures: &RequestFailures,
    place: usize,
    maintenance: &NodeMaintenance,
    decision: &MaintenanceDecision,
) -> bool {
    let handed_over = maintenance.status.node_statuses.iter().all(|s| recorded::is_handed_over(view, s));
    let are_free = view.nodes_of(place).iter().all(|node| {
        let name = &node.name;
        let untouched = !decision.actions.contains_key(&Task::Cordon(name.clone()))
            && !decision.actions.contains_key(&Task::Conditions(name.clone()));
        view.is_held(name)
            || (untouched
                && (view.is_draining(name) || !requests::is_open_on(view, failures, name, maintenance)))
    });
    handed_over && are_free
}
