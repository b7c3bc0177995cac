//! Nodes that come to a maintenance one after another.

use anyhow::Result;
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::kinds::node_maintenances;
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject};
use serde_json::json;

use super::{Departures, LIMIT, drained, labelled, pod, priority_class};
use crate::shared::shared;

/// When the first node was done the plan counted as finished: all pods of the next node left at once.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_are_labelled_one_after_another_are_each_drained_in_order() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("one-by-one").await?;
    let client = &namespace.client;
    let nodes = create_nodes(client, "one-by-one", 3).await?;
    priority_class(client, "one-by-one-high", 5000).await?;
    priority_class(client, "one-by-one-low", 100).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace.name);
    for node in &nodes {
        for class in ["low", "high"] {
            pod(&pods, &format!("{node}-{class}"), node, &format!("one-by-one-{class}"), json!({})).await?;
        }
    }
    let plan = json!([{"podPriority": 1000}, {"podPriority": 10000}]);
    namespace.kubectl.apply(&labelled("one-by-one", "example.com/one-by-one", &plan)).await?;
    drained(client, "one-by-one", "False").await?;
    for node in &nodes {
        let departures = Departures::of(&pods, 2).await?;
        namespace.kubectl.ok(&["label", "node", node, "example.com/one-by-one="]).await?;
        departures.are_in_order(&[&[&format!("{node}-low")], &[&format!("{node}-high")]]).await?;
        drained(client, "one-by-one", "True").await?;
    }
    // The last requests may end after their pods have gone.
    let evicted = |object: Option<&DynamicObject>| {
        object.is_some_and(|o| o.data["status"]["outcomes"]["evicted"] == 2 * nodes.len())
    };
    until(node_maintenances(client), "one-by-one", LIMIT, "all evictions counted", evicted).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/one-by-one"]).await.map(drop)
}
