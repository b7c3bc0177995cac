//! Writes and deletes without pause.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::task::JoinSet;

use super::eviction_requests::{Findings, create_requests, no_findings, request, uid};
use crate::attack::Attack;
use crate::client::{UserConnection, UserRequest};
use crate::context::AttackContext;

/// Requests at a time.
const LANES: usize = 16;

/// Watches on a connection, and connections of them in the short and the long form.
const WATCHES: usize = 300;
const WATCHING: (usize, usize) = (10, 100);

/// The attacks of this module.
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("hot-object", "one request, written by 16 at a time", |f| Box::pin(hot_object(f))),
        Attack::new("watched-writes", "the same beside 3,000 watches of it that are read", |f| {
            Box::pin(watched_writes(f))
        }),
        Attack::new("dry-runs", "creates that are not meant", |f| Box::pin(dry_runs(f))),
        Attack::new("delete-collections", "all requests deleted while they are made", |f| {
            Box::pin(collections(f))
        }),
        Attack::new("half-requests", "bodies in pieces, trailers, Expect, lengths that lie", |f| {
            Box::pin(super::connections::half_requests(f))
        }),
        Attack::new("cancelled-gets", "GETs cancelled 90 at a time through the aggregator", |f| {
            Box::pin(cancelled(f))
        }),
    ]
}

async fn hot_object(context: AttackContext) -> Findings {
    create_requests(&context, 1, 1000).await?;
    rewrite(&context).await;
    no_findings()
}

/// Each write is an event for each of the watches.
async fn watched_writes(context: AttackContext) -> Findings {
    create_requests(&context, 1, 1000).await?;
    let mut watches = JoinSet::new();
    for _ in 0..context.pick(WATCHING.0, WATCHING.1) {
        watch(&context, &mut watches).await?;
    }
    rewrite(&context).await;
    let written = context.counted("200");
    watches.shutdown().await;
    context.say(format!("{written} writes, {} pieces of events read", context.counted("event")));
    no_findings()
}

/// Opens the watches of one connection, and reads their events for as long as `watches` lasts.
async fn watch(context: &AttackContext, watches: &mut JoinSet<()>) -> Result<()> {
    let connection = context.connect().await?;
    let ask = UserRequest::get(format!("{}?watch=1&timeoutSeconds=3600", context.tenant.requests()));
    let opened = (0..WATCHES).map(|_| connection.send_again(&ask));
    for answer in try_join_all(opened).await? {
        ensure!(answer.status().is_success(), "a watch was answered {}", answer.status());
        let (context, mut body) = (context.clone(), answer.into_body());
        watches.spawn(async move {
            while let Some(Ok(_)) = body.frame().await {
                context.count("event");
            }
            context.count("ended");
        });
    }
    Ok(())
}

/// One request is rewritten by many at a time until the time is over.
async fn rewrite(context: &AttackContext) {
    let path = context.tenant.request(&uid(0));
    context
        .repeat_requests(LANES, move |lane, round| {
            let annotations =
                json!({"metadata": {"annotations": {format!("lane-{lane}"): round.to_string()}}});
            UserRequest::merge(&path, &annotations)
        })
        .await;
}

async fn dry_runs(context: AttackContext) -> Findings {
    let path = context.tenant.requests();
    context
        .repeat_requests(LANES, move |_, round| {
            UserRequest::post(format!("{path}?dryRun=All"), &request(round))
        })
        .await;
    no_findings()
}

async fn collections(context: AttackContext) -> Findings {
    create_requests(&context, 100, 100).await?;
    let path = context.tenant.requests();
    context
        .repeat_requests(LANES, move |lane, round| match lane % 2 {
            0 => UserRequest::delete(&path),
            _ => UserRequest::post(&path, &request(lane * 100_000 + round)),
        })
        .await;
    no_findings()
}

/// GETs cancelled at a time.
const BURST: usize = 90;

/// Through the aggregator, all of whose clients share a single connection to us.
async fn cancelled(context: AttackContext) -> Findings {
    create_requests(&context, 100, 2000).await?;
    let path = context.tenant.requests();
    let each = context.clone();
    context
        .repeat(4, move |_, _| {
            let (context, path) = (each.clone(), path.clone());
            async move {
                let connection = context.connect_through_host().await?;
                for round in 0..20 {
                    burst(&context, &connection, &path, Duration::from_millis(2 * round)).await;
                }
                Ok(())
            }
        })
        .await;
    no_findings()
}

/// Sends a burst and cancels it after a delay that varies, so that some requests are cancelled before they are accepted.
async fn burst(context: &AttackContext, connection: &UserConnection, path: &str, later: Duration) {
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..BURST {
        let (connection, ask) = (connection.clone(), UserRequest::get(path));
        asked.spawn(async move { connection.send(&ask).await.map(drop) });
        context.count("cancelled");
    }
    tokio::time::sleep(later).await;
    asked.shutdown().await;
}
