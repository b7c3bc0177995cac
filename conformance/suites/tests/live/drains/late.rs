//! A request of the maintenance controller that arrives when the maintenance has ended, or when the node has left it.

use anyhow::{Result, ensure};
use drydock_api::eviction_request::maintenances::{
    MAINTENANCES_ANNOTATION, MaintenanceReference, NODE_ANNOTATION, encode,
};
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance, node_maintenances};
use drydock_testkit::wait::until;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;

use super::{LIMIT, labelled};
use crate::shared::{Namespace, shared};

const USER: &str = "--as=system:serviceaccount:drydock-system:drydock-controller-manager";

/// It was held up on the way while the stage was still Drain.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_arrives_when_its_maintenance_has_ended_is_refused() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("late").await?;
    let (node, other) = (shared.node("late").await?, shared.node("late-other").await?);
    let uid = namespace.held_pod("p", &node).await?;
    let kubectl = &namespace.kubectl;
    kubectl.apply(&named_node_maintenance("late", "Complete", &[&node])).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);

    let refused = request_eviction(&namespace, &uid, "late", None).await?;
    let why = "is forbidden: none of the NodeMaintenances that ask for it is in stage Drain any more";
    ensure!(refused.contains(why), "{refused}");
    ensure!(requests.get_opt(&uid).await?.is_none(), "it was created");
    let unknown = request_eviction(&namespace, &uid, "late-unknown", None).await?;
    ensure!(unknown.contains(why), "{unknown}");

    kubectl.apply(&named_node_maintenance("late-other", "Drain", &[&other])).await?;
    let accepted = request_eviction(&namespace, &uid, "late-other", None).await?;
    ensure!(accepted.contains("serverside-applied"), "{accepted}");
    kubectl.ok(&["delete", "nodemaintenance", "late", "late-other"]).await.map(drop)
}

/// The maintenance goes on with other nodes, and the one that has left is in service again.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_arrives_when_its_node_has_left_the_maintenance_is_refused() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("left").await?;
    let (leaver, other) = (shared.node("left").await?, shared.node("left-other").await?);
    let (uid, stays) = (namespace.held_pod("p", &leaver).await?, namespace.held_pod("q", &other).await?);
    let kubectl = &namespace.kubectl;
    for node in [&leaver, &other] {
        kubectl.ok(&["label", "node", node, "left=drain"]).await?;
    }
    kubectl
        .apply(&labelled("left", "left", &json!([{"podPriority": i32::MAX, "podType": "Default"}])))
        .await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    for uid in [&uid, &stays] {
        let asks_for_it = |request: Option<&DynamicObject>| {
            request.is_some_and(|r| r.data["spec"]["requesters"][0]["name"] == NODE_MAINTENANCE)
        };
        until(requests.clone(), uid, LIMIT, "asked for", asks_for_it).await?;
    }
    let made = requests.get(&uid).await?.annotations().get(NODE_ANNOTATION).cloned();
    ensure!(made.as_ref() == Some(&leaver), "the node that it was asked for on: {made:?}");

    kubectl.ok(&["label", "node", &leaver, "left-"]).await?;
    kubectl.ok(&["wait", "evreq", &uid, "--for=condition=Canceled"]).await?;
    let is_released = |maintenance: Option<&DynamicObject>| {
        let nodes = maintenance.and_then(|m| m.data["status"]["nodeStatuses"].as_array());
        nodes.is_some_and(|all| all.iter().all(|node| node["nodeRef"]["name"] != leaver.as_str()))
    };
    until(node_maintenances(&namespace.client), "left", LIMIT, "without the node", is_released).await?;
    kubectl.ok(&["delete", "evreq", &uid]).await?;
    let refused = request_eviction(&namespace, &uid, "left", Some(&leaver)).await?;
    let why = "is forbidden: none of the NodeMaintenances that ask for it drains its node any more";
    ensure!(refused.contains(why), "{refused}");
    ensure!(requests.get_opt(&uid).await?.is_none(), "it was created");
    kubectl.ok(&["delete", "nodemaintenance", "left"]).await.map(drop)
}

/// Applies a request as the maintenance controller does. Returns what kubectl prints.
async fn request_eviction(
    namespace: &Namespace,
    pod: &str,
    maintenance: &str,
    node: Option<&str>,
) -> Result<String> {
    let mut annotations =
        json!({(MAINTENANCES_ANNOTATION): encode(&[MaintenanceReference::new(maintenance, "")])});
    if let Some(node) = node {
        annotations[NODE_ANNOTATION] = node.into();
    }
    let request = json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
        "metadata": {
            "name": pod, "namespace": namespace.name,
            "annotations": annotations,
        },
        "spec": {"target": {"pod": {"name": "p", "uid": pod}}, "requesters": [{"name": NODE_MAINTENANCE}]},
    });
    let manager = format!("--field-manager={NODE_MAINTENANCE}");
    let arguments = ["apply", "--server-side", &manager, USER, "--filename=-"];
    let output = namespace.kubectl.run(&arguments, &request.to_string()).await?;
    Ok(output.out + &output.err)
}
