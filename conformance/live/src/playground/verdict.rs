//! What must be true of the maintenance, each judged by the host's own words and not by ours.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::maintenance::{Maintenance, Seen};
use super::workload;
use crate::cluster::is_schedulable;
use crate::host::{Host, Refusal, refusals};

/// Something that was checked.
#[derive(Debug)]
pub struct Finding {
    /// Is it as it should be?
    pub good: bool,
    /// What it is.
    pub what: String,
}

impl Finding {
    /// A finding.
    pub fn new(good: bool, what: impl Into<String>) -> Finding {
        Finding { good, what: what.into() }
    }
}

/// Drained=True means what it says, evicted pods are back elsewhere, and every tight budget was felt.
pub async fn after_drain(
    host: &Host,
    client: &Client,
    maintenance: &Maintenance,
    seen: &Seen,
) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for node in &maintenance.nodes {
        let left = pods_on(client, node).await?;
        findings
            .push(Finding::new(left.is_empty(), format!("{node} is empty by the host's own list {left:?}")));
    }
    workload::wait_ready(host)?;
    findings.push(Finding::new(true, "every workload has all of its pods, on other nodes"));
    let refused = refusals(&host.dir.join("audit.log"))?;
    findings.extend(workload::TIGHT_BUDGETS.iter().map(|budget| felt(budget, &refused, seen)));
    Ok(findings)
}

/// The nodes are as they were before.
pub async fn after_completion(client: &Client, maintenance: &Maintenance) -> Result<Vec<Finding>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let mut findings = Vec::new();
    for name in &maintenance.nodes {
        let (is, should) = (is_schedulable(&nodes.get(name).await?), *name != maintenance.cordoned);
        let state = if should { "schedulable again" } else { "still cordoned, as it was before" };
        findings.push(Finding::new(is == should, format!("{name} is {state}")));
    }
    Ok(findings)
}

/// Prints all findings and returns how many are bad.
pub fn print(findings: &[Finding]) -> usize {
    for finding in findings {
        eprintln!("    {} {}", if finding.good { "ok  " } else { "FAIL" }, finding.what);
    }
    findings.iter().filter(|finding| !finding.good).count()
}

/// A budget that refused nothing was not tested. What the host refused stands in its audit log.
fn felt(budget: &str, refused: &[Refusal], seen: &Seen) -> Finding {
    let prefix = format!("{budget}-");
    let by_host = refused.iter().filter(|refusal| refusal.pod.starts_with(&prefix)).count();
    let explained = seen.blockers.get("PodDisruptionBudget").into_iter().flatten();
    let by_us = explained.filter(|message| message.contains(budget)).count();
    Finding::new(
        by_host > 0,
        format!(
            "budget {budget}: the host refused {by_host} evictions, the status explained it {by_us} times"
        ),
    )
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
