//! Watches of real API servers, as informers make them.

use std::sync::Arc;
use std::time::Duration;

use drydock_storage::backend::prefix_range;
use futures::{AsyncBufReadExt, TryStreamExt};
use http::Request;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value as Json;

use super::http::{PATH, PREFIX, key, pair_of, revision_of};
use super::notes::Notes;
use super::recent;
use crate::context::HistoryContext;
use crate::place::servers::Servers;
use crate::record::{DeliveredEvent, DeliveredItem, DeliveredKind, WatchStart};

pub async fn run(context: Arc<HistoryContext>, servers: Arc<Servers>, which: usize, mut rng: StdRng) {
    while !context.over.is_cancelled() {
        let (mut query, from) = match rng.random_range(0..3) {
            0 => {
                let newest = context.recorder.newest();
                let list = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned();
                (list, WatchStart::Initial(newest))
            }
            _ => {
                let after = recent(&context, &mut rng);
                (format!("&resourceVersion={after}"), WatchStart::After(after))
            }
        };
        let mut keys = prefix_range(PREFIX);
        if rng.random_ratio(1, 3) {
            let name = format!("m-{}", rng.random_range(0..6));
            query += &format!("&fieldSelector=metadata.name%3D{name}");
            keys = key(&name)..format!("{}\0", key(&name));
        }
        let mut notes = Notes::typed(&context, "a watch of the API", keys, from);
        let quiet = Duration::from_millis(rng.random_range(500..20_000));
        let server = servers.client(which);
        tokio::select! {
            () = read(server, &query, &mut notes) => {}
            () = context.over.cancelled() => {}
            () = tokio::time::sleep(quiet) => {}
        }
        // A server that is down refuses at once.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn read(client: &kube::Client, query: &str, notes: &mut Notes<'_>) {
    let path = format!("{PATH}?watch=true&allowWatchBookmarks=true{query}");
    let Ok(request) = Request::get(path).body(Vec::new()) else { return };
    let Ok(stream) = client.request_stream(request).await else { return };
    let mut lines = stream.lines();
    let mut initial = notes.is_initial();
    while let Ok(Some(line)) = lines.try_next().await {
        let Ok(event) = serde_json::from_str::<Json>(&line) else { return };
        let Some(item) = item(&event, &mut initial) else { return };
        notes.item(item);
    }
}

/// A line as notes.
fn item(line: &Json, initial: &mut bool) -> Option<DeliveredItem> {
    let object = &line["object"];
    let change = |kind| {
        let pair = pair_of(object)?;
        let (revision, key, value) = (pair.modified, pair.key, Some(pair.value));
        Some(DeliveredItem::Event(DeliveredEvent { revision, key, kind, value, previous: None }))
    };
    match line["type"].as_str()? {
        "ADDED" if *initial => Some(DeliveredItem::Present(pair_of(object)?)),
        "ADDED" => change(DeliveredKind::Added),
        "MODIFIED" => change(DeliveredKind::Modified),
        "DELETED" => change(DeliveredKind::Deleted),
        "BOOKMARK" => {
            let at = revision_of(object)?;
            Some(if std::mem::take(initial) {
                DeliveredItem::InitialEnd(at)
            } else {
                DeliveredItem::Progress(at)
            })
        }
        _ if object["code"] == 410 => Some(DeliveredItem::Expired),
        _ => Some(DeliveredItem::Failed),
    }
}
