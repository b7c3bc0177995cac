//! Maintenances of nodes to which the maintainer has no right, and of the nodes on which Drydock runs.

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::{named_node_maintenance, node_maintenance};
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::{Value, json};

use super::eviction_requests::Findings;
use super::host::allow_maintenances;
use super::store::drained;
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::AttackContext;
use crate::setup::cluster::maintenance;

/// Where Drydock's own pods are.
const OWN_NAMESPACE: &str = "drydock-system";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "future-nodes",
            "maintenances of nodes to come, by somebody who may delete none of them",
            |f| Box::pin(future_nodes(f)),
        ),
        Attack::new("own-nodes", "a maintenance of all nodes, those of Drydock among them", |f| {
            Box::pin(own_nodes(f))
        }),
    ]
}

/// A selector that matched nothing yet was not authorized at all.
async fn future_nodes(context: AttackContext) -> Findings {
    let name = context.tenant.namespace.clone();
    let mine = format!("mine-{name}");
    may_maintain(&context, &mine).await?;
    let connection = context.connect_through_host().await?;
    let path = format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION);
    context.setup.node(&mine).await?;
    let own = connection
        .ask_again(&UserRequest::post(&path, &named_node_maintenance(&mine, "Cordon", &[&mine])))
        .await?;
    for (at, terms) in selectors(&name).iter().enumerate() {
        let mut wanted = named_node_maintenance(&format!("{name}-{at}"), "Cordon", &[&name]);
        wanted["spec"]["nodeSelector"]["nodeSelectorTerms"] = terms.clone();
        context.note(&connection.ask_again(&UserRequest::post(&path, &wanted)).await);
        // From a selector that is allowed to one that is not.
        let change = json!({"spec": {"nodeSelector": {"nodeSelectorTerms": terms}}});
        context.note(&connection.ask_again(&UserRequest::merge(maintenance(&mine), &change)).await);
    }
    context.setup.node(&name).await?;
    // The controllers have seen the node when they have cordoned one that came later.
    context
        .setup
        .done(&UserRequest::post(&path, &named_node_maintenance(&format!("{name}-seen"), "Cordon", &[&name])))
        .await?;
    let cordoned = async || Ok(node(&context, &name).await?["spec"]["unschedulable"] == true);
    retry(LIMIT, || "the admin's maintenance cordons nothing".to_owned(), cordoned).await?;
    let all = context.setup.done(&UserRequest::get(&path)).await?;
    let names = all["items"].as_array().into_iter().flatten().map(|m| m["metadata"]["name"].as_str());
    let foreign = names.flatten().filter(|found| found.starts_with(&format!("{name}-"))).count();
    Ok(vec![
        Finding::new(own.code.is_success(), format!("their own node: {}", own.summary())),
        Finding::new(
            foreign == 1,
            format!("{} maintenances of others' nodes were made", foreign.saturating_sub(1)),
        ),
        Finding::new(context.counted("200") == 0, "a maintenance was changed to others' nodes"),
    ])
}

/// Selectors that reach a node of that name, which is not there yet.
fn selectors(name: &str) -> Vec<Value> {
    let term = |by: &str, key: &str, operator: &str, values: Value| json!({by: [{"key": key, "operator": operator, "values": values}]});
    let by_name = |operator: &str, values: Value| term("matchFields", "metadata.name", operator, values);
    let by_label =
        |operator: &str, values: Value| term("matchExpressions", "kubernetes.io/hostname", operator, values);
    vec![
        json!([by_name("In", json!([name]))]),
        json!([by_name("NotIn", json!(["none"]))]),
        json!([by_label("In", json!([name]))]),
        json!([by_label("Exists", Value::Null)]),
        json!([by_label("NotIn", json!(["none"]))]),
        json!([by_name("In", json!([format!("mine-{name}")])), by_label("In", json!([name]))]),
        json!([by_name("In", json!([format!("mine-{name}")])), by_name("In", json!([name]))]),
    ]
}

/// The tenant may write maintenances and delete one node, whose name this is.
async fn may_maintain(context: &AttackContext, node: &str) -> Result<()> {
    let delete =
        json!({"apiGroups": [""], "resources": ["nodes"], "resourceNames": [node], "verbs": ["delete"]});
    allow_maintenances(context, &[delete]).await?;
    let connection: UserConnection = context.connect_through_host().await?;
    let list = UserRequest::get(format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION));
    let late = || "the tenant may not maintain nodes".to_owned();
    retry(LIMIT, late, async || Ok(connection.ask_again(&list).await?.code.is_success())).await
}

/// The controllers were evicted by their own drain: all drains stopped, and nothing reported why.
async fn own_nodes(context: AttackContext) -> Findings {
    let name = context.tenant.namespace.clone();
    context.setup.node(&name).await?;
    let uid = own_pod(&context, &name).await?;
    let path = format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION);
    let everything = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]);
    let mut all = node_maintenance(&format!("{name}-all"), "Cordon", &[&name]);
    all["spec"]["nodeSelector"]["nodeSelectorTerms"] = everything;
    context.setup.done(&UserRequest::post(&path, &all)).await?;
    context.count("maintenance of all nodes");
    let kept = kept(&context, &name, &uid).await;
    // The nodes are restored whatever the result.
    let complete = json!({"spec": {"stage": "Complete"}});
    context.setup.done(&UserRequest::merge(maintenance(&format!("{name}-all")), &complete)).await?;
    let drained = drained(&context, &name).await;
    let drained = Finding::new(
        drained.is_ok(),
        format!("the end of the drain, when other nodes take pods: {drained:?}"),
    );
    Ok(kept?.into_iter().chain([drained]).collect())
}

/// Drains the node on which Drydock's pod is while no other takes it.
async fn kept(context: &AttackContext, name: &str, uid: &str) -> Findings {
    context.setup.drain(name, name).await?;
    let blocker = context.setup.blocker(name, "NoSchedulableNode", &["Drydock"]).await;
    let request =
        format!("/apis/{}/namespaces/{OWN_NAMESPACE}/evictionrequests/{uid}", drydock_api::API_VERSION);
    let asked = context.setup.admin().await?.ask_again(&UserRequest::get(&request)).await?;
    Ok(vec![
        Finding::new(blocker.is_ok(), format!("a blocker that says why the pod stays: {blocker:?}")),
        Finding::new(
            asked.code == http::StatusCode::NOT_FOUND,
            format!("the eviction of Drydock itself: {}", asked.summary()),
        ),
    ])
}

/// Creates a pod on that node with the labels that deploy/ gives to the controllers; returns its UID.
async fn own_pod(context: &AttackContext, node: &str) -> Result<String> {
    let admin = context.setup.admin().await?;
    let namespace = json!({"metadata": {"name": OWN_NAMESPACE}});
    // The namespace may exist already.
    admin.ask_again(&UserRequest::post("/api/v1/namespaces", &namespace)).await?;
    let pod = json!({
        "metadata": {"name": node, "labels": {"app.kubernetes.io/name": "drydock-controller-manager"}},
        "spec": {"nodeName": node, "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
                 "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                 "containers": [{"name": "c", "image": "none", "securityContext": {
                     "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]},
    });
    let made =
        admin.done(&UserRequest::post(format!("/api/v1/namespaces/{OWN_NAMESPACE}/pods"), &pod)).await?;
    made["metadata"]["uid"].as_str().map(str::to_owned).context("a pod without a UID")
}

async fn node(context: &AttackContext, name: &str) -> Result<Value> {
    context.setup.done(&UserRequest::get(format!("/api/v1/nodes/{name}"))).await
}
