//! Drains of pods that only look like those of DaemonSets and like static ones: they run as any workload does.

use anyhow::{Context, Result};
use drydock_testkit::kinds::named_node_maintenance;
use drydock_testkit::wait::until;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{LIMIT, drained};
use crate::shared::{MIRROR, Namespace, shared};

/// A DaemonSet that was deleted owns pods for as long as somebody's finalizer keeps it: the host's garbage collector leaves them
/// alone, and the drain did too, and called the node drained.
#[tokio::test(flavor = "multi_thread")]
async fn the_bare_pod_of_a_daemon_set_that_a_finalizer_holds_is_drained_as_a_workload() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("held-daemon-set").await?;
    let node = shared.node("held-daemon-set").await?;
    let held = held_daemon_set(&namespace, "held").await?;
    namespace.pod_of("inert", &node, json!({}), json!([owner("held", &held)])).await?;
    drain_up_to_workloads(&namespace, "held-daemon-set", &node).await?;
    is_gone(&namespace, "inert").await?;
    drained(&namespace.client, "held-daemon-set", "True").await?;
    let sets: Api<DaemonSet> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    sets.patch("held", &PatchParams::default(), &released).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/held-daemon-set"]).await.map(drop)
}

/// It was a static pod to the drain, which no agent on the node would stop.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_the_mirror_annotation_alone_is_drained() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("mirror-alone").await?;
    let node = shared.node("mirror-alone").await?;
    namespace.pod("alone", &node, json!({MIRROR: "a-hash"})).await?;
    namespace.mirror_pod("static", &node).await?;
    drain_up_to_workloads(&namespace, "mirror-alone", &node).await?;
    is_gone(&namespace, "alone").await?;
    drained(&namespace.client, "mirror-alone", "True").await?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    pods.get("static").await.context("the static pod has left too")?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/mirror-alone"]).await.map(drop)
}

/// The host is asked for the DaemonSet, which the cache does not have: the pod would wait forever. (The host's garbage collector
/// removes such a pod too, in its own time.)
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_names_a_daemon_set_that_never_was_keeps_no_node() -> Result<()> {
    keeps_no_node("invented-daemon-set", "invented").await
}

/// The host takes such an owner, and no question for it; its garbage collector never removes the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_names_a_daemon_set_that_cannot_be_keeps_no_node() -> Result<()> {
    keeps_no_node("impossible-daemon-set", "a%b").await
}

async fn keeps_no_node(name: &str, daemon_set: &str) -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace(name).await?;
    let node = shared.node(name).await?;
    let invented = owner(daemon_set, "11111111-2222-3333-4444-555555555555");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "inert", "ownerReferences": [invented]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
    }))?;
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    pods.create(&PostParams::default(), &pod).await?;
    drain_up_to_workloads(&namespace, name, &node).await?;
    is_gone(&namespace, "inert").await?;
    drained(&namespace.client, name, "True").await?;
    namespace.kubectl.ok(&["delete", &format!("nodemaintenance/{name}")]).await.map(drop)
}

/// Makes a DaemonSet that no node takes, and deletes it while a finalizer keeps it; returns its UID.
async fn held_daemon_set(namespace: &Namespace, name: &str) -> Result<String> {
    let labels = json!({"set": name});
    let set: DaemonSet = serde_json::from_value(json!({
        "metadata": {"name": name, "finalizers": ["example.com/held"]},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"example.com/none": "none"}, "containers": [{"name": "c", "image": "none"}]},
        }},
    }))?;
    let sets: Api<DaemonSet> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let made = sets.create(&PostParams::default(), &set).await?;
    sets.delete(name, &DeleteParams::background()).await?;
    let is_held = |set: Option<&DaemonSet>| set.is_some_and(|set| set.metadata.deletion_timestamp.is_some());
    until(sets, name, LIMIT, "held by its finalizer", is_held).await?;
    made.uid().context("a DaemonSet without uid")
}

fn owner(name: &str, uid: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": uid, "controller": true})
}

async fn drain_up_to_workloads(namespace: &Namespace, name: &str, node: &str) -> Result<()> {
    let mut maintenance = named_node_maintenance(name, "Drain", &[node]);
    maintenance["spec"]["lastPodType"] = "Default".into();
    namespace.kubectl.apply(&maintenance).await.map(drop)
}

async fn is_gone(namespace: &Namespace, pod: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    until(pods, pod, LIMIT, "gone", |pod: Option<&Pod>| pod.is_none()).await.map(drop)
}
