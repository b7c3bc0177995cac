//! Status writes by those who may not make them: interceptors outside their own entry, and the owner of a
//! namespace.

use std::time::Duration;

use anyhow::{Context, Result};
use drydock_api::time::format_seconds;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::retry;
use http::Method;
use serde_json::{Value, json};

use super::stock::{Findings, REQUESTER, until};
use crate::attack::{Attack, AttackFinding};
use crate::door::{UserConnection, UserRequest};
use crate::field::AttackField;
use crate::setup::cluster::{PATIENT, has_condition};

const IMPERATIVE: &str = "imperative-eviction.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const LIMIT: Duration = Duration::from_secs(60);
/// Requests at a time.
const LANES: usize = 4;
/// How often each write is tried.
const TRIES: usize = 50;
/// Requests whose turns are taken before the controller gives them.
const REQUESTS: [usize; 2] = [50, 500];

/// These attacks.
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

async fn false_end(field: AttackField) -> Findings {
    Ok(vec![end(&field).await?, forbidden(&field)])
}

async fn foreign_entry(field: AttackField) -> Findings {
    Ok(vec![silence(&field).await?, forbidden(&field)])
}

/// A Role gives nothing that is asked about in the whole cluster.
async fn namespace_owner(field: AttackField) -> Findings {
    own_namespace(&field).await?;
    let found = [end(&field).await?, silence(&field).await?, own(&field).await?];
    Ok(found.into_iter().chain([forbidden(&field)]).collect())
}

/// A request that has ended stayed with the pod for as long as another requester was in it, and no blocker
/// said so.
async fn revived_pods(field: AttackField) -> Findings {
    own_namespace(&field).await?;
    let name = field.tenant.namespace.clone();
    field.setup.node(&name).await?;
    let pods = field.setup.pods(&field.tenant, &name, field.pick(10, 100), true).await?;
    field.setup.drain(&name, &name).await?;
    let line = field.line_through_host().await?;
    for (pod, uid) in &pods {
        until(&field, uid, is_turn_of(PATIENT)).await?;
        let join = json!([{"op": "add", "path": "/spec/requesters/-", "value": {"name": REQUESTER}}]);
        line.done(&UserRequest::operations(field.tenant.request(uid), join.to_string())).await?;
        let status = format!("{}/{pod}/status", field.tenant.pods());
        let phase = |phase: &str| UserRequest::merge(&status, &json!({"status": {"phase": phase}}));
        field.note(&line.ask_again(&phase("Failed")).await);
        until(&field, uid, |request| has_condition(request, "Evicted")).await?;
        field.note(&line.ask_again(&phase("Running")).await);
    }
    let words = ["ended as Evicted while the pod is there"];
    let told = field.setup.blocker(LIMIT, &name, "Other", &words).await;
    Ok(vec![AttackFinding::new(told.is_ok(), format!("a blocker of a pod that is there still: {told:?}"))])
}

async fn owned_fields(field: AttackField) -> Findings {
    Ok(vec![own(&field).await?, forbidden(&field)])
}

/// A refusal by the rules on values says nothing about authorization.
fn forbidden(field: &AttackField) -> AttackFinding {
    AttackFinding::new(field.counted("403") > 0, "nothing was forbidden")
}

/// Says that a pod is evicted, in every way.
async fn end(field: &AttackField) -> Result<AttackFinding> {
    let name = field.setup.lasting_request(&field.tenant).await?;
    until(field, &name, is_turn_of(PATIENT)).await?;
    let path = field.tenant.request(&name);
    let end = json!({"status": {"conditions": [{"type": "Evicted", "status": "True", "reason": "PodDeleted",
        "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let mut whole = field.setup.done(&UserRequest::get(&path)).await?;
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
    again_and_again(field, &asks).await?;
    // One that is taken for ended may be gone by now.
    let status =
        field.setup.admin().await?.ask_again(&UserRequest::get(&path)).await?.json()["status"].take();
    let goes_on = status["activeInterceptors"] == json!([PATIENT]) && status["conditions"].is_null();
    Ok(AttackFinding::new(goes_on, format!("of a pod that runs is said: {status}")))
}

/// Sets the interceptors of a request before the controller has.
async fn stolen_turns(field: AttackField) -> Findings {
    let node = format!("node-of-{}", field.tenant.namespace);
    field.setup.node(&node).await?;
    let pods = field.setup.pods(&field.tenant, &node, field.pick(REQUESTS[0], REQUESTS[1]), true).await?;
    let line = field.line().await?;
    for (pod, uid) in &pods {
        let make = UserRequest::post(field.tenant.requests(), &eviction_request(pod, uid, REQUESTER));
        let take = UserRequest::merge(format!("{}/status", field.tenant.request(uid)), &turn_of_mine());
        field.note(&line.ask_again(&make).await);
        field.note(&line.ask_again(&take).await);
    }
    let (_, last) = pods.last().context("no pod")?;
    until(&field, last, |request| request["status"]["targetInterceptors"].is_array()).await?;
    let all = field.setup.done(&UserRequest::get(field.tenant.requests())).await?;
    let mine = json!("mine.example.com");
    let is_stolen = |request: &&Value| {
        let targets = request["status"]["targetInterceptors"].as_array().cloned().unwrap_or_default();
        targets.iter().any(|target| target["name"] == mine)
    };
    let stolen = all["items"].as_array().into_iter().flatten().filter(is_stolen).count();
    let chosen = AttackFinding::new(stolen == 0, format!("{stolen} requests have another's interceptors"));
    Ok(vec![chosen, forbidden(&field)])
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
async fn silence(field: &AttackField) -> Result<AttackFinding> {
    let uid = blocked_request(field).await?;
    let path = field.tenant.request(&uid);
    let mut entry = field.setup.done(&UserRequest::get(&path)).await?["status"]["interceptors"][0].take();
    entry["message"] = "all is well".into();
    let said = apply(&path, IMPERATIVE, &uid, &json!({"interceptors": [&entry]}));
    entry["completionTime"] = format_seconds(jiff::Timestamp::now()).into();
    let ended = apply(&path, IMPERATIVE, &uid, &json!({"interceptors": [entry]}));
    again_and_again(field, &[said, ended]).await?;
    let status = field.setup.done(&UserRequest::get(&path)).await?["status"].take();
    let entries = status["interceptors"].as_array().cloned().unwrap_or_default();
    let is_silent = |entry: &Value| entry["message"] == "all is well" || !entry["completionTime"].is_null();
    let silent = entries.iter().any(is_silent);
    Ok(AttackFinding::new(
        !silent,
        format!("imperative-eviction does not say what is said of it: {entries:?}"),
    ))
}

/// A request that waits for a budget which never lets its pod go. Its name.
async fn blocked_request(field: &AttackField) -> Result<String> {
    let node = format!("node-of-blocked-{}", field.tenant.namespace);
    field.setup.node(&node).await?;
    let pods = field.setup.named_pods(&field.tenant, &node, "blocked", 1).await?;
    let (pod, uid) = pods.first().context("no pod")?;
    let running = UserRequest::get(format!("{}/{pod}", field.tenant.pods()));
    let is_running = async || Ok(field.setup.done(&running).await?["status"]["phase"] == "Running");
    retry(LIMIT, || "the pod does not run".to_owned(), is_running).await?;
    let budgets = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", field.tenant.namespace);
    let budget = json!({"metadata": {"name": "all"}, "spec": {"selector": {}, "minAvailable": "100%"}});
    field.setup.done(&UserRequest::post(&budgets, &budget)).await?;
    let counted = UserRequest::get(format!("{budgets}/all"));
    let is_counted = async || Ok(field.setup.done(&counted).await?["status"]["observedGeneration"] == 1);
    retry(LIMIT, || "the budget is not looked at".to_owned(), is_counted).await?;
    field
        .setup
        .done(&UserRequest::post(field.tenant.requests(), &eviction_request(pod, uid, REQUESTER)))
        .await?;
    // It reports when the budget has refused: what it has said may not be taken back.
    until(field, uid, |request| !request["status"]["interceptors"][0]["startTime"].is_null()).await?;
    Ok(uid.clone())
}

/// Applies what the controllers wrote, as it is: an owner may take it away with the next apply.
async fn own(field: &AttackField) -> Result<AttackFinding> {
    let uid = blocked_or_lasting(field).await?;
    let path = field.tenant.request(&uid);
    let found = field.setup.done(&UserRequest::get(&path)).await?;
    let fields = ["activeInterceptors", "targetInterceptors", "activationTime", "observedGeneration"];
    let applies = fields.map(|field| apply(&path, "thief", &uid, &json!({field: found["status"][field]})));
    // A write to the object itself may bring managed fields of its own.
    let mut owners = found["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    owners.push(json!({"manager": "thief", "operation": "Apply", "subresource": "status",
        "apiVersion": drydock_api::API_VERSION, "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:status": {"f:activationTime": {}}}}));
    let forged = UserRequest::merge(&path, &json!({"metadata": {"managedFields": owners}}));
    let asks = applies.into_iter().chain([forged]).collect::<Vec<_>>();
    again_and_again(field, &asks).await?;
    let owners = field.setup.done(&UserRequest::get(&path)).await?["metadata"]["managedFields"].take();
    let stolen = owners.as_array().is_some_and(|all| all.iter().any(|entry| entry["manager"] == "thief"));
    Ok(AttackFinding::new(!stolen, format!("the controllers' fields have another owner: {owners}")))
}

/// The request of the tenant that is there, or one that is made.
async fn blocked_or_lasting(field: &AttackField) -> Result<String> {
    let all = field.setup.done(&UserRequest::get(field.tenant.requests())).await?;
    let name = match all["items"][0]["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => field.setup.lasting_request(&field.tenant).await?,
    };
    until(field, &name, |request| !request["status"]["activeInterceptors"].is_null()).await?;
    Ok(name)
}

async fn again_and_again(field: &AttackField, asks: &[UserRequest]) -> Result<()> {
    field.each((0..TRIES).flat_map(|_| asks.iter().cloned()).collect(), LANES).await
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
async fn own_namespace(field: &AttackField) -> Result<()> {
    let namespace = &field.tenant.namespace;
    let (admin, rbac) = (field.setup.admin().await?, format!("/apis/{RBAC}/v1/namespaces/{namespace}"));
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    admin
        .done(&UserRequest::post(
            format!("{rbac}/roles"),
            &json!({"metadata": {"name": "owner"}, "rules": [all]}),
        ))
        .await?;
    let of = json!({"apiGroup": RBAC, "kind": "Role", "name": "owner"});
    let binding = json!({"metadata": {"name": "owner"}, "roleRef": of, "subjects": [field.tenant.subject()]});
    admin.done(&UserRequest::post(format!("{rbac}/rolebindings"), &binding)).await?;
    let line: UserConnection = field.line_through_host().await?;
    let secrets = UserRequest::get(format!("/api/v1/namespaces/{namespace}/secrets"));
    let late = || "the tenant does not own its namespace".to_owned();
    retry(LIMIT, late, async || Ok(line.ask_again(&secrets).await?.code.is_success())).await
}
