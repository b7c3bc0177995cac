//! Writes and deletes without pause.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::task::JoinSet;

use super::stock::{Findings, lay_in, nothing, request, uid};
use crate::attack::Attack;
use crate::door::{UserConnection, UserRequest};
use crate::field::AttackField;

/// Requests at a time.
const LANES: usize = 16;

/// Watches on a connection, and connections of them in the short and the long form.
const WATCHES: usize = 300;
const WATCHING: (usize, usize) = (10, 100);

/// These attacks.
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

async fn hot_object(field: AttackField) -> Findings {
    lay_in(&field, 1, 1000).await?;
    rewrite(&field).await;
    nothing()
}

/// Each write is an event for each of the watches.
async fn watched_writes(field: AttackField) -> Findings {
    lay_in(&field, 1, 1000).await?;
    let mut watches = JoinSet::new();
    for _ in 0..field.pick(WATCHING.0, WATCHING.1) {
        watch(&field, &mut watches).await?;
    }
    rewrite(&field).await;
    let written = field.counted("200");
    watches.shutdown().await;
    field.say(format!("{written} writes, {} pieces of events read", field.counted("event")));
    nothing()
}

/// Opens the watches of one connection, and reads their events for as long as `watches` lasts.
async fn watch(field: &AttackField, watches: &mut JoinSet<()>) -> Result<()> {
    let line = field.line().await?;
    let ask = UserRequest::get(format!("{}?watch=1&timeoutSeconds=3600", field.tenant.requests()));
    let opened = (0..WATCHES).map(|_| line.send_again(&ask));
    for answer in try_join_all(opened).await? {
        ensure!(answer.status().is_success(), "a watch was answered {}", answer.status());
        let (field, mut body) = (field.clone(), answer.into_body());
        watches.spawn(async move {
            while let Some(Ok(_)) = body.frame().await {
                field.count("event");
            }
            field.count("ended");
        });
    }
    Ok(())
}

/// One request is rewritten by many at a time until the time is over.
async fn rewrite(field: &AttackField) {
    let path = field.tenant.request(&uid(0));
    field
        .ask_storm(LANES, move |lane, round| {
            let annotations =
                json!({"metadata": {"annotations": {format!("lane-{lane}"): round.to_string()}}});
            UserRequest::merge(&path, &annotations)
        })
        .await;
}

async fn dry_runs(field: AttackField) -> Findings {
    let path = field.tenant.requests();
    field
        .ask_storm(LANES, move |_, round| UserRequest::post(format!("{path}?dryRun=All"), &request(round)))
        .await;
    nothing()
}

async fn collections(field: AttackField) -> Findings {
    lay_in(&field, 100, 100).await?;
    let path = field.tenant.requests();
    field
        .ask_storm(LANES, move |lane, round| match lane % 2 {
            0 => UserRequest::delete(&path),
            _ => UserRequest::post(&path, &request(lane * 100_000 + round)),
        })
        .await;
    nothing()
}

/// GETs cancelled at a time.
const BURST: usize = 90;

/// Through the aggregator, whose single connection to us all of its clients share.
async fn cancelled(field: AttackField) -> Findings {
    lay_in(&field, 100, 2000).await?;
    let path = field.tenant.requests();
    let each = field.clone();
    field
        .storm(4, move |_, _| {
            let (field, path) = (each.clone(), path.clone());
            async move {
                let line = field.line_through_host().await?;
                for round in 0..20 {
                    burst(&field, &line, &path, Duration::from_millis(2 * round)).await;
                }
                Ok(())
            }
        })
        .await;
    nothing()
}

/// Sends a burst and cancels it when it is on its way: sooner or later, so that some are met before they are accepted.
async fn burst(field: &AttackField, line: &UserConnection, path: &str, later: Duration) {
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..BURST {
        let (line, ask) = (line.clone(), UserRequest::get(path));
        asked.spawn(async move { line.send(&ask).await.map(drop) });
        field.count("cancelled");
    }
    tokio::time::sleep(later).await;
    asked.shutdown().await;
}
