//! A NoSchedule taint of our own on nodes whose drain has come to DaemonSet pods, so that these do not come straight back:
//! the DaemonSet controller tolerates a cordon for its pods, but not this taint. Never NoExecute, which would kill pods
//! outside their tier. It goes when no maintenance in Drain has the node's DaemonSet pods among its targets.

use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::cache::Taint;
use drydock_runtime::queue::{Backoff, Queue};
use drydock_runtime::{Change, Context, Failure, Node, Outcome, WorkError, classify, run_workers};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Node as HostNode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tracing::info;

use crate::daemonset::{drained_nodes, has_drained};

/// Key of the taint.
pub const TAINT: &str = "nodemaintenance.k8s.io/draining-daemonsets";
/// Its effect.
pub const EFFECT: &str = "NoSchedule";
/// Field manager of the taint.
const MANAGER: &str = "drydock-daemonset-taint";

/// A failed write.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("changing the node's taints: {0}")]
    Patch(#[source] kube::Error),
    #[error("the lease is not held")]
    NoLease,
}

impl WorkError for Error {
    fn call(&self) -> Option<&kube::Error> {
        match self {
            Self::Patch(error) => Some(error),
            Self::NoLease => None,
        }
    }
}

/// Runs until shutdown. Nodes and NodeMaintenances must be among the caches that are fed.
pub async fn run(context: Context) {
    let queue: Queue<String> = Queue::new("daemonset_taint", &context.metrics, Backoff::WRITES);
    context.caches.nodes.wait_until_synced().await;
    context.caches.maintenances.wait_until_synced().await;
    subscribe(&context, &queue);
    let stop = context.shutdown.clone();
    let work = move |node| {
        let context = context.clone();
        async move { reconcile(&context, node).await }.boxed()
    };
    run_workers(queue, 8, stop, work).await;
}

fn subscribe(context: &Context, queue: &Queue<String>) {
    let nodes = queue.clone();
    context.caches.nodes.subscribe(move |change: &Change<Node>| {
        if let Some(node) = &change.new
            && change.old.as_ref().is_none_or(|old| old.taints != node.taints)
        {
            nodes.add(node.name.clone());
        }
    });
    let maintenances = queue.clone();
    context.caches.maintenances.subscribe(move |change: &Change<NodeMaintenance>| {
        let of = |m: Option<&NodeMaintenance>| m.map(drained_nodes).unwrap_or_default();
        let (old, new) = (of(change.old.as_deref()), of(change.new.as_deref()));
        old.symmetric_difference(&new).for_each(|node| maintenances.add(node.clone()));
    });
}

async fn reconcile(context: &Context, name: String) -> Result<Outcome, Error> {
    let Some(node) = context.caches.nodes.find("", &name) else { return Ok(Outcome::Done) };
    let wanted = context.caches.maintenances.all().iter().any(|m| has_drained(m, &name));
    let Some(patch) = patch(&node, wanted) else { return Ok(Outcome::Done) };
    if !context.may_write() {
        return Err(Error::NoLease);
    }
    let api: Api<HostNode> = Api::all(context.client.clone());
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..Default::default() };
    match api.patch(&name, &params, &Patch::Merge(patch)).await {
        Ok(_) => {
            info!(node = name, tainted = wanted, "DaemonSet pods are drained from the node");
            Ok(Outcome::Done)
        }
        Err(error) => match classify(&error) {
            Failure::NotFound => Ok(Outcome::Done),
            Failure::Conflict => Ok(Outcome::Retry),
            _ => Err(Error::Patch(error)),
        },
    }
}

/// The patch that adds or removes our taint alone, if it is to change. The list is atomic for the host, also for a
/// strategic merge patch: the whole of it is written, and only onto the node that was seen.
fn patch(node: &Node, wanted: bool) -> Option<Value> {
    let (ours, mut taints): (Vec<_>, Vec<_>) = node.taints.iter().cloned().partition(|t| t.key == TAINT);
    let right = match wanted {
        true => matches!(ours.as_slice(), [taint] if taint.effect == EFFECT),
        false => ours.is_empty(),
    };
    if right {
        return None;
    }
    if wanted {
        taints.push(Taint { key: TAINT.to_owned(), effect: EFFECT.to_owned(), ..Taint::default() });
    }
    let seen = json!({"uid": node.uid, "resourceVersion": node.resource_version});
    Some(json!({"metadata": seen, "spec": {"taints": taints}}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn node(taint: Option<&str>) -> Node {
        let ours = |effect: &str| Taint { key: TAINT.into(), effect: effect.into(), ..Taint::default() };
        Node {
            name: "n".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            taints: [Some(other()), taint.map(ours)].into_iter().flatten().collect(),
            ..Default::default()
        }
    }

    fn other() -> Taint {
        serde_json::from_value(other_on_the_wire()).unwrap()
    }

    fn other_on_the_wire() -> Value {
        json!({"key": "other", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"})
    }

    /// The list has no merge key: a strategic merge patch of ours alone took everybody else's taints off the node, and
    /// the removal of ours was refused for ever (422, `taints[0].effect: Required value`).
    #[test]
    fn only_our_own_taint_changes_in_the_list_which_is_written_as_a_whole() {
        assert_eq!(patch(&node(Some(EFFECT)), true), None);
        assert_eq!(patch(&node(None), false), None);
        let added = patch(&node(None), true).unwrap();
        assert_eq!(
            added["spec"]["taints"],
            json!([other_on_the_wire(), {"key": TAINT, "effect": "NoSchedule"}])
        );
        let removed = patch(&node(Some(EFFECT)), false).unwrap();
        assert_eq!(removed["spec"]["taints"], json!([other_on_the_wire()]));
    }

    #[test]
    fn the_patch_holds_for_the_version_that_was_seen_only() {
        for (present, wanted) in [(Some(EFFECT), false), (None, true)] {
            let seen = patch(&node(present), wanted).unwrap()["metadata"].clone();
            assert_eq!(seen, json!({"uid": "u", "resourceVersion": "7"}));
        }
    }

    #[test]
    fn foreign_effect_under_our_key_is_put_right() {
        let put_right = patch(&node(Some("NoExecute")), true).unwrap();
        assert_eq!(put_right["spec"]["taints"][1], json!({"key": TAINT, "effect": "NoSchedule"}));
    }
}
