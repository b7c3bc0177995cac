//! What tenants make the controllers do: by budgets for their pods, and by withdrawing what a maintenance asked for.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::kinds::eviction_request;
use drydock_testkit::wait::retry;
use futures::future::join_all;
use serde_json::{Value, json};

use super::stock::{Findings, REQUESTER};
use crate::attack::{Attack, AttackFinding};
use crate::door::{UserConnection, UserRequest};
use crate::field::AttackField;
use crate::setup::MemoryGauge;
use crate::setup::cluster::{Pods, maintenance};

/// Most resident memory of our controller manager in MiB.
const MEMORY: u64 = 192;
/// Requests at a time.
const LANES: usize = 8;
const LIMIT: Duration = Duration::from_secs(200);

/// These attacks.
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

/// Each pod remembered each of its budgets, and each report and event named them all.
async fn many_budgets(field: AttackField) -> Findings {
    let (budgets, pods) = (field.pick(1_000, 10_000), field.pick(100, 1_000));
    let pods = running(&field, pods).await?;
    let path = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", field.tenant.namespace);
    let make = (0..budgets).map(|at| UserRequest::post(&path, &budget(at))).collect();
    on_the_host(&field, make).await?;
    let memory = MemoryGauge::of(field.setup.manager_pid()?)?;
    let before = field.setup.manager_pid()?;
    let ask = pods
        .iter()
        .map(|(pod, uid)| UserRequest::post(field.tenant.requests(), &eviction_request(pod, uid, REQUESTER)));
    field.each(ask.collect(), LANES).await?;
    let (_, told) = tokio::join!(flip(&field, &path), told(&field, &pods));
    let (peak, _) = memory.peak();
    field.say(format!("{peak} MiB in the controller manager"));
    empty(&field, &path).await?;
    Ok(vec![
        AttackFinding::new(told.is_ok(), format!("what is told of the last pod: {told:?}")),
        AttackFinding::new(
            peak <= MEMORY,
            format!("{peak} MiB in the controller manager, more than {MEMORY}"),
        ),
        AttackFinding::new(field.setup.manager_pid()? == before, "the controller manager was started anew"),
    ])
}

/// Deletes a collection of the host's, which works on it for as long as it is there. Ten thousand objects
/// take it longer than one request may: it is asked again for those that are left.
async fn empty(field: &AttackField, path: &str) -> Result<()> {
    let admin = field.setup.admin().await?;
    retry(
        LIMIT,
        || format!("{path} is not empty"),
        async || Ok(admin.ask_again(&UserRequest::delete(path)).await?.code.is_success()),
    )
    .await
}

/// Pods of the tenant that run: the host asks no budget about others.
async fn running(field: &AttackField, count: usize) -> Result<Pods> {
    let node = format!("node-of-{}", field.tenant.namespace);
    field.setup.node(&node).await?;
    let pods = field.setup.pods(&field.tenant, &node, count, false).await?;
    let all = UserRequest::get(format!("{}?fieldSelector=status.phase!=Running", field.tenant.pods()));
    retry(
        LIMIT,
        || "not all pods run".to_owned(),
        async || {
            let others = field.setup.done(&all).await?;
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
async fn on_the_host(field: &AttackField, asks: Vec<UserRequest>) -> Result<()> {
    let (line, asks) = (field.line_through_host().await?, Arc::new(asks));
    let lanes = (0..LANES).map(|lane| {
        let (line, asks) = (line.clone(), asks.clone());
        async move {
            for ask in asks.iter().skip(lane).step_by(LANES) {
                field.note(&line.ask_again(ask).await);
            }
        }
    });
    join_all(lanes).await;
    Ok(())
}

/// The first budgets cover the pods, and cover none, in turn.
async fn flip(field: &AttackField, path: &str) {
    let (each, path) = (field.clone(), path.to_owned());
    field
        .storm(LANES, move |lane, _| {
            let (field, path) = (each.clone(), format!("{path}/{}", name(lane)));
            async move {
                let line = field.line_through_host().await?;
                for turn in 0..20 {
                    let labels = if turn % 2 == 0 { json!({"a": "b"}) } else { json!(null) };
                    let change = json!({"spec": {"selector": {"matchLabels": labels}}});
                    field.note(&line.ask(&UserRequest::merge(&path, &change)).await);
                }
                Ok(())
            }
        })
        .await;
}

/// The reports were too long to be taken.
async fn told(field: &AttackField, pods: &Pods) -> Result<()> {
    let last = pods.last().map(|(_, uid)| field.tenant.request(uid)).context("no pod")?;
    retry(
        LIMIT,
        || "nothing".to_owned(),
        async || {
            let request = field.setup.done(&UserRequest::get(&last)).await?;
            let message = request["status"]["interceptors"][0]["message"].as_str().unwrap_or_default();
            Ok(message.contains("more than one PodDisruptionBudget"))
        },
    )
    .await
}

/// Each withdrawal is one write, and the controllers answered with five: a new request, and everything with
/// which a request begins.
async fn withdrawn(field: AttackField) -> Findings {
    let (name, count) = (field.tenant.namespace.clone(), field.pick(50, 500));
    field.setup.node(&name).await?;
    field.setup.pods(&field.tenant, &name, count, true).await?;
    field.setup.drain(&name, &name).await?;
    asked(&field, count).await?;
    let each = field.clone();
    field
        .storm(LANES, move |lane, _| {
            let field = each.clone();
            async move { withdraw_all(&field, &field.line().await?, lane).await }
        })
        .await;
    let (withdrawn, blocked) =
        (field.counted("withdrawn"), field.setup.blocker(LIMIT, &name, "RequestWithdrawn", &[]).await);
    field
        .setup
        .done(&UserRequest::merge(maintenance(&name), &json!({"spec": {"stage": "Complete"}})))
        .await?;
    let told = format!("{withdrawn} requests of {count} pods could be withdrawn");
    Ok(vec![
        AttackFinding::new(withdrawn <= count, told),
        AttackFinding::new(withdrawn > 0, "no request could be withdrawn"),
        AttackFinding::new(blocked.is_ok(), format!("a blocker that says why: {blocked:?}")),
    ])
}

/// The maintenance has asked for all pods.
async fn asked(field: &AttackField, count: usize) -> Result<()> {
    let all = UserRequest::get(field.tenant.requests());
    retry(
        LIMIT,
        || "the maintenance does not ask for the pods".to_owned(),
        async || {
            let requests = field.setup.done(&all).await?;
            Ok(requests["items"].as_array().is_some_and(|requests| requests.len() == count))
        },
    )
    .await
}

/// Removes all requesters from the requests that have one and belong to this worker (`lane`), so that no two
/// workers withdraw the same one.
async fn withdraw_all(field: &AttackField, line: &UserConnection, lane: usize) -> Result<()> {
    let all = line.done(&UserRequest::get(field.tenant.requests())).await?;
    let wanted = |request: &&Value| request["spec"]["requesters"].as_array().is_some_and(|r| !r.is_empty());
    for request in all["items"].as_array().into_iter().flatten().filter(wanted) {
        let meta = &request["metadata"];
        let name = meta["name"].as_str().context("a request without a name")?;
        if name.bytes().map(usize::from).sum::<usize>() % LANES != lane {
            continue;
        }
        let withdrawal = json!({"metadata": {"uid": meta["uid"]}, "spec": {"requesters": []}});
        let answer = line.ask(&UserRequest::merge(field.tenant.request(name), &withdrawal)).await;
        if answer.as_ref().is_ok_and(|answer| answer.code.is_success()) {
            field.count("withdrawn");
        }
        field.note(&answer);
    }
    Ok(())
}
