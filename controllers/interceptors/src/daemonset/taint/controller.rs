//! Decides about one node after the other, and adds or removes its taint.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_api::reasons::NODE_UPDATE_REFUSED;
use drydock_api::text::quoted;
use drydock_api::time::format_seconds;
use drydock_runtime::cache::{DRAIN_TAINT, Select};
use drydock_runtime::events::reasons::TAINT_CONFLICT;
use drydock_runtime::{
    ApiErrorKind, CallError, ControllerContext, Node, NodeWriteRefusals, ObjectChange, Pod, Requeue,
    classify, run_workers,
};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Node as HostNode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use tracing::info;

use super::decide::{has_taint, needs_taint, nodes_of, patch, taken_from};
use crate::daemonset::state::DaemonSetState;
use crate::node_targets::changed_nodes;

/// Key of the taint.
pub(crate) const TAINT: &str = DRAIN_TAINT;
/// Its effect.
pub(crate) const EFFECT: &str = "NoSchedule";
/// Field manager of the taint.
const FIELD_MANAGER: &str = "drydock-daemonset-taint";
/// The caches that are read.
const READS: Select =
    Select { pods: true, daemon_sets: true, nodes: true, maintenances: true, ..Select::NONE };
/// Nodes worked on at once.
const PARALLEL_WORKERS: usize = 8;
/// A change of the taint that the cache does not show within this time is decided again.
const SHOWS_WITHIN: Duration = Duration::from_secs(30);

/// Runs until shutdown. The caches of `READS` must be fed. `blocked` is called with each node whose taint is refused with
/// new words, and with each whose taint others have removed again, when an event says so.
pub(crate) async fn run(
    context: ControllerContext,
    state: Arc<DaemonSetState>,
    blocked: impl Fn(&str) + Send + Sync + 'static,
) {
    let (queue, of_workers) = (state.queue.clone(), context.clone());
    context.caches.wait_until_synced(READS).await;
    subscribe(&context, &state);
    let blocked = Arc::new(blocked);
    let work = move |node: String| {
        let (context, state, blocked) = (context.clone(), state.clone(), blocked.clone());
        async move { reconcile(&context, &state, &*blocked, node).await }.boxed()
    };
    run_workers(&of_workers, queue, PARALLEL_WORKERS, work).await;
}

/// Whether a node needs the taint and does not have it yet, according to the caches.
pub(crate) fn is_pending(context: &ControllerContext, state: &DaemonSetState, node: &str) -> bool {
    may_be_pending(context, state, node)
        && context.caches.nodes.find("", node).is_some_and(|node| needs_taint_now(context, state, &node))
}

/// Whether DaemonSet pods are being drained from a node that does not have the taint.
pub(crate) fn may_be_pending(context: &ControllerContext, state: &DaemonSetState, node: &str) -> bool {
    state.targets.has_reached(node)
        && context.caches.nodes.find("", node).is_some_and(|node| !has_taint(&node))
}

fn needs_taint_now(context: &ControllerContext, state: &DaemonSetState, node: &Node) -> bool {
    let on_node = state.targets.on(&node.name);
    let pods = context.caches.pods.on_node(&node.name);
    needs_taint(node, &pods, &on_node, &state.deletions.lock(), context.clock.now())
}

fn subscribe(context: &ControllerContext, state: &Arc<DaemonSetState>) {
    let (nodes, clock) = (state.clone(), context.clock);
    context.caches.nodes.subscribe(move |change: &ObjectChange<Node>| {
        if let Some(node) = taken_from(change).filter(|node| nodes.targets.has_reached(&node.name)) {
            nodes.waits.taken(&node.name, clock.now());
        }
        if let Some(node) = change.latest()
            && change.old.as_ref().map(|old| &old.taints) != change.new.as_ref().map(|new| &new.taints)
        {
            nodes.queue.add(node.name.clone());
        }
    });
    let pods = state.queue.clone();
    context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
        for node in nodes_of(change) {
            pods.add(node.to_owned());
        }
    });
    let maintenances = state.queue.clone();
    context.caches.maintenances.subscribe(move |change: &ObjectChange<NodeMaintenance>| {
        changed_nodes(change).into_iter().for_each(|node| maintenances.add(node));
    });
}

async fn reconcile(
    context: &ControllerContext,
    state: &DaemonSetState,
    blocked: &(impl Fn(&str) + Sync),
    name: String,
) -> Result<Requeue, CallError> {
    let is_draining = state.targets.has_reached(&name);
    let Some(node) = context.caches.nodes.find("", &name) else {
        state.over(&name, false);
        return Ok(Requeue::Never);
    };
    let needed = needs_taint_now(context, state, &node);
    let Some(patch) = patch(&node, needed) else {
        state.over(&name, is_draining);
        return Ok(Requeue::Never);
    };
    if needed && let Some(wait) = pause(context, state, blocked, &node) {
        return Ok(Requeue::After(wait));
    }
    context.check_lease()?;
    let api: Api<HostNode> = Api::all(context.client.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
    match api.patch(&name, &params, &Patch::Merge(patch)).await {
        Ok(_) => {
            state.refusals.forget(&name);
            let change = if needed { "added" } else { "removed" };
            let maintenance = state.targets.on(&name).names();
            info!(node = name, maintenance, taint = TAINT, "{change} the drain taint");
            // If others undo it before the cache has shown it, no change wakes us.
            Ok(Requeue::After(SHOWS_WITHIN))
        }
        Err(error) => match classify(&error) {
            ApiErrorKind::NotFound => Ok(Requeue::Never),
            ApiErrorKind::Conflict => Ok(Requeue::WithBackoff),
            _ => {
                if state.refusals.note(&name, &error) {
                    blocked(&name);
                    if !needed {
                        publish_it_stays(context, &node, &state.refusals);
                    }
                }
                Err(CallError::of("changing the node's taints")(error))
            }
        },
    }
}

/// Publishes an event that the taint cannot be removed. No blocker would say so, and no DaemonSet pod comes
/// back while the node has it.
fn publish_it_stays(context: &ControllerContext, node: &Node, refusals: &NodeWriteRefusals) {
    let words = refusals.of(&node.name).unwrap_or_default();
    let message =
        format!("The taint {TAINT} keeps DaemonSet pods away and cannot be removed: {}", quoted(&words));
    context.recorder.warning(node, NODE_UPDATE_REFUSED, message);
}

/// Returns how long to wait before the taint is set again, if others have removed it more than once; an event
/// on the node says so.
fn pause(
    context: &ControllerContext,
    state: &DaemonSetState,
    blocked: &impl Fn(&str),
    node: &Node,
) -> Option<Duration> {
    let now = context.clock.now();
    let due = state.waits.record_missing(&node.name, now);
    if let Some((times, began)) = due.report {
        let message = format!(
            "The taint {TAINT} was taken away {times} times since {} while DaemonSet pods are drained from \
             the node; it is set again, later each time, and pods that it keeps away are not deleted without it",
            format_seconds(began)
        );
        context.recorder.warning(node, TAINT_CONFLICT, message);
        blocked(&node.name);
    }
    Duration::try_from(due.at.duration_since(now)).ok().filter(|wait| !wait.is_zero())
}
