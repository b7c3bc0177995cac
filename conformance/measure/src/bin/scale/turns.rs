//! How far the requests have come, and reports of the interceptor of held pods.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use drydock_testkit::kinds::{eviction_request_resource, eviction_requests};
use futures::stream;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};

use super::workload::{INTERCEPTOR, ScaleWorkload, bar};

/// How long the controllers may take to give all requests a turn.
const LIMIT: Duration = Duration::from_secs(3600);
/// Reports under way at a time.
const IN_FLIGHT: usize = 16;

/// Waits until each held pod is in its interceptor's turn, and each guarded one is reported as blocked.
pub async fn reached(direct: &Client, workload: &ScaleWorkload) -> Result<()> {
    let (held, blocked) = (workload.held.len(), workload.blocked.len());
    match tokio::time::timeout(LIMIT, wait(direct, held + blocked)).await {
        Ok(ended) => ended,
        Err(_) => bail!("not all of {held} requests in their turn and {blocked} blocked within {LIMIT:?}"),
    }
}

async fn wait(direct: &Client, all: usize) -> Result<()> {
    let requests = Api::<DynamicObject>::all_with(direct.clone(), &eviction_request_resource());
    let mut events = pin!(watcher(requests, watcher::Config::default()).default_backoff());
    let bar = bar("turns", all);
    let mut seen = HashMap::new();
    // After an error the watcher lists anew: with so many requests a list takes longer than its version is kept.
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(request) | Event::InitApply(request)) = event {
            let settled = is_settled(&request.data["status"]);
            let before = seen.insert(request.name_any(), settled).unwrap_or_default();
            if settled && !before {
                bar.inc(1);
            }
            if bar.position() == all as u64 {
                return Ok(());
            }
        }
    }
    bail!("the watch of requests ended")
}

/// Whether a request is where it stays.
fn is_settled(status: &Value) -> bool {
    if status["activeInterceptors"][0] == INTERCEPTOR {
        return true;
    }
    let reports = status["interceptors"].as_array();
    reports.is_some_and(|reports| reports.iter().any(|report| report["blocked"].is_object()))
}

/// Writes reports of the held pods' interceptor, one for each of the first requests.
pub async fn report(direct: &Client, workload: &ScaleWorkload, reports: usize) -> Result<()> {
    let pods = workload.held.iter().cycle().take(reports).enumerate();
    let write = async |(index, pod): (usize, &super::workload::RequestedPod)| {
        let requests = eviction_requests(direct, &pod.namespace);
        loop {
            let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?.to_string();
            let entry = json!({"name": INTERCEPTOR, "message": format!("step {index}"), "startTime": now, "heartbeatTime": now});
            let patch = Patch::Strategic(json!({"status": {"interceptors": [entry]}}));
            match requests.patch_status(&pod.uid, &PatchParams::default(), &patch).await {
                // A busy machine took it more than 10 s later.
                Err(Error::Api(status)) if status.message.contains("must be the present time") => {}
                written => return written.map(drop).map_err(anyhow::Error::from),
            }
        }
    };
    stream::iter(pods.map(Ok)).try_for_each_concurrent(IN_FLIGHT, write).await.context("writing reports")
}

/// Returns the bytes of a request in JSON, by the first 500.
pub async fn bytes_each(direct: &Client) -> Result<f64> {
    let path = Api::<DynamicObject>::all_with(direct.clone(), &eviction_request_resource())
        .resource_url()
        .to_owned();
    let first = http::Request::get(format!("{path}?limit=500")).body(Vec::new())?;
    let text = direct.request_text(first).await.context("the first requests")?;
    let list: Value = serde_json::from_str(&text)?;
    let count = list["items"].as_array().map_or(0, Vec::len);
    Ok(text.len() as f64 / count.max(1) as f64)
}

/// Lists all requests, whole or in pages.
pub async fn list(direct: &Client, limit: Option<u32>) -> Result<()> {
    let requests = Api::<DynamicObject>::all_with(direct.clone(), &eviction_request_resource());
    let mut page = ListParams { limit, ..ListParams::default() };
    loop {
        let list = requests.list(&page).await.context("listing the requests")?;
        match list.metadata.continue_ {
            Some(next) if !next.is_empty() => page.continue_token = Some(next),
            _ => return Ok(()),
        }
    }
}
