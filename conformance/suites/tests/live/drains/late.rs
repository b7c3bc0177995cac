//! A request of the maintenance controller that arrives when the maintenance has ended.

use anyhow::{Result, ensure};
use drydock_api::eviction_request::maintenances::{MAINTENANCES_ANNOTATION, MaintenanceReference, encode};
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance};
use serde_json::json;

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

    let refused = request_eviction(&namespace, &uid, "late").await?;
    let why = "is forbidden: none of the NodeMaintenances that ask for it is in stage Drain any more";
    ensure!(refused.contains(why), "{refused}");
    ensure!(requests.get_opt(&uid).await?.is_none(), "it was created");
    let unknown = request_eviction(&namespace, &uid, "late-unknown").await?;
    ensure!(unknown.contains(why), "{unknown}");

    kubectl.apply(&named_node_maintenance("late-other", "Drain", &[&other])).await?;
    let accepted = request_eviction(&namespace, &uid, "late-other").await?;
    ensure!(accepted.contains("serverside-applied"), "{accepted}");
    kubectl.ok(&["delete", "nodemaintenance", "late", "late-other"]).await.map(drop)
}

/// Applies a request as the maintenance controller does. Returns what kubectl prints.
async fn request_eviction(namespace: &Namespace, pod: &str, maintenance: &str) -> Result<String> {
    let request = json!({
        "apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
        "metadata": {
            "name": pod, "namespace": namespace.name,
            "annotations": {(MAINTENANCES_ANNOTATION): encode(&[MaintenanceReference::new(maintenance, "")])},
        },
        "spec": {"target": {"pod": {"name": "p", "uid": pod}}, "requesters": [{"name": NODE_MAINTENANCE}]},
    });
    let manager = format!("--field-manager={NODE_MAINTENANCE}");
    let arguments = ["apply", "--server-side", &manager, USER, "--filename=-"];
    let output = namespace.kubectl.run(&arguments, &request.to_string()).await?;
    Ok(output.out + &output.err)
}
