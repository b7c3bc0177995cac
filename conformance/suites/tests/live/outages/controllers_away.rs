//! Controllers that are away while a budget blocks a pod (KEP-4563, Production Readiness: "Were upgrade and rollback
//! tested?").

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::{eviction_request, eviction_requests};
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{LIMIT, until};
use http::Request;
use kube::api::DynamicObject;
use kube::{Client, Config};
use serde_json::{Value, json};

const METRIC: &str = "evictionrequest_controller_imperative_evictions";
const REFUSED: &str = "Could not evict a pod due to failing eviction requests, number of retries: ";

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_pod_stays_while_the_controllers_are_away_and_goes_when_they_are_back() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let client = drydock.host.client().await?;
    let kubectl = Kubectl::new(&drydock.host);
    let node = create_nodes(&client, "away", 1).await?.pop().context("no node")?;
    let token = reader(&kubectl).await?;
    for name in ["a", "b"] {
        kubectl.apply(&pod(name, &node)).await?;
    }
    kubectl.ok(&["wait", "pod", "a", "b", "--for=condition=Ready"]).await?;
    kubectl.apply(&budget("b")).await?;
    kubectl.ok(&["wait", "pdb/b", "--for=jsonpath={.status.currentHealthy}=1"]).await?;
    let (a, b) = (request(&kubectl, "a").await?, request(&kubectl, "b").await?);
    kubectl.ok(&["wait", "pod/a", "--for=delete"]).await?;
    kubectl.ok(&["wait", "evictionrequest", &a, "--for=condition=Evicted"]).await?;
    let requests = eviction_requests(&client, "default");
    let refused = |object: Option<&DynamicObject>| {
        let entries = object.and_then(|object| object.data["status"]["interceptors"].as_array());
        let is_refused = |entry: &Value| entry["message"].as_str().is_some_and(|text| text.contains(REFUSED));
        entries.is_some_and(|entries| entries.iter().any(is_refused))
    };
    until(requests.clone(), &b, LIMIT, "refused evictions", refused).await?;
    let failed = failed_evictions(&drydock, token.trim(), &b, "b").await?;
    ensure!(failed > 0, "the metric counts no eviction of b that failed");

    ensure!(drydock.kill_manager()?, "there was no manager");
    kubectl.ok(&["delete", "pdb", "b"]).await?;
    ensure!(kubectl.object("pod", "b").await?["metadata"]["deletionTimestamp"].is_null());
    ensure!(refused(requests.get_opt(&b).await?.as_ref()), "its request has changed");

    drydock.start_manager().await?;
    kubectl.ok(&["wait", "pod/b", "--for=delete"]).await?;
    kubectl.ok(&["wait", "evictionrequest", &b, "--for=condition=Evicted"]).await.map(drop)
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "none"}]},
    })
}

fn budget(app: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    })
}

/// How many evictions for a request have failed, as the manager's metrics say.
async fn failed_evictions(drydock: &Drydock, token: &str, request: &str, pod: &str) -> Result<u64> {
    let mut config = Config::new(drydock.manager_url()?.parse()?);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.to_owned().into());
    let metrics = Client::try_from(config)?.request_text(Request::get("/metrics").body(Vec::new())?).await?;
    let labels = format!("{{namespace=\"default\",name=\"{request}\",pod=\"{pod}\"}} ");
    let counted = |line: &str| line.strip_prefix(METRIC)?.strip_prefix(&labels)?.parse().ok();
    Ok(metrics.lines().find_map(counted).unwrap_or_default())
}

/// The token of somebody who may read metrics.
async fn reader(kubectl: &Kubectl) -> Result<String> {
    let role = ["create", "clusterrole", "metrics-reader", "--verb=get", "--non-resource-url=/metrics"];
    kubectl.ok(&role).await?;
    let binding = ["create", "clusterrolebinding", "metrics-reader", "--clusterrole=metrics-reader"];
    kubectl.ok(&[&binding[..], &["--serviceaccount=default:default"]].concat()).await?;
    kubectl.ok(&["create", "token", "default"]).await
}

/// Requests the eviction of a pod. Returns the name of the request.
async fn request(kubectl: &Kubectl, pod: &str) -> Result<String> {
    let uid = kubectl.object("pod", pod).await?["metadata"]["uid"].as_str().context("no uid")?.to_owned();
    kubectl.apply(&eviction_request(pod, &uid, "admin.example.com")).await?;
    Ok(uid)
}
