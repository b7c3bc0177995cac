//! The largest objects that a host takes, in the caches of the controllers.

use anyhow::{Context, Result, ensure};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::node_maintenance;
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::{Map, Value, json};

use super::eviction_requests::{Findings, request};
use super::host::allow_maintenances;
use super::store::drained;
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest, UserResponse};
use crate::context::AttackContext;
use crate::setup::MemoryGauge;
use crate::setup::cluster::{maintenance, pod};

/// Most resident memory of each program of controllers in MiB. A debug build takes 60 at rest, and reads six lists at a time
/// in pages of 8 MiB at most.
const MEMORY: u64 = 320;
/// Caches of the surge interceptor.
const SURGE_CACHES: usize = 6;
/// The annotation by which the surge interceptor registers on the pods of a Deployment.
const REGISTERED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_surge.coordination.k8s.io";
const RECORD: &str = "surge.coordination.k8s.io/record";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The budget that keeps one pod.
const KEEPER: &str = "zz-keeper";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![Attack::new(
        "largest-objects",
        "budgets, pods, requests, Deployments, DaemonSets, autoscalers and maintenances as large as the host takes them",
        |f| Box::pin(largest_objects(f)),
    )]
}

/// A budget whose selector has 480,000 values took 18 MiB in the cache, a pod with 70,000 labels 10 MiB: with a few dozen of them
/// the controllers were killed, and again at each start.
async fn largest_objects(context: AttackContext) -> Findings {
    may_deploy(&context).await?;
    let findings = in_the_caches(&context).await;
    empty(&context).await?;
    // What later attacks measure begins small.
    context.setup.restart_manager()?;
    findings
}

/// Makes the objects, looks at the programs, and looks again after a start.
async fn in_the_caches(context: &AttackContext) -> Findings {
    let mut surge = context.setup.surge_interceptor().await?;
    surge.says(&["cache is complete"], SURGE_CACHES).await?;
    let gauges = [MemoryGauge::of(context.setup.manager_pid()?)?, MemoryGauge::of(surge.pid()?)?];
    let before = context.setup.manager_pid()?;
    let connection = context.connect_through_host().await?;
    fill(context, &connection).await?;
    let kept = seen(context, &connection).await;
    let lived = context.setup.manager_pid().is_ok_and(|pid| pid == before) && surge.is_running()?;
    let while_filled = gauges.map(|gauge| gauge.peak().0);

    // Again at each start: all objects are listed at once.
    surge.kill().await?;
    let surge = context.setup.surge_interceptor().await?;
    let of_surge = MemoryGauge::of(surge.pid()?)?;
    context.setup.restart_manager()?;
    let gauges = [MemoryGauge::of(context.setup.manager_pid()?)?, of_surge];
    let listed = surge.says(&["cache is complete"], SURGE_CACHES).await;
    let budget = format!("{}/{KEEPER}", budgets(context));
    context.setup.done(&UserRequest::delete(&budget)).await?;
    let drained = drained(context, &context.tenant.namespace).await;
    let at_start = gauges.map(|gauge| gauge.peak().0);
    context.say(format!(
        "MiB in the controller manager and the surge interceptor: {while_filled:?}, {at_start:?} at a start"
    ));
    let peaks = while_filled.into_iter().chain(at_start);
    let memory =
        |peak: u64| Finding::new(peak <= MEMORY, format!("{peak} MiB in controllers, more than {MEMORY}"));
    let judged = [
        Finding::new(kept.is_ok(), format!("what is seen after the large objects: {kept:?}")),
        Finding::new(lived, "a program of controllers ended"),
        Finding::new(listed.is_ok(), format!("the surge interceptor after a start: {listed:?}")),
        Finding::new(drained.is_ok(), format!("the drain after a start: {drained:?}")),
    ];
    Ok(peaks.map(memory).chain(judged).collect())
}

/// The tenant may write maintenances, and of the host's kinds what an editor may.
async fn may_deploy(context: &AttackContext) -> Result<()> {
    let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]});
    allow_maintenances(context, &[nodes]).await?;
    let name = &context.tenant.namespace;
    let rules = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "daemonsets"], "verbs": ["*"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["*"]},
    ]);
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"});
    let binding = json!({"metadata": {"name": "deployer"}, "roleRef": role_ref, "subjects": [context.tenant.subject()]});
    let role = json!({"metadata": {"name": "deployer"}, "rules": rules});
    context.setup.done(&UserRequest::post(format!("{RBAC}/namespaces/{name}/roles"), &role)).await?;
    context
        .setup
        .done(&UserRequest::post(format!("{RBAC}/namespaces/{name}/rolebindings"), &binding))
        .await?;
    let connection = context.connect_through_host().await?;
    for path in [deployments(context), format!("/apis/{}/nodemaintenances", drydock_api::API_VERSION)] {
        let list = UserRequest::get(format!("{path}?limit=1"));
        let has_rights = async || Ok(connection.ask_again(&list).await?.code.is_success());
        retry(LIMIT, || format!("the tenant may not list {path}"), has_rights).await?;
    }
    Ok(())
}

/// Makes the objects. Budgets come last: the host compares each with every pod that changes.
async fn fill(context: &AttackContext, connection: &UserConnection) -> Result<()> {
    let (count, name) = (context.pick(16, 60), context.tenant.namespace.clone());
    let other = format!("{name}-large");
    for node in [&name, &other] {
        context.setup.node(node).await?;
    }
    let named = |kind: &str, at: usize| format!("{kind}-{at:03}");
    for at in 0..count {
        let mut large = pod(&named("large", at), &other, &json!({}));
        large["metadata"]["labels"] = labels(70_000);
        make(context, connection, &context.tenant.pods(), &large).await;
        let mut planned = node_maintenance(&format!("{name}-{at:03}"), "Idle", &["nowhere"]);
        planned["metadata"]["labels"] = labels(18_000);
        make(context, connection, maintenance("").trim_end_matches('/'), &planned).await;
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d".repeat(1 << 20)});
        let autoscaler = json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": named("scaler", at)},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 2},
        });
        make(context, connection, &autoscalers(context), &autoscaler).await;
        let mut set = daemon_set(&named("set", at));
        set["metadata"]["labels"] = labels(70_000);
        make(context, connection, &daemon_sets(context), &set).await;
        recorded(context, connection, &named("recorded", at)).await?;
    }
    for at in 0..10 * count {
        let mut labelled = request(at);
        labelled["metadata"]["labels"] = labels(2_200);
        make(context, connection, &context.tenant.requests(), &labelled).await;
    }
    for at in 0..count {
        let values = vec![""; 480_000];
        let selector = json!({"matchExpressions": [{"key": "large", "operator": "In", "values": values}]});
        let spec = json!({"selector": selector, "maxUnavailable": 1});
        make(
            context,
            connection,
            &budgets(context),
            &json!({"metadata": {"name": named("huge", at)}, "spec": spec}),
        )
        .await;
        let zeros = format!("{}1%", "0".repeat(1 << 20));
        let spec = json!({"selector": {"matchLabels": {"none": "none"}}, "minAvailable": zeros});
        make(
            context,
            connection,
            &budgets(context),
            &json!({"metadata": {"name": named("long", at)}, "spec": spec}),
        )
        .await;
    }
    let recorded = format!("{}/recorded-000", deployments(context));
    let recorded = connection.done(&UserRequest::get(recorded)).await?;
    ensure!(recorded["metadata"]["annotations"][RECORD].is_string(), "no surge record is taken");
    all_are_taken(context, count)
}

/// Whether most objects of each kind were taken: what a host refuses shows nothing.
fn all_are_taken(context: &AttackContext, count: usize) -> Result<()> {
    let [budgets, pods, requests] = [budgets(context), context.tenant.pods(), context.tenant.requests()];
    let maintenances = maintenance("").trim_end_matches('/').to_owned();
    let all = [
        (budgets, count),
        (pods, count),
        (autoscalers(context), count),
        (daemon_sets(context), count),
        (maintenances, count / 2),
        (requests, 5 * count),
    ];
    for (path, least) in all {
        let taken = context.counted(&taken(&path));
        ensure!(taken >= least, "{taken} of {path} are taken: {}", context.summary());
    }
    Ok(())
}

/// The name under which what was made at a path is counted.
fn taken(path: &str) -> String {
    format!("made-{}", path.rsplit('/').next().unwrap_or_default())
}

/// As many labels as asked for, of eight bytes each.
fn labels(count: usize) -> Value {
    (0..count).map(|at| (format!("k{at:05}"), json!(""))).collect::<Map<_, _>>().into()
}

async fn make(context: &AttackContext, connection: &UserConnection, path: &str, object: &Value) {
    let answer = connection.ask_again(&UserRequest::post(path, object)).await;
    if answer.as_ref().is_ok_and(|answer| answer.code.is_success()) {
        context.count(&taken(path));
    }
    note(context, path, &answer);
}

/// Notes an answer. An error of the host about its own kinds is no fault of ours.
fn note(context: &AttackContext, path: &str, answer: &Result<UserResponse>) {
    let is_error = answer.as_ref().is_ok_and(|answer| answer.code.is_server_error());
    if is_error && !path.contains(drydock_api::GROUP) {
        context.count("host-error");
    } else {
        context.note(answer);
    }
}

/// A Deployment whose surge record names 25,000 pods.
async fn recorded(context: &AttackContext, connection: &UserConnection, name: &str) -> Result<()> {
    let made = connection.done(&UserRequest::post(deployments(context), &deployment(name, 0))).await?;
    let pods: Vec<String> = (0..25_000).map(|at| format!("{at:05}")).collect();
    let record = json!({
        "delta": pods.len(), "replicas": pods.len() + 1, "pods": pods, "since": "2026-01-01T00:00:00Z",
        "uid": made["metadata"]["uid"],
    });
    let change = json!({"metadata": {"annotations": {RECORD: record.to_string()}}});
    let path = format!("{}/{name}", deployments(context));
    note(context, &path, &connection.ask_again(&UserRequest::merge(&path, &change)).await);
    Ok(())
}

fn deployment(name: &str, replicas: usize) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"surge.coordination.k8s.io/enabled": "true"}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "none"}]},
        }},
    })
}

/// A DaemonSet that no node takes.
fn daemon_set(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"nodeSelector": {"example.com/none": "none"}, "containers": [{"name": "c", "image": "none"}]},
        }},
    })
}

/// Waits until both programs have seen what was made last: the surge interceptor has registered on a new pod, and a maintenance
/// names the small budget that keeps one.
async fn seen(context: &AttackContext, connection: &UserConnection) -> Result<()> {
    let name = &context.tenant.namespace;
    connection.done(&UserRequest::post(deployments(context), &deployment("marker", 1))).await?;
    let of_marker = UserRequest::get(format!("{}?labelSelector=app%3Dmarker", context.tenant.pods()));
    let is_registered = async || {
        let found = context.setup.done(&of_marker).await?;
        Ok(found["items"][0]["metadata"]["annotations"][REGISTERED].is_string())
    };
    retry(LIMIT, || "the surge interceptor does not register".to_owned(), is_registered).await?;
    let mut kept = pod("kept", name, &json!({}));
    kept["metadata"]["labels"] = json!({"app": "kept"});
    context.setup.done(&UserRequest::post(context.tenant.pods(), &kept)).await?;
    context.setup.until_running(&context.tenant, "kept").await?;
    let spec = json!({"selector": {"matchLabels": {"app": "kept"}}, "minAvailable": 1});
    let keeper = json!({"metadata": {"name": KEEPER}, "spec": spec});
    context.setup.done(&UserRequest::post(budgets(context), &keeper)).await?;
    context.setup.drain(name, name).await?;
    context.setup.blocker(name, "PodDisruptionBudget", &[KEEPER]).await
}

/// Removes what was made: the host's programs hold it too.
async fn empty(context: &AttackContext) -> Result<()> {
    let admin = context.setup.admin().await?;
    let name = &context.tenant.namespace;
    let all = [
        budgets(context),
        autoscalers(context),
        deployments(context),
        daemon_sets(context),
        context.tenant.requests(),
        context.tenant.pods(),
    ];
    for path in all {
        let is_empty = async || Ok(admin.ask_again(&UserRequest::delete(&path)).await?.code.is_success());
        retry(LIMIT, || format!("{path} is not empty"), is_empty).await?;
    }
    let path = maintenance("");
    let found = admin.done(&UserRequest::get(path.trim_end_matches('/'))).await?;
    for planned in found["items"].as_array().into_iter().flatten() {
        let found = planned["metadata"]["name"].as_str().context("a maintenance without a name")?;
        if found.starts_with(&format!("{name}-")) {
            admin.ask_again(&UserRequest::delete(maintenance(found))).await?;
        }
    }
    Ok(())
}

fn budgets(context: &AttackContext) -> String {
    format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", context.tenant.namespace)
}

fn deployments(context: &AttackContext) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments", context.tenant.namespace)
}

fn daemon_sets(context: &AttackContext) -> String {
    format!("/apis/apps/v1/namespaces/{}/daemonsets", context.tenant.namespace)
}

fn autoscalers(context: &AttackContext) -> String {
    format!("/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers", context.tenant.namespace)
}
