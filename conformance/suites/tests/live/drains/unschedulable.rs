//! Pods whose replacements find no other node.

use anyhow::Result;
use drydock_testkit::kinds::{named_node_maintenance, node_maintenances};
use drydock_testkit::wait::{retry, until};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{LIMIT, deployment, drained};
use crate::shared::shared;

/// The drain ended as if all were well, while the replacements of its pods ran nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn pods_of_our_evictions_that_find_no_node_are_told_of_until_they_do() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("no-room").await?;
    let node = shared.node("no-room").await?;
    let pods = json!({
        "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [{"name": "c", "image": "none"}],
    });
    namespace.kubectl.apply(&deployment("bound", 2, pods)).await?;
    namespace.kubectl.ok(&["rollout", "status", "deployment/bound"]).await?;
    namespace.kubectl.apply(&named_node_maintenance("no-room", "Drain", &[&node])).await?;
    let says = |status: &'static str, words: &'static str| {
        move |object: Option<&DynamicObject>| {
            let conditions = object.and_then(|o| o.data["status"]["conditions"].as_array());
            let is = |c: &Value| c["type"] == "EvictedPodsUnschedulable" && c["status"] == status;
            let mut found = conditions.into_iter().flatten().filter(|c| is(c));
            found.any(|c| c["message"].as_str().is_some_and(|message| message.contains(words)))
        }
    };
    let maintenances = || node_maintenances(&namespace.client);
    until(maintenances(), "no-room", LIMIT, "2 pods without a node", says("True", "2 of ReplicaSet "))
        .await?;
    let list =
        ["get", "events", "-n", "default", "--field-selector", "reason=PodsUnschedulable", "-o", "name"];
    retry(
        LIMIT,
        || "no event PodsUnschedulable".to_owned(),
        async || Ok(!namespace.kubectl.ok(&list).await?.trim().is_empty()),
    )
    .await?;
    drained(&namespace.client, "no-room", "True").await?;
    namespace.kubectl.ok(&["scale", "deployment/bound", "--replicas=0"]).await?;
    until(maintenances(), "no-room", LIMIT, "all scheduled", says("False", "are scheduled")).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/no-room"]).await.map(drop)
}
