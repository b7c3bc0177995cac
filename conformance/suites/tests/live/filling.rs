//! A namespace that its tenant fills: what is refused, and what still works.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use drydock_testkit::cluster::create_nodes;
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, client_of};
use drydock_testkit::kinds::{eviction_request, eviction_requests, node_maintenance, node_maintenances};
use drydock_testkit::wait::{allowed, until};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use crate::shared::LIMIT;

const NAMESPACE: &str = "default";
const TENANT: &str = "filler";
/// The quota of requests that no controller has taken up.
const QUOTA: usize = 1_000;
const PODS: usize = 20;
/// Requests of the tenant at a time.
const LANES: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_drained_while_its_tenant_fills_it() -> Result<()> {
    let host = TestHost::start().await?;
    let drydock = Drydock::start_without_controllers(host, Options::default()).await?;
    let admin = drydock.host.client().await?;
    let tenant = tenant(&drydock, &admin).await?;

    // Nobody takes up what is made now: of many creates at a time exactly so many pass.
    let made = AtomicUsize::new(0);
    let refusals = fill(&tenant, 0..QUOTA + 50, &made).await?;
    assert_eq!((made.load(Ordering::Relaxed), refusals.len()), (QUOTA, 50));
    let words =
        format!("exceeded quota: evictionrequests-not-taken-up, requested: {COUNT}=1, used: {COUNT}=1000");
    assert!(refusals.iter().all(|refusal| refusal.contains(&words)), "{refusals:?}");
    let requests = eviction_requests(&tenant, NAMESPACE);
    let withdrawal = json!({"spec": {"requesters": []}});
    requests.patch(&uid(0), &PatchParams::default(), &Patch::Merge(withdrawal)).await?;
    requests.delete(&uid(0), &DeleteParams::default()).await?;
    requests.create(&PostParams::default(), &request(0)?).await?;
    let more = eviction_requests(&admin, NAMESPACE);
    more.create(&PostParams::default(), &request(QUOTA + 50)?).await.context("a master's")?;

    pods(&admin, &create_nodes(&admin, "filled", 1).await?[0]).await?;
    drydock.start_manager().await?;
    let maintenances = node_maintenances(&admin);
    let drain = serde_json::from_value(node_maintenance("filled", "Drain", &["filled-000"]))?;
    maintenances.create(&PostParams::default(), &drain).await?;
    let drained = until(maintenances, "filled", LIMIT, "drained", is_drained);
    tokio::select! {
        drained = drained => drained.map(drop).with_context(|| drydock.log_tail()),
        filled = fill(&tenant, 10_000..usize::MAX, &made) => filled.map(drop),
    }?;
    let left = Api::<Pod>::namespaced(admin, NAMESPACE).list(&ListParams::default()).await?;
    ensure!(left.items.is_empty(), "drained, and there are pods");
    ensure!(
        made.load(Ordering::Relaxed) > QUOTA,
        "the tenant's requests were taken up, and made room for more"
    );
    Ok(())
}

const COUNT: &str = "count/evictionrequests.coordination.k8s.io";

/// A client of a user who has the rights of a tenant in the namespace.
async fn tenant(drydock: &Drydock, admin: &Client) -> Result<Client> {
    let role: Role = serde_json::from_value(json!({"metadata": {"name": TENANT}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["evictionrequests"], "verbs": ["*"]},
    ]}))?;
    let binding: RoleBinding = serde_json::from_value(json!({"metadata": {"name": TENANT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}]}))?;
    Api::namespaced(admin.clone(), NAMESPACE).create(&PostParams::default(), &role).await?;
    Api::namespaced(admin.clone(), NAMESPACE).create(&PostParams::default(), &binding).await?;
    let review = json!({"metadata": {}, "spec": {"user": TENANT, "resourceAttributes": {"verb": "create",
        "group": "coordination.k8s.io", "resource": "evictionrequests", "namespace": NAMESPACE}}});
    allowed(admin, &serde_json::from_value(review)?, LIMIT).await?;
    client_of(&drydock.host.kubeconfig(TENANT, &[])?).await
}

/// Creates requests of these numbers, some at a time; returns what the refusals said.
async fn fill(
    tenant: &Client,
    numbers: impl IntoIterator<Item = usize>,
    made: &AtomicUsize,
) -> Result<Vec<String>> {
    let requests = eviction_requests(tenant, NAMESPACE);
    let create = async |number: usize| loop {
        match requests.create(&PostParams::default(), &request(number)?).await {
            Ok(_) => {
                made.fetch_add(1, Ordering::Relaxed);
                return Ok(None);
            }
            Err(Error::Api(refusal)) if refusal.code == 403 => return Ok(Some(refusal.message.clone())),
            // A busy server asks it to come again.
            Err(Error::Api(refusal)) if refusal.code == 429 => {}
            Err(error) => return Err(anyhow::Error::from(error)),
        }
    };
    let answers = stream::iter(numbers).map(create).buffer_unordered(LANES);
    answers.try_filter_map(async |refusal| Ok(refusal)).try_fold(Vec::new(), keep).await
}

/// Keeps the first refusals: a client that goes on filling is always refused.
async fn keep(mut kept: Vec<String>, refusal: String) -> Result<Vec<String>> {
    if kept.len() < 2 * QUOTA {
        kept.push(refusal);
    }
    Ok(kept)
}

/// A request for a pod that is not there.
fn request(number: usize) -> Result<DynamicObject> {
    Ok(serde_json::from_value(eviction_request("absent", &uid(number), "test.example.com"))?)
}

fn uid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

async fn pods(admin: &Client, node: &str) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), NAMESPACE);
    until(accounts, "default", LIMIT, "there", |a: Option<&ServiceAccount>| a.is_some()).await?;
    let pods: Api<Pod> = Api::namespaced(admin.clone(), NAMESPACE);
    for number in 0..PODS {
        let pod = json!({"metadata": {"name": format!("filled-{number}")}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "none"}], "automountServiceAccountToken": false}});
        pods.create(&PostParams::default(), &serde_json::from_value::<Pod>(pod)?).await?;
    }
    Ok(())
}

fn is_drained(maintenance: Option<&DynamicObject>) -> bool {
    let conditions = maintenance.and_then(|found| found.data["status"]["conditions"].as_array());
    let is = |condition: &Value| condition["type"] == "Drained" && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(is))
}
