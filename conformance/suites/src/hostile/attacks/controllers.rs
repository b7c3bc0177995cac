//! Work that tenants cause in the controllers: by budgets for their pods, and by withdrawing requests of a maintenance.

use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::{LIMIT, retry};
use futures::future::join_all;
use serde_json::{Value, json};

use super::eviction_requests::{Findings, REQUESTER};
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::AttackContext;
use crate::setup::MemoryGauge;
use crate::setup::cluster::{Pods, maintenance};

/// Most resident memory of our controller manager in MiB.
const MEMORY: u64 = 192;
/// Requests at a time.
const LANES: usize = 8;

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new(
            "many-budgets",
            "pods that a thousand budgets with long names cover, whose selectors change all the time",
            |f| Box::pin(many_budgets(f)),
        ),
        Attack::new("withdrawn-requests", "a maintenance's requests, withdrawn whenever they appear", |f| {
            Box::pin(withdrawn(f))
        }),
    ]
}

/// The controllers remembered each budget of each pod, and each report and event named them all.
async fn many_budgets(context: AttackContext) -> Findings {
    let (budgets, pods) = (context.pick(1_000, 10_000), context.pick(100, 1_000));
    let pods = running(&context, pods).await?;
    let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", context.tenant.namespace);
    let make = (0..budgets).map(|at| UserRequest::post(&path, &budget(at))).collect();
    on_the_host(&context, make).await?;
    let memory = MemoryGauge::of(context.setup.manager_pid()?)?;
    let before = context.setup.manager_pid()?;
    let ask = pods.iter().map(|(pod, uid)| {
        UserRequest::post(context.tenant.requests(), &eviction_request(pod, uid, REQUESTER))
    });
    context.each(ask.collect(), LANES).await?;
    let (_, reported) = tokio::join!(flip(&context, &path), reported_last(&context, &pods));
    let (peak, _) = memory.peak();
    context.say(format!("{peak} MiB in the controller manager"));
    empty(&context, &path).await?;
    Ok(vec![
        Finding::new(reported.is_ok(), format!("what is reported of the last pod: {reported:?}")),
        Finding::new(peak <= MEMORY, format!("{peak} MiB in the controller manager, more than {MEMORY}")),
        Finding::new(
            context.setup.manager_pid().is_ok_and(|pid| pid == before),
            "the controller manager has ended",
        ),
    ])
}

/// Deletes a collection of the host's, which works on it for as long as it is there. Ten thousand objects
/// take it longer than one request may: it is asked again for those that are left.
async fn empty(context: &AttackContext, path: &str) -> Result<()> {
    let admin = context.setup.admin().await?;
    retry(
        LIMIT,
        || format!("{path} is not empty"),
        async || Ok(admin.ask_again(&UserRequest::delete(path)).await?.code.is_success()),
    )
    .await
}

/// Pods of the tenant that run: the host asks no budget about others.
async fn running(context: &AttackContext, count: usize) -> Result<Pods> {
    let node = format!("node-of-{}", context.tenant.namespace);
    context.setup.node(&node).await?;
    let pods = context.setup.pods(&context.tenant, &node, count, false).await?;
    let all = UserRequest::get(format!("{}?fieldSelector=status.phase!=Running", context.tenant.pods()));
    retry(
        LIMIT,
        || "not all pods run".to_owned(),
        async || {
            let others = context.setup.done(&all).await?;
            Ok(others["items"].as_array().is_some_and(Vec::is_empty))
        },
    )
    .await?;
    Ok(pods)
}

/// A budget for all pods, with the longest name.
fn budget(at: usize) -> Value {
    json!({"metadata": {"name": name(at)}, "spec": {"selector": {}, "minAvailable": 1}})
}

fn name(at: usize) -> String {
    format!("{at:05}-{}", "b".repeat(247))
}

/// The tenant asks the host for these, so many at a time.
async fn on_the_host(context: &AttackContext, asks: Vec<UserRequest>) -> Result<()> {
    let (connection, asks) = (context.connect_through_host().await?, Arc::new(asks));
    let lanes = (0..LANES).map(|lane| {
        let (connection, asks) = (connection.clone(), asks.clone());
        async move {
            for ask in asks.iter().skip(lane).step_by(LANES) {
                context.note(&connection.ask_again(ask).await);
            }
        }
    });
    join_all(lanes).await;
    Ok(())
}

/// The first budgets cover the pods, and cover none, in turn.
async fn flip(context: &AttackContext, path: &str) {
    let (each, path) = (context.clone(), path.to_owned());
    context
        .repeat(LANES, move |lane, _| {
            let (context, path) = (each.clone(), format!("{path}/{}", name(lane)));
            async move {
                let connection = context.connect_through_host().await?;
                for turn in 0..20 {
                    let labels = if turn % 2 == 0 { json!({"a": "b"}) } else { json!(null) };
                    let change = json!({"spec": {"selector": {"matchLabels": labels}}});
                    context.note(&connection.ask(&UserRequest::merge(&path, &change)).await);
                }
                Ok(())
            }
        })
        .await;
}

/// The API server refused the reports, as they were too long.
async fn reported_last(context: &AttackContext, pods: &Pods) -> Result<()> {
    let last = pods.last().map(|(_, uid)| context.tenant.request(uid)).context("no pod")?;
    retry(
        LIMIT,
        || "nothing".to_owned(),
        async || {
            let request = context.setup.done(&UserRequest::get(&last)).await?;
            let message = request["status"]["interceptors"][0]["message"].as_str().unwrap_or_default();
            Ok(message.contains("more than one PodDisruptionBudget"))
        },
    )
    .await
}

/// Each withdrawal is one write, after which the controllers made five: a new request, and the first steps of it.
async fn withdrawn(context: AttackContext) -> Findings {
    let (name, count) = (context.tenant.namespace.clone(), context.pick(50, 500));
    context.setup.node(&name).await?;
    context.setup.pods(&context.tenant, &name, count, true).await?;
    context.setup.drain(&name, &name).await?;
    asked(&context, count).await?;
    // Each once, however long it takes; then whatever there is to withdraw while there is time.
    let connection = context.connect().await?;
    for lane in 0..LANES {
        withdraw_all(&context, &connection, lane).await?;
    }
    let each = context.clone();
    context
        .repeat(LANES, move |lane, _| {
            let context = each.clone();
            async move { withdraw_all(&context, &context.connect().await?, lane).await }
        })
        .await;
    let (withdrawn, blocked) =
        (context.counted("withdrawn"), context.setup.blocker(&name, "RequestWithdrawn", &[]).await);
    context
        .setup
        .done(&UserRequest::merge(maintenance(&name), &json!({"spec": {"stage": "Complete"}})))
        .await?;
    let text = format!("{withdrawn} requests of {count} pods could be withdrawn");
    Ok(vec![
        Finding::new(withdrawn <= count, text),
        Finding::new(withdrawn > 0, "no request could be withdrawn"),
        Finding::new(blocked.is_ok(), format!("a blocker that says why: {blocked:?}")),
    ])
}

/// The maintenance has asked for all pods.
async fn asked(context: &AttackContext, count: usize) -> Result<()> {
    let all = UserRequest::get(context.tenant.requests());
    retry(
        LIMIT,
        || "the maintenance does not ask for the pods".to_owned(),
        async || {
            let requests = context.setup.done(&all).await?;
            Ok(requests["items"].as_array().is_some_and(|requests| requests.len() == count))
        },
    )
    .await
}

/// Removes all requesters from the requests that have one and belong to this worker (`lane`), so that no two
/// workers withdraw the same one.
async fn withdraw_all(context: &AttackContext, connection: &UserConnection, lane: usize) -> Result<()> {
    let all = connection.done(&UserRequest::get(context.tenant.requests())).await?;
    let wanted = |request: &&Value| request["spec"]["requesters"].as_array().is_some_and(|r| !r.is_empty());
    for request in all["items"].as_array().into_iter().flatten().filter(wanted) {
        let meta = &request["metadata"];
        let name = meta["name"].as_str().context("a request without a name")?;
        if name.bytes().map(usize::from).sum::<usize>() % LANES != lane {
            continue;
        }
        let withdrawal = json!({"metadata": {"uid": meta["uid"]}, "spec": {"requesters": []}});
        let answer = connection.ask(&UserRequest::merge(context.tenant.request(name), &withdrawal)).await;
        if answer.as_ref().is_ok_and(|answer| answer.code.is_success()) {
            context.count("withdrawn");
        }
        context.note(&answer);
    }
    Ok(())
}
