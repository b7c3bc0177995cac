//! What is told: events about nodes and maintenances, and the same in the log.

use drydock_runtime::events::Recorder;
use drydock_runtime::{Cacheable, Context};
use tracing::{info, warn};

use crate::actions::{About, Action, Note};

/// Records a note as an event about its object, if that is still there, and logs it.
pub(crate) fn tell(context: &Context, note: &Note) {
    let Context { recorder, caches, .. } = context;
    let Note { reason, message, .. } = note;
    match &note.about {
        About::Node(node) => {
            if note.warning {
                warn!(node, reason, "{message}");
            } else {
                info!(node, reason, "{message}");
            }
            if let Some(node) = caches.nodes.find("", node) {
                record(recorder, &*node, note);
            }
        }
        About::Maintenance(maintenance) => {
            if note.warning {
                warn!(maintenance, reason, "{message}");
            } else {
                info!(maintenance, reason, "{message}");
            }
            if let Some(maintenance) = caches.maintenances.find("", maintenance) {
                record(recorder, &*maintenance, note);
            }
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
            info!(maintenance = maintenance.metadata.name, reason = "Completed", "{message}");
            context.recorder.normal(&**maintenance, "Completed", message.to_owned());
        }
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
