//! What is told: events about nodes and maintenances, and lines of the log.

use drydock_runtime::events::Recorder;
use drydock_runtime::{Cacheable, Context};
use tracing::info;

use crate::actions::{About, Action, Note};

/// Records a note as an event about its object, if that is still there.
pub(crate) fn tell(context: &Context, note: &Note) {
    let Context { recorder, caches, .. } = context;
    match &note.about {
        About::Node(name) => {
            if let Some(node) = caches.nodes.find("", name) {
                record(recorder, &*node, note);
            }
        }
        About::Maintenance(name) => {
            if let Some(maintenance) = caches.maintenances.find("", name) {
                record(recorder, &*maintenance, note);
            }
        }
    }
}

/// Logs a write that matters to people.
pub(crate) fn log(action: &Action) {
    match action {
        Action::Cordon { node, unschedulable: Some(unschedulable), .. } => {
            info!(node = node.name, unschedulable, "set spec.unschedulable of the node");
        }
        Action::Finalizer { maintenance } => info!(
            maintenance = maintenance.metadata.name,
            "removed the finalizer of the completed maintenance"
        ),
        _ => {}
    }
}

fn record<T: Cacheable>(recorder: &Recorder, object: &T, note: &Note) {
    if note.warning {
        recorder.warning(object, note.reason, note.message.clone());
    } else {
        recorder.normal(object, note.reason, note.message.clone());
    }
}
