//! Our server goes away and comes back: the host, which waits for us with all that concerns every API, recovers by itself.

use anyhow::Result;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::TestHost;
use drydock_testkit::kubectl::Kubectl;
use drydock_testkit::wait::{LIMIT, api_available, api_unavailable};
use serde_json::json;

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
