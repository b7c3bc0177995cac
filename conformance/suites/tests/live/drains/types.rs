//! Drains of nodes with pods that cannot leave for good: those of a DaemonSet that tolerates everything, and
//! static ones.

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{named_node_maintenance, node_maintenances};
use drydock_testkit::wait::until;
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DynamicObject, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::{LIMIT, drained};
use crate::shared::{Namespace, shared};

/// The label that is set on a node when the test has seen enough of it.
const SEEN: &str = "example.com/seen";

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_up_to_type_default_ends_beside_daemon_sets_and_static_pods() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("default-alone").await?;
    let node = shared.node("default-alone").await?;
    let before = busy(&namespace, &node).await?;
    namespace.pod("workload", &node, json!({})).await?;
    let mut maintenance = named_node_maintenance("default-alone", "Drain", &[&node]);
    maintenance["spec"]["lastPodType"] = "Default".into();
    namespace.kubectl.apply(&maintenance).await?;
    drained(&namespace.client, "default-alone", "True").await?;
    let wait = ["wait", "--for=condition=WorkloadsDrained", "nodemaintenance/default-alone"];
    namespace.kubectl.ok(&wait).await?;
    ensure!(uids(&namespace).await? == before, "another pod than the workload has left");
    let nodes: Api<Node> = Api::all(namespace.client.clone());
    let says = |node: Option<&Node>| {
        let status = node.and_then(|node| node.status.as_ref());
        let found = status.and_then(|s| s.conditions.iter().flatten().find(|c| c.type_ == "Drained"));
        found.is_some_and(|c| {
            c.status == "True" && c.message.as_deref().is_some_and(|m| m.contains("2 of later types stay"))
        })
    };
    until(nodes, &node, LIMIT, "drained up to type Default", says).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/default-alone", "daemonset/returns"]).await.map(drop)
}

/// `kubectl wait --for=condition=Drained` never returned, and nothing said what to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_ways_out_that_the_condition_names_lead_out_and_keep_the_node_cordoned() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("ways-out").await?;
    let node = shared.node("ways-out").await?;
    busy(&namespace, &node).await?;
    namespace.kubectl.apply(&named_node_maintenance("ways-out", "Drain", &[&node])).await?;
    let message = advice(&namespace.client, "ways-out").await?;
    let commands: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let [wait, replace] = commands.as_slice() else { anyhow::bail!("not two commands: {message}") };
    let host = &shared.drydock.host;
    ensure!(wait.contains("--for=condition=WorkloadsDrained"), "{wait}");
    run(host, wait).await?;
    let watch = stays_cordoned(&namespace.client, &node).await?;
    run(host, replace).await?;
    drained(&namespace.client, "ways-out-default", "True").await?;
    namespace.kubectl.ok(&["label", "node", &node, &format!("{SEEN}=all")]).await?;
    watch.await??;
    namespace.kubectl.ok(&["delete", "nodemaintenance/ways-out-default", "daemonset/returns"]).await.map(drop)
}

/// Puts a static pod and one of a DaemonSet that tolerates everything on a node; returns their UIDs.
async fn busy(namespace: &Namespace, node: &str) -> Result<Vec<String>> {
    namespace.mirror_pod("static", node).await?;
    let labels = json!({"app": "returns"});
    let spec = json!({
        "nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none"}],
    });
    let set: DaemonSet = serde_json::from_value(json!({
        "metadata": {"name": "returns"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }))?;
    let sets: Api<DaemonSet> = Api::namespaced(namespace.client.clone(), &namespace.name);
    sets.create(&PostParams::default(), &set).await?;
    let runs = |set: Option<&DaemonSet>| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.number_ready == 1)
    };
    until(sets, "returns", LIMIT, "ready", runs).await?;
    uids(namespace).await
}

async fn uids(namespace: &Namespace) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let mut uids: Vec<String> =
        pods.list(&ListParams::default()).await?.items.iter().filter_map(ResourceExt::uid).collect();
    uids.sort();
    Ok(uids)
}

/// The message of Drained=False, once it says what to do.
async fn advice(client: &Client, maintenance: &str) -> Result<String> {
    let message = |object: Option<&DynamicObject>| {
        let conditions = object?.data["status"]["conditions"].as_array()?;
        let drained = conditions.iter().find(|c| c["type"] == "Drained" && c["status"] == "False")?;
        drained["message"].as_str().filter(|message| message.contains("kubectl")).map(str::to_owned)
    };
    let advises = |object: Option<&DynamicObject>| message(object).is_some();
    let found = until(node_maintenances(client), maintenance, LIMIT, "saying what to do", advises).await?;
    message(found.as_ref()).context("no advice")
}

/// Runs a command line as an admin would paste it.
async fn run(host: &TestHost, line: &str) -> Result<()> {
    let path = format!("{}:{}", host.bin.display(), std::env::var("PATH")?);
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("PATH", path).env("KUBECONFIG", host.admin()).env("HOME", &host.dir);
    let said = tokio::time::timeout(LIMIT, shell.output()).await.context("it does not end")??;
    ensure!(said.status.success(), "{line}: {}", String::from_utf8_lossy(&said.stderr));
    Ok(())
}

/// Watches a node until it has the label [`SEEN`]; an error if there is a moment in which it is schedulable.
async fn stays_cordoned(client: &Client, node: &str) -> Result<JoinHandle<Result<()>>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let seen = nodes.get(node).await?;
    is_cordoned(&seen)?;
    let from = seen.resource_version().context("no version")?;
    let only = WatchParams::default().fields(&format!("metadata.name={node}"));
    let mut events = Box::pin(nodes.watch(&only, &from).await?);
    Ok(tokio::spawn(async move {
        loop {
            match events.try_next().await?.context("the watch has ended")? {
                WatchEvent::Modified(node) => {
                    is_cordoned(&node)?;
                    if node.labels().contains_key(SEEN) {
                        return Ok(());
                    }
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
                _ => {}
            }
        }
    }))
}

fn is_cordoned(node: &Node) -> Result<()> {
    let unschedulable = node.spec.as_ref().and_then(|spec| spec.unschedulable);
    ensure!(unschedulable == Some(true), "{} was schedulable", node.name_any());
    Ok(())
}
