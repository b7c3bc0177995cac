//! Others who evict pods and drain the node in the middle of a drain of ours.

use anyhow::{Result, ensure};
use drydock_testkit::kinds::{eviction_requests, named_node_maintenance, node_maintenances};
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, EvictParams};

use super::LIMIT;
use crate::shared::{ABSENT_INTERCEPTOR, shared};

/// Interceptors hold both pods. One is evicted past them by its owner, the other by `kubectl drain`.
#[tokio::test(flavor = "multi_thread")]
async fn a_direct_eviction_and_kubectl_drain_end_the_requests_and_the_maintenance_is_drained() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("beside").await?;
    let node = shared.node("beside").await?;
    let (first, second) =
        (namespace.held_pod("first", &node).await?, namespace.held_pod("second", &node).await?);
    namespace.kubectl.apply(&named_node_maintenance("beside", "Drain", &[&node])).await?;
    let requests = || eviction_requests(&namespace.client, &namespace.name);
    let is_held = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"]["activeInterceptors"][0] == ABSENT_INTERCEPTOR)
    };
    for uid in [&first, &second] {
        until(requests(), uid, LIMIT, "the interceptor's turn", is_held).await?;
    }

    let pods: Api<Pod> = Api::namespaced(namespace.client.clone(), &namespace.name);
    pods.evict("first", &EvictParams::default()).await?;
    let is_gone = |pod: Option<&Pod>| pod.is_none();
    until(pods.clone(), "first", LIMIT, "gone", is_gone).await?;
    ensure!(is_held(requests().get_opt(&second).await?.as_ref()), "the other pod's request has changed");

    namespace.kubectl.ok(&["drain", &node, "--force"]).await?;
    namespace.kubectl.ok(&["wait", "nodemaintenance/beside", "--for=condition=Drained"]).await?;
    // The node is drained when the pods are gone. Their requests end after that.
    let both_ended = |maintenance: Option<&DynamicObject>| {
        maintenance.is_some_and(|maintenance| maintenance.data["status"]["outcomes"]["evicted"] == 2)
    };
    let maintenances = node_maintenances(&namespace.client);
    until(maintenances, "beside", LIMIT, "both requests in the outcomes", both_ended).await?;
    namespace.kubectl.ok(&["delete", "nodemaintenance/beside"]).await.map(drop)
}
