//! Status writes by those who may not make them: interceptors outside their own entry, and the owner of a
//! namespace.

use anyhow::{Context, Result};
use drydock_api::time::format_seconds;
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::{LIMIT, retry};
use http::Method;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER, until};
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::AttackContext;
use crate::setup::cluster::{PATIENT, has_condition};

const IMPERATIVE: &str = "imperative-eviction.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Requests at a time.
const LANES: usize = 4;
/// How often each write is tried.
const TRIES: usize = 50;
/// Requests whose turns are taken before the controller gives them.
const REQUESTS: [usize; 2] = [50, 500];

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("false-end", "an interceptor that says Evicted of a pod that runs", |f| {
            Box::pin(false_end(f))
        }),
        Attack::new(
            "stolen-turns",
            "interceptors that choose themselves, before the controller chooses",
            |f| Box::pin(stolen_turns(f)),
        ),
        Attack::new("foreign-entry", "an interceptor that ends imperative-eviction's turn", |f| {
            Box::pin(foreign_entry(f))
        }),
        Attack::new("namespace-owner", "the owner of a namespace, with * on *, who does all of these", |f| {
            Box::pin(namespace_owner(f))
        }),
        Attack::new(
            "revived-pods",
            "the owner of a namespace, who says of running pods that they have failed",
            |f| Box::pin(revived_pods(f)),
        ),
        Attack::new(
            "owned-fields",
            "applies by force of the controllers' fields as they are, and managed fields that are made up",
            |f| Box::pin(owned_fields(f)),
        ),
    ]
}

async fn false_end(context: AttackContext) -> Findings {
    Ok(vec![end(&context).await?, forbidden(&context)])
}

async fn foreign_entry(context: AttackContext) -> Findings {
    Ok(vec![silence(&context).await?, forbidden(&context)])
}

/// A Role does not grant what is checked for the whole cluster.
async fn namespace_owner(context: AttackContext) -> Findings {
    own_namespace(&context).await?;
    let found = [end(&context).await?, silence(&context).await?, own(&context).await?];
    Ok(found.into_iter().chain([forbidden(&context)]).collect())
}

/// A request that had ended stayed with the pod for as long as another requester was in it, and no blocker named it.
async fn revived_pods(context: AttackContext) -> Findings {
    own_namespace(&context).await?;
    let name = context.tenant.namespace.clone();
    context.setup.node(&name).await?;
    let pods = context.setup.pods(&context.tenant, &name, context.pick(10, 100), true).await?;
    context.setup.drain(&name, &name).await?;
    let connection = context.connect_through_host().await?;
    for (pod, uid) in &pods {
        // The node's first write of a pod's status would take the failed phase away before a controller sees it.
        context.setup.until_running(&context.tenant, pod).await?;
        until(&context, uid, is_turn_of(PATIENT)).await?;
        let join = json!([{"op": "add", "path": "/spec/requesters/-", "value": {"name": REQUESTER}}]);
        connection.done(&UserRequest::operations(context.tenant.request(uid), join.to_string())).await?;
        let status = format!("{}/{pod}/status", context.tenant.pods());
        let phase = |phase: &str| UserRequest::merge(&status, &json!({"status": {"phase": phase}}));
        context.note(&connection.decided(&phase("Failed")).await);
        until(&context, uid, |request| has_condition(request, "Evicted")).await?;
        context.note(&connection.decided(&phase("Running")).await);
    }
    let words = ["ended as Evicted while the pod is there"];
    let blocker = context.setup.blocker(&name, "Other", &words).await;
    Ok(vec![Finding::new(blocker.is_ok(), format!("a blocker of a pod that is there still: {blocker:?}"))])
}

async fn owned_fields(context: AttackContext) -> Findings {
    Ok(vec![own(&context).await?, forbidden(&context)])
}

/// A refusal by the rules on values says nothing about authorization.
fn forbidden(context: &AttackContext) -> Finding {
    Finding::new(context.counted("403") > 0, "nothing was forbidden")
}

/// Says that a pod is evicted, in every way.
async fn end(context: &AttackContext) -> Result<Finding> {
    let name = context.setup.lasting_request(&context.tenant).await?;
    until(context, &name, is_turn_of(PATIENT)).await?;
    let path = context.tenant.request(&name);
    let end = json!({"status": {"conditions": [{"type": "Evicted", "status": "True", "reason": "PodDeleted",
        "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let mut whole = context.setup.done(&UserRequest::get(&path)).await?;
    whole["metadata"]["resourceVersion"] = Value::Null;
    whole["status"]["conditions"] = end["status"]["conditions"].clone();
    let whole =
        UserRequest::body(Method::PUT, format!("{path}/status"), "application/json", whole.to_string());
    let add = json!([{"op": "add", "path": "/status/conditions", "value": end["status"]["conditions"]}]);
    let asks = [
        UserRequest::merge(format!("{path}/status"), &end),
        UserRequest::merge(format!("{path}/status?dryRun=All"), &end),
        UserRequest::operations(format!("{path}/status"), add.to_string()),
        apply(&path, PATIENT, &name, &end["status"]),
        whole,
    ];
    again_and_again(context, &asks).await?;
    // A request that seemed to have ended may be removed by now.
    let status =
        context.setup.admin().await?.decided(&UserRequest::get(&path)).await?.json()["status"].take();
    let goes_on = status["activeInterceptors"] == json!([PATIENT]) && status["conditions"].is_null();
    Ok(Finding::new(goes_on, format!("of a pod that runs is said: {status}")))
}

/// Sets the interceptors of a request before the controller has.
async fn stolen_turns(context: AttackContext) -> Findings {
    let node = format!("node-of-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let pods =
        context.setup.pods(&context.tenant, &node, context.pick(REQUESTS[0], REQUESTS[1]), true).await?;
    let connection = context.connect().await?;
    for (pod, uid) in &pods {
        let make = UserRequest::post(context.tenant.requests(), &eviction_request(pod, uid, REQUESTER));
        let take = UserRequest::merge(format!("{}/status", context.tenant.request(uid)), &turn_of_mine());
        context.note(&connection.ask_again(&make).await);
        context.note(&connection.ask_again(&take).await);
    }
    let (_, last) = pods.last().context("no pod")?;
    until(&context, last, |request| request["status"]["targetInterceptors"].is_array()).await?;
    let all = context.setup.done(&UserRequest::get(context.tenant.requests())).await?;
    let mine = json!("mine.example.com");
    let is_stolen = |request: &&Value| {
        let targets = request["status"]["targetInterceptors"].as_array().cloned().unwrap_or_default();
        targets.iter().any(|target| target["name"] == mine)
    };
    let stolen = all["items"].as_array().into_iter().flatten().filter(is_stolen).count();
    let chosen = Finding::new(stolen == 0, format!("{stolen} requests have another's interceptors"));
    Ok(vec![chosen, forbidden(&context)])
}

fn turn_of_mine() -> Value {
    let names = ["mine.example.com", IMPERATIVE];
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    json!({"status": {
        "targetInterceptors": names.map(|name| json!({"name": name})),
        "interceptors": names.map(|name| json!({"name": name, "message": ""})),
        "activeInterceptors": [names[0]],
        "activationTime": now,
    }})
}

/// Ends the turn of the last interceptor, which waits for a budget: no interceptor would evict the pod after
/// it.
async fn silence(context: &AttackContext) -> Result<Finding> {
    let uid = blocked_request(context).await?;
    let path = context.tenant.request(&uid);
    let mut entry = context.setup.done(&UserRequest::get(&path)).await?["status"]["interceptors"][0].take();
    entry["message"] = "all is well".into();
    let said = apply(&path, IMPERATIVE, &uid, &json!({"interceptors": [&entry]}));
    entry["completionTime"] = format_seconds(jiff::Timestamp::now()).into();
    let ended = apply(&path, IMPERATIVE, &uid, &json!({"interceptors": [entry]}));
    again_and_again(context, &[said, ended]).await?;
    let status = context.setup.done(&UserRequest::get(&path)).await?["status"].take();
    let entries = status["interceptors"].as_array().cloned().unwrap_or_default();
    let is_silent = |entry: &Value| entry["message"] == "all is well" || !entry["completionTime"].is_null();
    let silent = entries.iter().any(is_silent);
    Ok(Finding::new(!silent, format!("imperative-eviction does not say what is said of it: {entries:?}")))
}

/// A request that waits for a budget which never lets its pod go. Its name.
async fn blocked_request(context: &AttackContext) -> Result<String> {
    let node = format!("node-of-blocked-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let pods = context.setup.named_pods(&context.tenant, &node, "blocked", 1).await?;
    let (pod, uid) = pods.first().context("no pod")?;
    context.setup.until_running(&context.tenant, pod).await?;
    let budgets = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", context.tenant.namespace);
    let budget = json!({"metadata": {"name": "all"}, "spec": {"selector": {}, "minAvailable": "100%"}});
    context.setup.done(&UserRequest::post(&budgets, &budget)).await?;
    let counted = UserRequest::get(format!("{budgets}/all"));
    let is_counted = async || Ok(context.setup.done(&counted).await?["status"]["observedGeneration"] == 1);
    retry(LIMIT, || "the budget is not looked at".to_owned(), is_counted).await?;
    context
        .setup
        .done(&UserRequest::post(context.tenant.requests(), &eviction_request(pod, uid, REQUESTER)))
        .await?;
    // The interceptor reports when the budget has refused; a report may not be taken back.
    until(context, uid, |request| !request["status"]["interceptors"][0]["startTime"].is_null()).await?;
    Ok(uid.clone())
}

/// Applies what the controllers wrote, as it is: an owner may take it away with the next apply.
async fn own(context: &AttackContext) -> Result<Finding> {
    let uid = blocked_or_lasting(context).await?;
    let path = context.tenant.request(&uid);
    let found = context.setup.done(&UserRequest::get(&path)).await?;
    let fields = ["activeInterceptors", "targetInterceptors", "activationTime", "observedGeneration"];
    let applies = fields.map(|field| apply(&path, "thief", &uid, &json!({field: found["status"][field]})));
    // A write to the object itself may bring managed fields of its own.
    let mut owners = found["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    owners.push(json!({"manager": "thief", "operation": "Apply", "subresource": "status",
        "apiVersion": drydock_api::API_VERSION, "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:status": {"f:activationTime": {}}}}));
    let forged = UserRequest::merge(&path, &json!({"metadata": {"managedFields": owners}}));
    let asks = applies.into_iter().chain([forged]).collect::<Vec<_>>();
    again_and_again(context, &asks).await?;
    let owners = context.setup.done(&UserRequest::get(&path)).await?["metadata"]["managedFields"].take();
    let stolen = owners.as_array().is_some_and(|all| all.iter().any(|entry| entry["manager"] == "thief"));
    Ok(Finding::new(!stolen, format!("the controllers' fields have another owner: {owners}")))
}

/// Returns the tenant's request, which it creates if there is none.
async fn blocked_or_lasting(context: &AttackContext) -> Result<String> {
    let all = context.setup.done(&UserRequest::get(context.tenant.requests())).await?;
    let name = match all["items"][0]["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => context.setup.lasting_request(&context.tenant).await?,
    };
    until(context, &name, |request| !request["status"]["activeInterceptors"].is_null()).await?;
    Ok(name)
}

async fn again_and_again(context: &AttackContext, asks: &[UserRequest]) -> Result<()> {
    context.each((0..TRIES).flat_map(|_| asks.iter().cloned()).collect(), LANES).await
}

/// An apply of a status by force.
fn apply(path: &str, manager: &str, name: &str, status: &Value) -> UserRequest {
    let object = json!({"apiVersion": drydock_api::API_VERSION, "kind": "EvictionRequest",
                        "metadata": {"name": name}, "status": status});
    UserRequest::apply(format!("{path}/status?fieldManager={manager}&force=true"), object.to_string())
}

fn is_turn_of(name: &str) -> impl Fn(&Value) -> bool {
    move |request| request["status"]["activeInterceptors"] == json!([name])
}

/// Gives the tenant everything in its namespace, and waits until the host knows.
async fn own_namespace(context: &AttackContext) -> Result<()> {
    let namespace = &context.tenant.namespace;
    let (admin, rbac) = (context.setup.admin().await?, format!("/apis/{RBAC}/v1/namespaces/{namespace}"));
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    admin
        .done(&UserRequest::post(
            format!("{rbac}/roles"),
            &json!({"metadata": {"name": "owner"}, "rules": [all]}),
        ))
        .await?;
    let of = json!({"apiGroup": RBAC, "kind": "Role", "name": "owner"});
    let binding =
        json!({"metadata": {"name": "owner"}, "roleRef": of, "subjects": [context.tenant.subject()]});
    admin.done(&UserRequest::post(format!("{rbac}/rolebindings"), &binding)).await?;
    let connection: UserConnection = context.connect_through_host().await?;
    let secrets = UserRequest::get(format!("/api/v1/namespaces/{namespace}/secrets"));
    let late = || "the tenant does not own its namespace".to_owned();
    retry(LIMIT, late, async || Ok(connection.ask_again(&secrets).await?.code.is_success())).await
}
