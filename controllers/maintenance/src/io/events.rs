//! Publishes events about nodes, maintenances and evictions, and logs them.

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_api::text::first_of;
use drydock_logging::target;
use drydock_runtime::events::reasons::COMPLETED;
use drydock_runtime::events::{Regarding, Severity};
use drydock_runtime::{ControllerContext, Node};
use tracing::{debug, info, warn};

use crate::actions::{Action, EventDraft, EventSubject, RequestChange};
use crate::world::selects;

/// Most maintenances that a log line names.
const MAX_NAMED: usize = 5;

/// Publishes an event about its object, if that still exists, and logs it if the draft says so.
pub(crate) fn publish(context: &ControllerContext, note: &EventDraft) {
    let ControllerContext { recorder, caches, .. } = context;
    let EventDraft { severity, reason, message, .. } = note;
    if note.is_logged {
        log(note);
    }
    let regarding = match &note.about {
        EventSubject::Node(node) => caches.nodes.find("", node).map(|node| Regarding::of(&*node)),
        EventSubject::Maintenance(maintenance) => {
            caches.maintenances.find("", maintenance).map(|maintenance| Regarding::of(&*maintenance))
        }
        EventSubject::Eviction(namespace, pod) => {
            if let Some(request) = caches.requests.find(namespace, pod) {
                recorder.publish_to_owner(&request, *severity, reason, message);
            }
            None
        }
    };
    if let Some(regarding) = regarding {
        recorder.publish(regarding, *severity, reason, message.clone());
    }
}

fn log(note: &EventDraft) {
    let EventDraft { about, severity, reason, message, .. } = note;
    let (node, maintenance) = match about {
        EventSubject::Node(node) => (Some(node), None),
        EventSubject::Maintenance(maintenance) => (None, Some(maintenance)),
        EventSubject::Eviction(..) => (None, None),
    };
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
                RequestChange::Delete { .. } => "removed: its pod is gone, and nobody else asks in it",
                RequestChange::Replace { .. } => "removed: it has ended, and the pod is still to leave",
            };
            debug!(target: target::WRITES, request = format!("{namespace}/{pod}"), "{cause}");
        }
        Action::Status { maintenance, .. } => {
            let maintenance = &maintenance.metadata.name;
            debug!(target: target::WRITES, maintenance, "status written: its pods, nodes or blockers changed");
        }
        Action::Finalizer { maintenance, .. } => {
            let maintenance = &maintenance.metadata.name;
            debug!(target: target::WRITES, maintenance, "finalizer removed: it has released its nodes");
        }
    }
}

/// Logs that a node was cordoned or uncordoned, or that a maintenance has ended; publishes the latter.
pub(crate) fn publish_write(context: &ControllerContext, action: &Action) {
    match action {
        Action::Cordon { node, unschedulable: Some(unschedulable), .. } => {
            let maintenance = causes(context, node, *unschedulable);
            info!(node = node.name, maintenance, unschedulable, "set spec.unschedulable of the node");
        }
        Action::Finalizer { maintenance, message } => {
            info!(maintenance = maintenance.metadata.name, reason = COMPLETED, "{message}");
            context.recorder.normal(&**maintenance, COMPLETED, message.clone());
        }
        _ => {}
    }
}

/// The maintenances for which a node is made unschedulable, or by whose end it is schedulable again, if there are any.
fn causes(context: &ControllerContext, node: &Node, unschedulable: bool) -> Option<String> {
    let is_cause = |m: &NodeMaintenance| {
        if unschedulable { m.spec.stage.holds_nodes() } else { m.is_ending() }
    };
    let maintenances = context.caches.maintenances.all();
    let causes = maintenances.iter().filter(|m| is_cause(m) && selects(m, node));
    Some(first_of(causes.map(|m| &m.metadata.name), MAX_NAMED)).filter(|names| !names.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::node_maintenance::FINALIZER;
    use drydock_runtime::testing::{context, failure};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_cordon_is_logged_with_the_maintenances_that_it_is_for() {
        let context = context(|_, _, _| failure(500, "unused"));
        let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] });
        for (name, stage) in [("idle", "Idle"), ("one", "Cordon"), ("two", "Drain"), ("over", "Complete")] {
            let maintenance = json!({
                "metadata": { "name": name, "finalizers": [FINALIZER] },
                "spec": { "stage": stage, "nodeSelector": { "nodeSelectorTerms": [term] } },
            });
            context.caches.maintenances.apply(serde_json::from_value(maintenance).unwrap());
        }
        let causes = |node: &str, unschedulable| {
            causes(&context, &Node { name: node.into(), ..Node::default() }, unschedulable)
        };
        assert_eq!(causes("n", true).as_deref(), Some("one, two"));
        assert_eq!(causes("n", false).as_deref(), Some("over"));
        assert_eq!(causes("other", true), None);
    }
}
