//! Metrics beside the host's: the same requests are counted under the same labels, and what has the same name is of
//! the same form.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use drydock_testkit::host::TestHost;
use drydock_testkit::kinds::node_maintenance;
use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use super::setup::{APISERVER, ProgramSetup};
use crate::shared::LIMIT;

/// A kind of ours, and one of the host's that it is compared with, of which no other test writes any.
const OURS: &str = "/apis/coordination.k8s.io/v1alpha1/nodemaintenances";
const HOSTS: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Method, path after that of the kind, media type; a body `{}` is an object of the kind.
const STEPS: [(&str, &str, &str, &str); 14] = [
    ("POST", "?dryRun=All", "", "{}"),
    ("POST", "", "", "{}"),
    ("POST", "", "", "{}"),
    ("GET", "/counted", "", ""),
    ("GET", "/missing", "", ""),
    ("GET", "", "", ""),
    ("GET", "?fieldSelector=metadata.name%3Dcounted", "", ""),
    ("GET", "?watch=true&timeoutSeconds=1", "", ""),
    ("GET", "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dcounted", "", ""),
    ("PUT", "/counted", "", "{\"metadata\":{\"name\":\"other\"}}"),
    ("PATCH", "/counted", MERGE, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"),
    ("PATCH", "/counted?fieldManager=m&force=true&dryRun=All", APPLY, "{}"),
    ("DELETE", "/counted", "", ""),
    ("DELETE", "?labelSelector=a%3Dnever", "", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_same_requests_are_counted_as_in_the_host() -> Result<()> {
    let host = TestHost::shared().await?;
    let program = ProgramSetup::new(&host, "metrics", APISERVER, &host.url).await?;
    let _server = program.start_ready(&[]).await?;
    let (ours, hosts) = (program.admin(&host).await?, host.client().await?);
    let mut wrong = Vec::new();
    for step in STEPS {
        let found = counted(&ours, step, OURS, |grown| !grown.is_empty()).await?;
        // Others ask the host too.
        let expected = counted(&hosts, step, HOSTS, |grown| found.is_subset(grown)).await;
        if found.len() != 1 || expected.is_err() {
            wrong.push(format!("{step:?}: {found:#?}, and in the host {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    same_form(&scrape(&ours).await?, &scrape(&hosts).await?);
    Ok(())
}

/// What a metric has beside its values: names of labels, and bounds of buckets.
fn same_form(ours: &str, hosts: &str) {
    let (ours, hosts) = (forms(ours), forms(hosts));
    let shared: Vec<&String> = ours.keys().filter(|name| hosts.contains_key(*name)).collect();
    for name in &shared {
        assert_eq!(ours[*name], hosts[*name], "{name}");
    }
    for name in [
        "apiserver_request_total",
        "apiserver_request_duration_seconds_bucket",
        "apiserver_request_sli_duration_seconds_bucket",
        "apiserver_response_sizes_bucket",
        "apiserver_longrunning_requests",
        "apiserver_current_inflight_requests",
        "apiserver_flowcontrol_nominal_limit_seats",
        "apiserver_flowcontrol_current_executing_seats",
        "apiserver_flowcontrol_dispatched_requests_total",
        "apiserver_flowcontrol_request_wait_duration_seconds_bucket",
        "apiserver_watch_events_total",
        "apiserver_watch_events_sizes_bucket",
        "apiserver_audit_event_total",
        "apiserver_audit_requests_rejected_total",
    ] {
        assert!(shared.iter().any(|shared| *shared == name), "{name} is not on both sides");
    }
}

fn forms(text: &str) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let mut forms: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    let lines = text.lines().filter(|line| line.starts_with("apiserver_"));
    for (name, labels) in lines.filter_map(series) {
        let (names, bounds) = forms.entry(name).or_default();
        for (label, value) in labels {
            if label == "le" {
                bounds.insert(value.parse::<f64>().map_or(value.clone(), |bound| bound.to_string()));
            }
            names.insert(label);
        }
    }
    forms
}

/// Name and labels of a line.
fn series(line: &str) -> Option<(String, BTreeMap<String, String>)> {
    let (series, _) = line.rsplit_once(' ')?;
    let Some((name, labels)) = series.split_once('{') else { return Some((series.into(), BTreeMap::new())) };
    let pairs = labels.trim_end_matches('}').split("\",");
    let labels = pairs.filter_map(|pair| {
        let (label, value) = pair.split_once("=\"")?;
        Some((label.to_owned(), value.trim_end_matches('"').to_owned()))
    });
    Some((name.to_owned(), labels.collect()))
}

/// Does a step and returns the series that grew, with what names the kind replaced, once they are `enough`.
async fn counted(
    client: &Client,
    step: (&str, &str, &str, &str),
    kind: &str,
    enough: impl Fn(&BTreeSet<String>) -> bool,
) -> Result<BTreeSet<String>> {
    let before = totals(&scrape(client).await?, kind);
    let (method, path, media_type, body) = step;
    let body = if body == "{}" { object(kind).to_string() } else { body.to_owned() };
    let media_type = if media_type.is_empty() { "application/json" } else { media_type };
    let request = Request::builder().method(method).uri(format!("{kind}{path}"));
    let request = request.header("content-type", media_type).body(body.into_bytes().into())?;
    client.send(request).await?.into_body().collect().await.context("the answer breaks off")?;
    // A watch is counted when its last byte has gone.
    let last = RefCell::new(BTreeSet::new());
    let counted = async || {
        let grown: BTreeSet<String> = totals(&scrape(client).await?, kind)
            .into_iter()
            .filter(|(series, count)| before.get(series) != Some(count))
            .map(|(series, _)| series)
            .collect();
        let is_counted = enough(&grown);
        last.replace(grown.clone());
        Ok(is_counted.then_some(grown))
    };
    let late = || format!("{step:?} is not counted: {:#?}", last.borrow());
    drydock_testkit::wait::until_some(LIMIT, late, counted).await
}

fn totals(text: &str, kind: &str) -> BTreeMap<String, String> {
    let parts: Vec<&str> = kind.split('/').collect();
    let of_kind = format!("resource=\"{}\"", parts[4]);
    let lines = text.lines().filter(|l| l.starts_with("apiserver_request_total{") && l.contains(&of_kind));
    lines
        .filter_map(|line| {
            let (name, labels) = series(line)?;
            let replaced = labels.into_iter().map(|(label, value)| match label.as_str() {
                "group" | "version" | "resource" => format!("{label}=KIND"),
                _ => format!("{label}={value}"),
            });
            let count = line.rsplit_once(' ')?.1.to_owned();
            Some((format!("{name} {}", replaced.collect::<Vec<_>>().join(",")), count))
        })
        .collect()
}

fn object(kind: &str) -> Value {
    if kind == OURS {
        return node_maintenance("counted", "Idle", &["nowhere"]);
    }
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "counted"}, "value": 7})
}

async fn scrape(client: &Client) -> Result<String> {
    Ok(client.request_text(Request::get("/metrics").body(Vec::new())?).await?)
}
