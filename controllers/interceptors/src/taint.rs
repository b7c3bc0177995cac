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
    match api.patch(&name, &params, &Patch::Strategic(patch)).await {
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

/// The strategic merge patch that adds or removes the taint alone (taints merge by key), if it is to change. It holds
/// for the version that was seen only: applied to a node that has no taints any more, the directive that removes ours
/// would itself be taken for a taint, one without an effect.
fn patch(node: &Node, wanted: bool) -> Option<Value> {
    let ours = |taint: &&Taint| taint.key == TAINT;
    let present = node.taints.iter().find(ours);
    let item = match (wanted, present) {
        (true, Some(taint)) if taint.effect == EFFECT => return None,
        (true, _) => json!({"key": TAINT, "effect": EFFECT}),
        (false, Some(_)) => json!({"$patch": "delete", "key": TAINT}),
        (false, None) => return None,
    };
    let seen = json!({"uid": node.uid, "resourceVersion": node.resource_version});
    Some(json!({"metadata": seen, "spec": {"taints": [item]}}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn node(taint: Option<&str>) -> Node {
        let ours = |effect: &str| Taint { key: TAINT.into(), value: None, effect: effect.into() };
        let other = Taint { key: "other".into(), value: None, effect: "NoExecute".into() };
        Node {
            name: "n".into(),
            uid: "u".into(),
            resource_version: "7".into(),
            taints: [Some(other), taint.map(ours)].into_iter().flatten().collect(),
            ..Default::default()
        }
    }

    #[test]
    fn only_our_own_taint_is_touched_and_only_when_it_is_to_change() {
        assert_eq!(patch(&node(Some(EFFECT)), true), None);
        assert_eq!(patch(&node(None), false), None);
        let added = patch(&node(None), true).unwrap();
        assert_eq!(added["spec"]["taints"], json!([{"key": TAINT, "effect": "NoSchedule"}]));
        let removed = patch(&node(Some(EFFECT)), false).unwrap();
        assert_eq!(removed["spec"]["taints"], json!([{"$patch": "delete", "key": TAINT}]));
    }

    /// The host answered 422 (`taints[0].effect: Required value`) to a removal that was decided on an old cache.
    #[test]
    fn the_patch_holds_for_the_version_that_was_seen_only() {
        for (present, wanted) in [(Some(EFFECT), false), (None, true)] {
            let seen = patch(&node(present), wanted).unwrap()["metadata"].clone();
            assert_eq!(seen, json!({"uid": "u", "resourceVersion": "7"}));
        }
    }

    #[test]
    fn foreign_effect_under_our_key_is_put_right() {
        assert!(patch(&node(Some("NoExecute")), true).is_some());
    }
}
