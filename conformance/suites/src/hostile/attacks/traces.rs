//! State that grows with names that tenants choose: metric series, fencing tokens, events.

use anyhow::{Context, Result, ensure};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::{eviction_request, node_maintenance};
use drydock_testkit::wait::{LIMIT, retry};
use serde_json::{Value, json};

use super::eviction_requests::Findings;
use super::host::allow_maintenances;
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;
use crate::setup::cluster::maintenance;

/// The most series that one metric may have, whatever labels tenants choose.
const SERIES: usize = 20_000;
/// Maintenances that have series, where there are more.
const SHOWN: usize = 833;
/// Requests at a time.
const LANES: usize = 8;
const WARNED: &str = "interceptor.evictionrequest.coordination.k8s.io/priority_";

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("metric-series", "a hundred requesters in each request, all of different names", |f| {
            Box::pin(metric_series(f))
        }),
        Attack::new("fencing-tokens", "fencing tokens in writes of a user who is no controller", |f| {
            Box::pin(fencing_tokens(f))
        }),
        Attack::new(
            "crowding-maintenances",
            "more maintenances of one account in Drain than have metrics, deleted at once beside another's drain",
            |f| Box::pin(crowding_maintenances(f)),
        ),
        Attack::new("event-flood", "pods with annotations that want 15,000 warnings", |f| {
            Box::pin(event_flood(f))
        }),
    ]
}

async fn metric_series(context: AttackContext) -> Findings {
    let node = format!("node-of-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let count = context.pick(220, 500);
    let pods = context.setup.pods(&context.tenant, &node, count, true).await?;
    let path = context.tenant.requests();
    let asks = pods.iter().enumerate().map(|(at, (pod, uid))| {
        let mut object = eviction_request(pod, uid, "first.example.com");
        object["spec"]["requesters"] =
            (0..100).map(|n| json!({"name": format!("r{at}-{n}.example.com")})).collect();
        UserRequest::post(&path, &object)
    });
    context.each(asks.collect(), 8).await?;
    // What the controller has acted on it has counted.
    let last = pods.last().map(|(_, uid)| context.tenant.request(uid)).context("no pod")?;
    retry(
        LIMIT,
        || "the controller does not get to the last request".to_owned(),
        async || {
            Ok(context.setup.done(&UserRequest::get(&last)).await?["status"]["targetInterceptors"].is_array())
        },
    )
    .await?;
    let (name, series) = context.setup.manager_series().await?;
    Ok(vec![Finding::new(series <= SERIES, format!("{series} series of {name}, more than {SERIES}"))])
}

/// If a tenant's token counted, a lower one after it would be refused, and a record of the writer kept forever.
async fn fencing_tokens(context: AttackContext) -> Findings {
    let connection = context.connect().await?;
    let write = |at: usize, term: &str| {
        UserRequest::post(context.tenant.requests(), &super::eviction_requests::request(at))
            .with("drydock-lease-epoch", term)
    };
    let high = connection.ask_again(&write(0, "1000000")).await;
    context.note(&high);
    let low = connection.ask_again(&write(1, "1")).await;
    context.note(&low);
    let (high, low) = (high?.code, low?.code);
    let counts = high.is_success() && !low.is_success();
    let path = context.tenant.requests();
    context
        .repeat_requests(8, move |lane, round| {
            let object = super::eviction_requests::request(100 + lane * 100_000 + round);
            UserRequest::post(&path, &object).with("drydock-lease-epoch", round.to_string())
        })
        .await;
    Ok(vec![Finding::new(!counts, format!("a tenant's term was taken: {high}, and the lower one {low}"))])
}

/// The first by name had metrics, and all maintenances one queue of a hundred events: no alert fired for another's drain, and
/// nobody was told of it.
async fn crowding_maintenances(context: AttackContext) -> Findings {
    let nodes = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]});
    allow_maintenances(&context, &[nodes]).await?;
    let found = crowd_beside_drains(&context).await;
    // All attacks share one Drydock: none of the crowd may be left, whatever came of it.
    let cleared = without_crowd(&context).await;
    let found = found?;
    cleared.map(|()| found)
}

async fn crowd_beside_drains(context: &AttackContext) -> Findings {
    let (name, path) = (&context.tenant.namespace, all_maintenances());
    let connection = context.connect().await?;
    let list = UserRequest::get(format!("{path}?limit=1"));
    let has_rights = async || Ok(connection.ask_again(&list).await?.code.is_success());
    retry(LIMIT, || "no rights".to_owned(), has_rights).await?;
    let count = context.pick(SHOWN + 20, 1_500);
    let crowd: Vec<String> = (0..count).map(|at| format!("0-{name}-{at:04}")).collect();
    let make = |one: &String| UserRequest::post(&path, &node_maintenance(one, "Drain", &["nowhere"]));
    context.each(crowd.iter().map(make).collect(), LANES).await?;
    let made = context.counted("201");
    ensure!(made > SHOWN, "{made} maintenances are made: {}", context.summary());
    let [first, second] = drains_of_another(context);
    drain_of_another(context, &first).await?;
    let shown = has_series(context, &first).await;
    let remove = |one: &String| UserRequest::delete(format!("{path}/{one}"));
    let removed = context.each(crowd.iter().map(remove).collect(), LANES);
    let told = async {
        context.is_under_way(count + count / 5).await?;
        drain_of_another(context, &second).await?;
        is_told_of(context, &second).await
    };
    let (removed, told) = tokio::join!(removed, told);
    removed?;
    Ok(vec![
        Finding::new(shown.is_ok(), format!("the metrics of another's drain: {shown:?}")),
        Finding::new(told.is_ok(), format!("the events of another's drain: {told:?}")),
    ])
}

/// Removes what is left, and waits until the crowd is gone: the controller takes its finalizers away.
async fn without_crowd(context: &AttackContext) -> Result<()> {
    let admin = context.setup.admin().await?;
    for mine in drains_of_another(context) {
        admin.decided(&UserRequest::delete(maintenance(&mine))).await?;
    }
    let prefix = format!("0-{}-", context.tenant.namespace);
    // These names come first in a list.
    let first_page = UserRequest::get(format!("{}?limit=500", all_maintenances()));
    let late = || format!("maintenances {prefix} are left");
    retry(LIMIT, late, async || {
        let admin = context.setup.admin().await?;
        let page = admin.done(&first_page).await?;
        let (mut is_empty, mut kept) = (true, Vec::new());
        for metadata in page["items"].as_array().context("no list")?.iter().map(|item| &item["metadata"]) {
            let Some(name) = metadata["name"].as_str().filter(|name| name.starts_with(&prefix)) else {
                continue;
            };
            is_empty = false;
            if metadata["deletionTimestamp"].is_null() {
                kept.push(UserRequest::delete(maintenance(name)));
            }
        }
        for ask in &kept {
            admin.decided(ask).await?;
        }
        Ok(is_empty)
    })
    .await
}

fn all_maintenances() -> String {
    maintenance("").trim_end_matches('/').to_owned()
}

fn drains_of_another(context: &AttackContext) -> [String; 2] {
    [1, 2].map(|at| format!("zz-{}-{at}", context.tenant.namespace))
}

/// An admin drains a node with a pod that stays.
async fn drain_of_another(context: &AttackContext, name: &str) -> Result<()> {
    context.setup.node(name).await?;
    context.setup.patient_pod(&context.tenant, name).await?;
    context.setup.drain(name, name).await
}

async fn has_series(context: &AttackContext, name: &str) -> Result<()> {
    let series = [
        format!("nodemaintenance_stage{{nodemaintenance=\"{name}\",stage=\"Drain\"}} 1"),
        format!("nodemaintenance_controller_pods_evacuating{{nodemaintenance=\"{name}\"}} 1"),
    ];
    let late = || format!("not all of {series:?}");
    retry(LIMIT, late, async || {
        let text = context.setup.manager_metrics().await?;
        Ok(series.iter().all(|series| text.lines().any(|line| line == series)))
    })
    .await
}

async fn is_told_of(context: &AttackContext, name: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{name}");
    let late = || format!("not all events of {name}");
    retry(LIMIT, late, async || {
        let events = context.setup.done(&UserRequest::get(&path)).await?;
        let events = events["items"].as_array().context("no list")?;
        let has = |reason: &str| {
            let is_meant = |event: &Value| {
                event["reason"] == reason && event["involvedObject"]["kind"] == "NodeMaintenance"
            };
            events.iter().any(is_meant)
        };
        Ok(has("Cordoned") && has("DrainStarted"))
    })
    .await
}

async fn event_flood(context: AttackContext) -> Findings {
    let bad: Value = (0..300).map(|at| (format!("{WARNED}x{at}"), json!("no number"))).collect();
    let node = format!("node-of-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let pods = context.setup.annotated_pods(&context.tenant, &node, context.pick(50, 500), &bad).await?;
    let path = context.tenant.requests();
    let asks =
        pods.iter().map(|(pod, uid)| UserRequest::post(&path, &eviction_request(pod, uid, "a.example.com")));
    context.each(asks.collect(), 8).await?;
    let warned = event_of_another(&context).await;
    Ok(vec![Finding::new(warned.is_ok(), format!("another tenant's event: {warned:?}"))])
}

/// The warning about another tenant's pod must still be written.
async fn event_of_another(context: &AttackContext) -> Result<()> {
    let other = context.setup.tenant(&format!("{}-other", context.tenant.namespace), 1).await?;
    let node = format!("node-of-{}", other.namespace);
    context.setup.node(&node).await?;
    let bad = json!({format!("{WARNED}patient.example.com"): "no number"});
    // An event that the host does not take in time is dropped: one of several has to come.
    let pods = context.setup.annotated_pods(&other, &node, 5, &bad).await?;
    let connection = other
        .account()
        .connect(&context.setup.direct, crate::setup::USUAL_ADDRESS, crate::client::FlowWindows::USUAL)
        .await?;
    for (pod, uid) in &pods {
        let request = eviction_request(pod, uid, "a.example.com");
        connection.done(&UserRequest::post(other.requests(), &request)).await?;
    }
    let events = format!("/api/v1/namespaces/{}/events", other.namespace);
    retry(
        LIMIT,
        || "no warning came".to_owned(),
        async || {
            let all = context.setup.done(&UserRequest::get(&events)).await?;
            Ok(all["items"].as_array().is_some_and(|all| all.iter().any(|event| event["type"] == "Warning")))
        },
    )
    .await
}
