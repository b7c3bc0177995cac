//! Plans that select pods by labels.

use anyhow::Result;
use drydock_testkit::wait::until;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::{Value, json};

use super::{LIMIT, budget, drained, labelled, pod, priority_class};
use crate::shared::shared;

/// The pod was asked to leave, as both plans had come to it, and no drain target covered it: neither maintenance ended.
#[tokio::test(flavor = "multi_thread")]
async fn two_maintenances_with_crossing_selectors_on_daemon_sets_end() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("crossing").await?;
    let client = &namespace.client;
    let node = shared.node("crossing").await?;
    namespace.kubectl.apply(&daemon_set(&node)).await?;
    let runs = |set: Option<&DaemonSet>| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.number_ready == 1)
    };
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), &namespace.name);
    until(sets, "crossing", LIMIT, "ready", runs).await?;
    // Both maintenances wait for it before they come to DaemonSets.
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace.name);
    priority_class(client, "crossing", 100).await?;
    pod(&pods, "first", &node, "crossing", json!({"app": "first"})).await?;
    namespace.kubectl.apply(&budget("first")).await?;
    namespace.kubectl.ok(&["label", "node", &node, "example.com/crossing="]).await?;
    for label in ["app", "tier"] {
        let selector = json!({"matchLabels": {label: "crossing"}});
        let plan = json!([{"podType": "DaemonSet", "podPriority": 1000000, "podSelector": selector}]);
        let name = format!("crossing-{label}");
        namespace.kubectl.apply(&labelled(&name, "example.com/crossing", &plan)).await?;
    }
    for label in ["app", "tier"] {
        drained(client, &format!("crossing-{label}"), "False").await?;
    }
    namespace.kubectl.ok(&["delete", "poddisruptionbudget/first"]).await?;
    for label in ["app", "tier"] {
        drained(client, &format!("crossing-{label}"), "True").await?;
    }
    namespace
        .kubectl
        .ok(&["delete", "nodemaintenance/crossing-app", "nodemaintenance/crossing-tier"])
        .await
        .map(drop)
}

fn daemon_set(node: &str) -> Value {
    let labels = json!({"app": "crossing", "tier": "crossing"});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "crossing"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": node},
                         "containers": [{"name": "c", "image": "none"}]},
            },
        },
    })
}
