//! The account of a node that an attacker has taken over.

use anyhow::{Context, Result};
use drydock_testkit::kinds::{eviction_request, eviction_requests, node_maintenance, node_maintenances};
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use serde_json::json;

use crate::shared::shared;

const NODE: &str = "system:node:taken-over";
const UID: &str = "00000000-0000-4000-8000-000000000000";

/// The node authorizer and RBAC give a kubelet nothing of ours, and its user is asked about as any other is.
#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_account_may_do_nothing_with_our_kinds() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("beside-a-node").await?;
    let config = Kubeconfig::read_from(shared.drydock.host.kubeconfig(NODE, &["system:nodes"])?)?;
    let node = shared.drydock.direct_as(config).await?;
    for (what, code) in attempts(&node, &namespace.name).await? {
        assert_eq!(code, Some(403), "{what}");
    }
    Ok(())
}

/// What it tries, and the code of each refusal.
async fn attempts(node: &Client, namespace: &str) -> Result<Vec<(&'static str, Option<u16>)>> {
    let (requests, maintenances) = (eviction_requests(node, namespace), node_maintenances(node));
    let post = PostParams::default();
    let request = serde_json::from_value(eviction_request("pod", UID, "a.example.com"))?;
    let maintenance = serde_json::from_value(node_maintenance("all", "Drain", &["taken-over"]))?;
    let merge = Patch::Merge(json!({"status": {"message": "evicted"}}));
    let patch = PatchParams::default();
    let refused = [
        ("create a request", requests.create(&post, &request).await.err()),
        ("create a maintenance", maintenances.create(&post, &maintenance).await.err()),
        ("list requests", requests.list(&ListParams::default()).await.err()),
        ("list maintenances", maintenances.list(&ListParams::default()).await.err()),
        ("write a request's status", requests.patch_status(UID, &patch, &merge).await.err()),
        ("write a maintenance's status", maintenances.patch_status("all", &patch, &merge).await.err()),
        ("delete a request", requests.delete(UID, &DeleteParams::default()).await.err()),
        ("delete a maintenance", maintenances.delete("all", &DeleteParams::default()).await.err()),
    ];
    let code = |error: Option<kube::Error>| match error {
        Some(kube::Error::Api(status)) => Ok(Some(status.code)),
        Some(other) => Err(other).context("no refusal"),
        None => Ok(None),
    };
    refused.into_iter().map(|(what, error)| Ok((what, code(error)?))).collect()
}
