//! Our server goes away and comes back: the host, which waits for us with all that concerns every API, recovers by itself,
//! and requests go on.

use anyhow::{Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{LIMIT, api_available, api_unavailable};
use jiff::Timestamp;
use serde_json::json;

use crate::shared::{ABSENT_INTERCEPTOR, Namespace};

const API_SERVICE: &str = "v1alpha1.coordination.k8s.io";

#[tokio::test(flavor = "multi_thread")]
async fn the_host_recovers_by_itself_when_our_server_is_back() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let (host, client) = (&drydock.host, drydock.host.client().await?);
    let kubectl = Kubectl::new(host);
    prepare(&kubectl).await?;
    drydock.kill_apiserver()?;
    api_unavailable(&client, API_SERVICE, LIMIT).await?;

    // Other APIs are served. What needs to know all APIs waits, and says for which one.
    kubectl.ok(&["get", "leases", "--all-namespaces"]).await?;
    kubectl.ok(&["delete", "namespace", "leaving", "--wait=false"]).await?;
    let stuck = "--for=condition=NamespaceDeletionDiscoveryFailure";
    kubectl.ok(&["wait", "namespace", "leaving", stuck]).await?;
    let refused = kubectl.refused(&["get", "evreq"]).await?;
    assert!(refused.contains("the server is currently unable to handle the request"), "{refused}");

    drydock.start_apiserver().await?;
    let available = api_available(&client, API_SERVICE, LIMIT);
    let namespace = kubectl.ok(&["wait", "namespace", "leaving", "--for=delete"]);
    let collected = async {
        kubectl.ok(&["delete", "configmap", "owner"]).await?;
        kubectl.ok(&["wait", "configmap", "dependent", "--for=delete"]).await
    };
    let (available, namespace, collected) = tokio::join!(available, namespace, collected);
    available?;
    namespace?;
    collected?;
    let found = kubectl.ok(&["api-resources", "--api-group=coordination.k8s.io", "--output=name"]).await?;
    assert!(found.contains("evictionrequests.coordination.k8s.io"), "{found}");
    assert!(kubectl.ok(&["get", "nm", "kept", "--output=name"]).await?.contains("kept"));
    Ok(())
}

/// A namespace to delete, an owner with a dependent, and an object of ours to find again.
async fn prepare(kubectl: &Kubectl) -> Result<()> {
    kubectl.ok(&["create", "namespace", "leaving"]).await?;
    kubectl.apply(&drydock_testkit::kinds::node_maintenance("kept", "Idle", &["nowhere"])).await?;
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    kubectl.apply(&map("owner")).await?;
    let owner = kubectl.object("configmap", "owner").await?;
    let mut dependent = map("dependent");
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    kubectl.apply(&dependent).await.map(drop)
}

/// Nobody can ask for an eviction meanwhile. An interceptor keeps its turn, and can end it afterwards. The eviction API is the
/// host's: a pod that imperative eviction has tried to evict goes as soon as its budget lets it.
#[tokio::test(flavor = "multi_thread")]
async fn turns_stay_while_our_server_is_away_and_requests_end_when_it_is_back() -> Result<()> {
    let drydock = Drydock::start(TestHost::start().await?, Options::default()).await?;
    let namespace = Namespace::default_of(&drydock).await?;
    let (client, kubectl) = (&namespace.client, &namespace.kubectl);
    let node = create_nodes(client, "turns", 1).await?.remove(0);
    let held = namespace.held_request("held", &node).await?;
    let blocked = blocked_request(&namespace, &node).await?;
    let late = namespace.pod("late", &node, json!({})).await?;
    drydock.kill_apiserver()?;
    api_unavailable(client, API_SERVICE, LIMIT).await?;

    let path = "/apis/coordination.k8s.io/v1alpha1/namespaces/default/evictionrequests";
    let request = eviction_request("late", &late, "admin.example.com").to_string();
    let refused = kubectl.refused_with(&["create", "--raw", path, "-f", "-"], &request).await?;
    ensure!(refused.contains("the server is currently unable to handle the request"), "{refused}");
    kubectl.ok(&["delete", "pdb/blocked"]).await?;
    kubectl.ok(&["wait", "pod/blocked", "--for=delete"]).await?;
    for pod in ["held", "late"] {
        let pod = kubectl.object("pod", pod).await?;
        ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    }

    drydock.start_apiserver().await?;
    api_available(client, API_SERVICE, LIMIT).await?;
    kubectl.ok(&["wait", "evreq", &blocked, "--for=condition=Evicted"]).await?;
    let turn = kubectl.object("evreq", &held).await?["status"]["activeInterceptors"].take();
    ensure!(turn == json!([ABSENT_INTERCEPTOR]), "{turn}");
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let done = json!({"status": {"interceptors": [{"name": ABSENT_INTERCEPTOR, "completionTime": now}]}})
        .to_string();
    kubectl.ok(&["patch", "evreq", &held, "--subresource=status", "--patch", &done]).await?;
    kubectl.ok(&["wait", "evreq", &held, "--for=condition=Evicted"]).await.map(drop)
}

/// A request whose pod a budget keeps. Returns its name.
async fn blocked_request(namespace: &Namespace, node: &str) -> Result<String> {
    let (kubectl, uid) = (&namespace.kubectl, namespace.pod("blocked", node, json!({})).await?);
    kubectl
        .apply(&json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "blocked"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "blocked"}}},
        }))
        .await?;
    kubectl.ok(&["wait", "pdb/blocked", "--for=jsonpath={.status.currentHealthy}=1"]).await?;
    kubectl.apply(&eviction_request("blocked", &uid, "admin.example.com")).await?;
    let by_budget = "--for=jsonpath={.status.interceptors[0].blocked.reason}=PodDisruptionBudget";
    kubectl.ok(&["wait", "evreq", &uid, by_budget]).await?;
    Ok(uid)
}
