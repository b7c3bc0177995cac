//! Namespaces that are filled.

use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::wait::retry;
use serde_json::json;

use super::stock::{Findings, lay_in, request, uid};
use crate::attack::{Attack, AttackFinding};
use crate::door::UserRequest;
use crate::field::AttackField;
use crate::setup::cluster::{has_condition, maintenance};

/// Bytes of an annotation of which an object has nothing but one.
const HEAVY: usize = 50_000;
/// Requests at a time.
const LANES: usize = 16;
/// A drain of that many pods, or the end of that many requests, has come by then or never will: in the short form, and
/// in the long one.
const LIMIT: [Duration; 2] = [Duration::from_secs(280), Duration::from_secs(3_000)];

/// These attacks.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("filled-namespace", "2,000 requests in a namespace whose 500 pods are drained", |f| {
            Box::pin(filled(f))
        }),
        Attack::new("history-flood", "one heavy request, rewritten until the store is short of space", |f| {
            Box::pin(history_flood(f))
        })
        .in_a_small_store(),
        Attack::new("deleted-namespace", "a namespace with 2,000 requests, deleted", |f| {
            Box::pin(deleted(f))
        }),
        Attack::new("held-requests", "500 requests with a finalizer, deleted and not gone", |f| {
            Box::pin(held(f))
        }),
    ]
}

async fn filled(field: AttackField) -> Findings {
    let (pods, requests) = (field.pick(500, 10_000), field.pick(2_000, 20_000));
    let name = field.tenant.namespace.clone();
    field.setup.node(&name).await?;
    field.setup.pods(&field.tenant, &name, pods, false).await?;
    let began = Instant::now();
    field.setup.drain(&name, &name).await?;
    let fill = (0..requests).map(|at| UserRequest::post(field.tenant.requests(), &request(at))).collect();
    let (filled, drained) = tokio::join!(field.each(fill, LANES), drained(&field, &name));
    filled?;
    field.say(format!("{pods} pods drained in {} s", began.elapsed().as_secs()));
    Ok(vec![AttackFinding::new(drained.is_ok(), format!("the drain of the filled namespace: {drained:?}"))])
}

async fn history_flood(field: AttackField) -> Findings {
    lay_in(&field, 1, HEAVY).await?;
    let path = field.tenant.request(&uid(0));
    field
        .ask_storm(LANES, move |lane, round| {
            let stock = format!("{lane}-{round}-{}", "x".repeat(HEAVY));
            UserRequest::merge(&path, &json!({"metadata": {"annotations": {"example.com/stock": stock}}}))
        })
        .await;
    let full = field.counted("507");
    Ok(vec![AttackFinding::new(full == 0, format!("the store was full for {full} writes"))])
}

/// Waits until a maintenance is drained, and completes it.
pub async fn drained(field: &AttackField, name: &str) -> Result<()> {
    let path = maintenance(name);
    retry(
        field.pick(LIMIT[0], LIMIT[1]),
        || "did not end".to_owned(),
        async || Ok(has_condition(&field.setup.done(&UserRequest::get(&path)).await?, "Drained")),
    )
    .await?;
    field.setup.done(&UserRequest::merge(&path, &json!({"spec": {"stage": "Complete"}}))).await.map(drop)
}

async fn deleted(field: AttackField) -> Findings {
    let requests = field.pick(2_000, 20_000);
    let fill = (0..requests).map(|at| UserRequest::post(field.tenant.requests(), &request(at))).collect();
    field.each(fill, LANES).await?;
    let (path, began) = (format!("/api/v1/namespaces/{}", field.tenant.namespace), Instant::now());
    field.setup.done(&UserRequest::delete(&path)).await?;
    let admin = field.setup.admin().await?;
    let gone = retry(
        field.pick(LIMIT[0], LIMIT[1]),
        || "it is still there".to_owned(),
        async || Ok(admin.ask_again(&UserRequest::get(&path)).await?.code == http::StatusCode::NOT_FOUND),
    );
    let gone = gone.await;
    field.say(format!("gone in {} s", began.elapsed().as_secs()));
    Ok(vec![AttackFinding::new(gone.is_ok(), format!("the namespace: {gone:?}"))])
}

async fn held(field: AttackField) -> Findings {
    let count = field.pick(500, 5_000);
    let path = field.tenant.requests();
    let make = (0..count).map(|at| {
        let mut object = request(at);
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        UserRequest::post(&path, &object)
    });
    field.each(make.collect(), LANES).await?;
    field
        .each((0..count).map(|at| UserRequest::delete(field.tenant.request(&uid(at)))).collect(), LANES)
        .await?;
    field.each(vec![UserRequest::delete(&path); 8], 8).await?;
    let release = json!({"metadata": {"finalizers": null}});
    let release = (0..count).map(|at| UserRequest::merge(field.tenant.request(&uid(at)), &release)).collect();
    field.each(release, LANES).await?;
    let left = field.line().await?.done(&UserRequest::get(&path)).await?;
    let left = left["items"].as_array().map_or(0, Vec::len);
    Ok(vec![AttackFinding::new(left == 0, format!("{left} requests could not be released"))])
}
