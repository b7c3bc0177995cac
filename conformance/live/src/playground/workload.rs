//! What runs in the playground's cluster: manifests/playground.yaml.

use anyhow::{Context, Result};

use crate::host::Host;

/// Where the workloads are.
pub const NAMESPACE: &str = "demo";

/// Budgets with room for a single pod, of which the drained nodes hold several.
pub const TIGHT_BUDGETS: [&str; 3] = ["web", "api", "db"];

/// Everything that has replicas.
pub const ROLLOUTS: [&str; 6] = [
    "deployment/web",
    "deployment/batch",
    "deployment/cache",
    "deployment/api",
    "statefulset/db",
    "daemonset/agent",
];

const MANIFEST: &str = include_str!("../../manifests/playground.yaml");

/// Creates the workloads and waits until every pod is ready.
pub fn create(host: &Host) -> Result<()> {
    let path = host.dir.join("playground.yaml");
    std::fs::write(&path, MANIFEST)?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
    wait_ready(host)
}

/// Waits until every workload has all of its pods.
pub fn wait_ready(host: &Host) -> Result<()> {
    for rollout in ROLLOUTS {
        host.kubectl(&["rollout", "status", rollout, "-n", NAMESPACE, "--timeout=300s"])?;
    }
    Ok(())
}

/// Deletes two pods of an application at once, past its budget of one.
pub fn plant_violation(host: &Host, app: &str) -> Result<()> {
    let selector = format!("app={app}");
    let pods = host.kubectl(&["get", "pods", "-n", NAMESPACE, "-l", &selector, "-o", "name"])?;
    let mut names = pods.lines();
    let (first, second) = names.next().zip(names.next()).context("fewer than two pods")?;
    host.kubectl(&["delete", "-n", NAMESPACE, "--wait=false", first, second]).map(drop)
}
