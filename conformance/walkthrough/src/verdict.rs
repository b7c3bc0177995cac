//! What must be true of the maintenance, by the state of the host and the audit logs, not by what Drydock reports.

use std::collections::BTreeMap;

use anyhow::Result;
use drydock_testkit::cluster::is_schedulable;
use drydock_testkit::drydock::Drydock;
use drydock_testkit::finding::Finding;
use drydock_testkit::host::{TestHost, audit};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::interceptor::PlaygroundInterceptor;
use super::maintenance::{Maintenance, SeenStatus, is_tainted};
use super::screen::Screen;
use super::{evictions, history, order, workload};

/// After Drained=True the nodes are empty, and evicted pods are back elsewhere.
pub async fn after_drain(
    host: &TestHost,
    client: &Client,
    maintenance: &Maintenance,
) -> Result<Vec<Finding>> {
    let mut left = Vec::new();
    for node in &maintenance.nodes {
        left.extend(pods_on(client, node).await?.into_iter().map(|pod| format!("{pod} on {node}")));
    }
    let good = format!("the host's own list has no pod on {}", maintenance.nodes.join(", "));
    let mut findings = vec![Finding::of_nothing(&left, &good, "the host's own list has pods")];
    workload::wait_ready(host)?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), workload::NAMESPACE);
    let nodes: Vec<_> =
        pods.list(&ListParams::default()).await?.into_iter().filter_map(|p| p.spec?.node_name).collect();
    let elsewhere = nodes.iter().filter(|node| !maintenance.nodes.contains(node)).count();
    let away = format!("every workload has all of its pods, {elsewhere} of {} on other nodes", nodes.len());
    findings.push(Finding::new(elsewhere == nodes.len() && elsewhere > 0, away));
    Ok(findings)
}

/// Judges the drain itself, by what the host and our API server logged.
pub async fn of_the_way(
    screen: &Screen,
    drydock: &Drydock,
    maintenance: &Maintenance,
    seen: &SeenStatus,
    interceptor: &PlaygroundInterceptor,
    before: &BTreeMap<String, String>,
) -> Result<Vec<Finding>> {
    let log = audit::requests_of(&drydock.audit_logs())?;
    let departures = history::departures(&log);
    screen.note(&evictions::cost_in_reviews(&log));
    let nodes = &maintenance.nodes;
    let mut findings = order::judge(&maintenance.plan().await?, nodes, &departures);
    findings.extend(evictions::once_and_there(nodes, before, &departures, &history::evictions(&log)));
    findings.extend(workload::TIGHT_BUDGETS.iter().map(|budget| evictions::felt(budget, &departures, seen)));
    findings.extend(evictions::intercepted(nodes, &departures, &interceptor.reports()));
    Ok(findings)
}

/// The nodes are as they were before, and their DaemonSet pods are back.
pub async fn after_completion(client: &Client, maintenance: &Maintenance) -> Result<Vec<Finding>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut findings = vec![workload::agents_return(client).await?];
    for name in &maintenance.nodes {
        let node = nodes.get(name).await?;
        let (is, should) = (is_schedulable(&node), *name != maintenance.cordoned);
        let state = if should { "schedulable again" } else { "still cordoned, as it was before" };
        let marked = workload::is_marked(&node) && !is_tainted(&node);
        findings
            .push(Finding::new(is == should && marked, format!("{name} is {state}, and has its own taint")));
    }
    Ok(findings)
}

async fn pods_on(client: &Client, node: &str) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::all(client.clone());
    let list = pods.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await?;
    let counts = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed"))
    };
    Ok(list.iter().filter(counts).map(ResourceExt::name_any).collect())
}
