//! drydock-controller-manager with the rights of its service account: who reads its metrics, what it does to a pod of a
//! DaemonSet, and how it counts repeated events.

use anyhow::{Context, Result, ensure};
use drydock_testkit::kinds::{eviction_requests, node_maintenance};
use drydock_testkit::wait::{retry, until, until_some};
use http::{Request, StatusCode, header};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::shared::{LIMIT, Namespace, shared};

#[tokio::test(flavor = "multi_thread")]
async fn the_managers_metrics_are_for_who_may_read_them() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("reader-of-metrics").await?;
    let token = namespace.kubectl.ok(&["create", "token", "default"]).await?;
    let url = shared.drydock.manager_url()?;
    let read = async || metrics(&url, token.trim()).await;
    ensure!(read().await? == StatusCode::FORBIDDEN);
    let role = ["create", "clusterrole", "reader-of-metrics", "--verb=get", "--non-resource-url=/metrics"];
    namespace.kubectl.ok(&role).await?;
    let account = "--serviceaccount=reader-of-metrics:default";
    let binding =
        ["create", "clusterrolebinding", "reader-of-metrics", "--clusterrole=reader-of-metrics", account];
    namespace.kubectl.ok(&binding).await?;
    let late = || "who may read the metrics does not get them".to_owned();
    retry(LIMIT, late, async || Ok(read().await? == StatusCode::OK)).await
}

async fn metrics(url: &str, token: &str) -> Result<StatusCode> {
    let mut config = kube::Config::new(url.parse()?);
    config.accept_invalid_certs = true;
    let request = Request::get("/metrics").header(header::AUTHORIZATION, format!("Bearer {token}"));
    Ok(Client::try_from(config)?.send(request.body(Vec::new())?.map(Into::into)).await?.status())
}

/// Its turn comes when the maintenance has come to DaemonSets, and it deletes the pod.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_a_daemon_set_is_let_go_by_its_own_interceptor() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("agents").await?;
    let node = shared.node("agents").await?;
    namespace.kubectl.apply(&daemon_set(&node, &json!([{"operator": "Exists"}]))).await?;
    let pod = pod_of(&namespace).await?;
    namespace.kubectl.apply(&node_maintenance("agents", "Drain", &[&node])).await?;
    let requests = eviction_requests(&namespace.client, &namespace.name);
    let is_let_go = |request: Option<&DynamicObject>| {
        let entries = request.and_then(|request| request.data["status"]["interceptors"].as_array());
        let is_it = |entry: &Value| entry["name"] == "daemonset.apps.k8s.io" && !entry["startTime"].is_null();
        entries.is_some_and(|entries| entries.iter().any(is_it))
    };
    until(requests.clone(), &pod, LIMIT, "let go by the interceptor of DaemonSets", is_let_go).await?;
    // The pod goes, the maintenance withdraws, and the request is removed.
    until(requests, &pod, LIMIT, "removed", |request: Option<&DynamicObject>| request.is_none()).await?;
    complete(&namespace, "agents").await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/agents", "daemonset/agents"]).await.map(drop)
}

/// The pod was deleted before the taint stood that keeps its DaemonSet away: it came back, and was deleted again.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_a_daemon_set_is_deleted_once_and_is_back_after_the_maintenance() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("agents-once").await?;
    let node = shared.node("agents-once").await?;
    namespace.kubectl.apply(&daemon_set(&node, &json!([]))).await?;
    let first = pod_of(&namespace).await?;
    namespace.kubectl.apply(&node_maintenance("agents-once", "Drain", &[&node])).await?;
    let wait = ["wait", "nodemaintenance/agents-once", "--for=condition=Drained"];
    namespace.kubectl.ok(&wait).await?;
    let about = "--field-selector=involvedObject.kind=DaemonSet,reason=SuccessfulCreate";
    let created = namespace.kubectl.ok(&["get", "events", about, "--output=name"]).await?;
    ensure!(created.lines().count() == 1, "it put pods on a node that was being drained: {created}");
    complete(&namespace, "agents-once").await?;
    ensure!(pod_of(&namespace).await? != first);
    namespace.kubectl.ok(&["delete", "nodemaintenance/agents-once", "daemonset/agents"]).await.map(drop)
}

/// The taint would keep the higher one away as well, so that it does not stand when the lower one's pod is
/// deleted, which comes back: the drain goes on all the same.
#[tokio::test(flavor = "multi_thread")]
async fn daemon_sets_of_two_priorities_leave_one_after_the_other() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("agents-of-two").await?;
    let node = shared.node("agents-of-two").await?;
    let mut higher = daemon_set(&node, &json!([]));
    higher["metadata"]["name"] = json!("higher");
    higher["spec"]["selector"]["matchLabels"]["app"] = json!("higher");
    higher["spec"]["template"]["metadata"]["labels"]["app"] = json!("higher");
    higher["spec"]["template"]["spec"]["priorityClassName"] = json!("system-cluster-critical");
    namespace.kubectl.apply(&daemon_set(&node, &json!([]))).await?;
    namespace.kubectl.apply(&higher).await?;
    let ready = ["rollout", "status", "daemonset"];
    for name in ["agents", "higher"] {
        namespace.kubectl.ok(&[&ready[..], &[name]].concat()).await?;
    }
    namespace.kubectl.apply(&node_maintenance("agents-of-two", "Drain", &[&node])).await?;
    let wait = ["wait", "nodemaintenance/agents-of-two", "--for=condition=Drained"];
    namespace.kubectl.ok(&wait).await?;
    complete(&namespace, "agents-of-two").await?;
    for name in ["agents", "higher"] {
        namespace.kubectl.ok(&[&ready[..], &[name]].concat()).await?;
    }
    let all = ["delete", "nodemaintenance/agents-of-two", "daemonset/agents", "daemonset/higher"];
    namespace.kubectl.ok(&all).await.map(drop)
}

/// A node that is drained again has the same event again: one event with a count.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_told_again_is_counted() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("event-counted").await?;
    let node = shared.node("event-counted").await?;
    namespace.kubectl.apply(&node_maintenance("event-counted", "Drain", &[&node])).await?;
    let drained = async |times: i64| {
        let about = format!("--field-selector=involvedObject.name={node},reason=NodeDrained");
        let get = ["get", "events", "--namespace=default", &about, "--output=json"];
        let is_counted = async || {
            let events: Value = serde_json::from_str(&namespace.kubectl.ok(&get).await?)?;
            let counts =
                events["items"].as_array().into_iter().flatten().map(|event| event["count"].as_i64());
            Ok(counts.flatten().max() >= Some(times))
        };
        retry(LIMIT, || format!("the event NodeDrained was not counted {times} times"), is_counted).await
    };
    drained(1).await?;
    // It comes although the node is cordoned, and is evicted.
    let late = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}],
                 "tolerations": [{"operator": "Exists"}]},
    });
    namespace.kubectl.apply(&late).await?;
    drained(2).await?;
    let complete = json!({"spec": {"stage": "Complete"}}).to_string();
    namespace
        .kubectl
        .ok(&["patch", "nodemaintenance", "event-counted", "--type=merge", "-p", &complete])
        .await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/event-counted"]).await.map(drop)
}

async fn complete(namespace: &Namespace, maintenance: &str) -> Result<()> {
    let complete = json!({"spec": {"stage": "Complete"}}).to_string();
    namespace
        .kubectl
        .ok(&["patch", "nodemaintenance", maintenance, "--type=merge", "-p", &complete])
        .await
        .map(drop)
}

fn daemon_set(node: &str, tolerations: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agents"},
        "spec": {
            "selector": {"matchLabels": {"app": "agents"}},
            "template": {
                "metadata": {"labels": {"app": "agents"}},
                "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": tolerations,
                         "containers": [{"name": "c", "image": "none"}]},
            },
        },
    })
}

/// UID of its running pod.
async fn pod_of(namespace: &Namespace) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    let running = async || {
        let all = pods.list(&ListParams::default()).await?;
        let is_running = |pod: &&Pod| pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running");
        Ok(all.items.iter().find(is_running).and_then(ResourceExt::uid))
    };
    until_some(LIMIT, || "the DaemonSet has no running pod".to_owned(), running).await.context("no pod")
}
