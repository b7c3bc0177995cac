//! What is told: events about nodes and maintenances, and the same in the log.

use drydock_runtime::events::reasons::COMPLETED;
use drydock_runtime::events::{Regarding, Severity};
use drydock_runtime::{Context, target};
use tracing::{debug, info, warn};

use crate::actions::{About, Action, Note, RequestChange};

/// Records a note as an event about its object, if that is still there, and logs it.
pub(crate) fn tell(context: &Context, note: &Note) {
    let Context { recorder, caches, .. } = context;
    let Note { severity, reason, message, .. } = note;
    let regarding = match &note.about {
        About::Node(node) => {
            log(Some(node), None, note);
            caches.nodes.find("", node).map(|node| Regarding::of(&*node))
        }
        About::Maintenance(maintenance) => {
            log(None, Some(maintenance), note);
            caches.maintenances.find("", maintenance).map(|maintenance| Regarding::of(&*maintenance))
        }
        About::Eviction(namespace, pod) => {
            if let Some(request) = caches.requests.find(namespace, pod) {
                recorder.tell_owner(&request, *severity, reason, message);
            }
            None
        }
    };
    if let Some(regarding) = regarding {
        recorder.publish(regarding, *severity, reason, message.clone());
    }
}

fn log(node: Option<&str>, maintenance: Option<&str>, note: &Note) {
    let Note { severity, reason, message, .. } = note;
    match severity {
        Severity::Warning => warn!(node, maintenance, reason, "{message}"),
        Severity::Normal => info!(node, maintenance, reason, "{message}"),
    }
}

/// Logs a write with its cause, where the log asks for that (`-v 4`).
pub(crate) fn log_write(action: &Action) {
    match action {
        Action::Cordon { node, .. } => {
            debug!(target: target::WRITES, node = node.name, "cordon written: maintenances begin or end to hold the node");
        }
        Action::Conditions { node, set, remove, .. } => {
            let set: Vec<&str> = set.iter().map(|condition| condition.type_).collect();
            let (set, removed) = (set.join(","), remove.join(","));
            debug!(target: target::WRITES, node, set, removed, "conditions written: the node's maintenances or pods changed");
        }
        Action::Request { namespace, pod, change, .. } => {
            let cause = match change {
                RequestChange::Ask { .. } => "asked for: a maintenance drains the pod's node",
                RequestChange::Withdraw { .. } => {
                    "withdrawn: the pod is gone, or no maintenance drains its node"
                }
                RequestChange::Replace { .. } => "removed: it has ended, and the pod is still to leave",
            };
            debug!(target: target::WRITES, request = format!("{namespace}/{pod}"), "{cause}");
        }
        Action::Status { maintenance, .. } => {
            let maintenance = &maintenance.metadata.name;
            debug!(target: target::WRITES, maintenance, "status written: its pods, nodes or blockers changed");
        }
        Action::Finalizer { maintenance } => {
            let maintenance = &maintenance.metadata.name;
            debug!(target: target::WRITES, maintenance, "finalizer removed: it has released its nodes");
        }
    }
}

/// Tells of a write that ends something.
pub(crate) fn tell_of_write(context: &Context, action: &Action) {
    match action {
        Action::Cordon { node, unschedulable: Some(unschedulable), .. } => {
            info!(node = node.name, unschedulable, "set spec.unschedulable of the node");
        }
        Action::Finalizer { maintenance } => {
            let message = "The maintenance has released its nodes";
            info!(maintenance = maintenance.metadata.name, reason = COMPLETED, "{message}");
            context.recorder.normal(&**maintenance, COMPLETED, message.to_owned());
        }
        _ => {}
    }
}
