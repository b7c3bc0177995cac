//! Namespaces and stores that are filled.

use std::time::{Duration, Instant};

use anyhow::Result;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::retry;
use serde_json::json;

use super::eviction_requests::{Findings, create_requests, request, uid};
use crate::attack::Attack;
use crate::client::UserRequest;
use crate::context::AttackContext;
use crate::setup::cluster::{has_condition, maintenance};

/// Bytes of the annotation of a large object.
const HEAVY: usize = 50_000;
/// Requests at a time.
const LANES: usize = 16;
/// How long a drain of that many pods, or the end of that many requests, may take: in the short form, and in the long one.
const LIMIT: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(3_000)];

/// The attacks of this module.
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

async fn filled(context: AttackContext) -> Findings {
    let (pods, requests) = (context.pick(500, 10_000), context.pick(2_000, 20_000));
    let name = context.tenant.namespace.clone();
    context.setup.node(&name).await?;
    context.setup.pods(&context.tenant, &name, pods, false).await?;
    let began = Instant::now();
    context.setup.drain(&name, &name).await?;
    let fill = (0..requests).map(|at| UserRequest::post(context.tenant.requests(), &request(at))).collect();
    let (filled, drained) = tokio::join!(context.each(fill, LANES), drained(&context, &name));
    filled?;
    context.say(format!("{pods} pods drained in {} s", began.elapsed().as_secs()));
    Ok(vec![Finding::new(drained.is_ok(), format!("the drain of the filled namespace: {drained:?}"))])
}

async fn history_flood(context: AttackContext) -> Findings {
    create_requests(&context, 1, HEAVY).await?;
    let path = context.tenant.request(&uid(0));
    context
        .repeat_requests(LANES, move |lane, round| {
            let padding = format!("{lane}-{round}-{}", "x".repeat(HEAVY));
            UserRequest::merge(&path, &json!({"metadata": {"annotations": {"example.com/padding": padding}}}))
        })
        .await;
    let full = context.counted("507");
    Ok(vec![Finding::new(full == 0, format!("the store was full for {full} writes"))])
}

/// Waits until a maintenance is drained, and completes it.
pub async fn drained(context: &AttackContext, name: &str) -> Result<()> {
    let path = maintenance(name);
    retry(
        context.pick(LIMIT[0], LIMIT[1]),
        || "did not end".to_owned(),
        async || Ok(has_condition(&context.setup.done(&UserRequest::get(&path)).await?, "Drained")),
    )
    .await?;
    context.setup.done(&UserRequest::merge(&path, &json!({"spec": {"stage": "Complete"}}))).await.map(drop)
}

async fn deleted(context: AttackContext) -> Findings {
    let requests = context.pick(2_000, 20_000);
    let fill = (0..requests).map(|at| UserRequest::post(context.tenant.requests(), &request(at))).collect();
    context.each(fill, LANES).await?;
    let (path, began) = (format!("/api/v1/namespaces/{}", context.tenant.namespace), Instant::now());
    context.setup.done(&UserRequest::delete(&path)).await?;
    let admin = context.setup.admin().await?;
    let gone = retry(
        context.pick(LIMIT[0], LIMIT[1]),
        || "it is still there".to_owned(),
        async || Ok(admin.ask_again(&UserRequest::get(&path)).await?.code == http::StatusCode::NOT_FOUND),
    );
    let gone = gone.await;
    context.say(format!("gone in {} s", began.elapsed().as_secs()));
    Ok(vec![Finding::new(gone.is_ok(), format!("the namespace: {gone:?}"))])
}

async fn held(context: AttackContext) -> Findings {
    let count = context.pick(500, 5_000);
    let path = context.tenant.requests();
    let make = (0..count).map(|at| {
        let mut object = request(at);
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        UserRequest::post(&path, &object)
    });
    context.each(make.collect(), LANES).await?;
    context
        .each((0..count).map(|at| UserRequest::delete(context.tenant.request(&uid(at)))).collect(), LANES)
        .await?;
    context.each(vec![UserRequest::delete(&path); 8], 8).await?;
    let release = json!({"metadata": {"finalizers": null}});
    let release =
        (0..count).map(|at| UserRequest::merge(context.tenant.request(&uid(at)), &release)).collect();
    context.each(release, LANES).await?;
    let left = context.connect().await?.done(&UserRequest::get(&path)).await?;
    let left = left["items"].as_array().map_or(0, Vec::len);
    Ok(vec![Finding::new(left == 0, format!("{left} requests could not be released"))])
}
