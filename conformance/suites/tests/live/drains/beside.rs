//! Others who evict pods, drain the node or ask for pods too in the middle of a drain of ours.

use anyhow::{Context, Result, ensure};
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_testkit::kinds::{
    eviction_request, eviction_requests, named_node_maintenance, node_maintenances,
};
use drydock_testkit::wait::until;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, EvictParams};
use serde_json::json;

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

/// KEP-4563, "Multiple Dynamic Requesters": the admin cancels the drain, and the descheduler still wants the pod moved.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_that_is_given_up_withdraws_and_leaves_the_request_to_its_other_requester() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("given-up").await?;
    let (node, kubectl) = (shared.node("given-up").await?, &namespace.kubectl);
    let (shared_pod, own_pod) =
        (namespace.held_pod("shared", &node).await?, namespace.held_pod("own", &node).await?);
    let asked = eviction_request("shared", &shared_pod, "descheduler.example.com").to_string();
    let apply = ["apply", "--server-side", "--field-manager=descheduler", "--filename=-"];
    let said = kubectl.run(&apply, &asked).await?;
    ensure!(said.code == 0, "{said:?}");
    kubectl.apply(&named_node_maintenance("given-up", "Drain", &[&node])).await?;
    let requests = || eviction_requests(&namespace.client, &namespace.name);
    for (uid, both) in
        [(&shared_pod, &["descheduler.example.com", NODE_MAINTENANCE][..]), (&own_pod, &[NODE_MAINTENANCE])]
    {
        until(requests(), uid, LIMIT, "asked for", |r: Option<&DynamicObject>| requesters(r) == both).await?;
    }

    kubectl.ok(&["delete", "nodemaintenance/given-up"]).await?;
    let node = kubectl.object("node", &node).await?;
    ensure!(node["spec"]["unschedulable"].is_null(), "{node}");
    kubectl.ok(&["wait", "evreq", &own_pod, "--for=condition=Canceled"]).await?;
    let left = |r: Option<&DynamicObject>| requesters(r) == ["descheduler.example.com"];
    let kept =
        until(requests(), &shared_pod, LIMIT, "left to the other", left).await?.context("it is gone")?;
    let status = &kept.data["status"];
    ensure!(status["activeInterceptors"] == json!([ABSENT_INTERCEPTOR]), "{status}");
    ensure!(status["conditions"].is_null(), "{status}");
    for pod in ["shared", "own"] {
        let pod = kubectl.object("pod", pod).await?;
        ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    }
    Ok(())
}

/// Who asks in a request, in the order of the names.
fn requesters(request: Option<&DynamicObject>) -> Vec<&str> {
    let listed = request.and_then(|request| request.data["spec"]["requesters"].as_array());
    let mut names: Vec<&str> =
        listed.into_iter().flatten().filter_map(|requester| requester["name"].as_str()).collect();
    names.sort_unstable();
    names
}
