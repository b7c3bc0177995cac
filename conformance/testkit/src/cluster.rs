//! Nodes whose kubelet is kwok. Scheduling, controllers and budgets on them are real.

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::wait::{LIMIT, until};

/// Creates `count` nodes, `PREFIX-000` and on, and waits until each is ready.
pub async fn create_nodes(client: &Client, prefix: &str, count: usize) -> Result<Vec<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let names: Vec<String> = (0..count).map(|i| format!("{prefix}-{i:03}")).collect();
    stream::iter(&names)
        .map(Ok)
        .try_for_each_concurrent(8, |name| {
            let nodes = nodes.clone();
            async move {
                nodes.create(&PostParams::default(), &node(name)?).await?;
                until(nodes, name, LIMIT, "ready", |node: Option<&Node>| node.is_some_and(is_ready)).await?;
                anyhow::Ok(())
            }
        })
        .await?;
    Ok(names)
}

/// Whether the node reports that it is ready.
pub fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Whether the scheduler may put pods on the node.
pub fn is_schedulable(node: &Node) -> bool {
    !node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

/// The names of some nodes.
pub fn names(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(ResourceExt::name_any).collect()
}

fn node(name: &str) -> Result<Node> {
    let size = json!({"cpu": "32", "memory": "256Gi", "pods": "110"});
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"allocatable": size, "capacity": size},
    }))?)
}
