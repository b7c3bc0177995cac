//! What runs in the playground's cluster: manifests/playground.yaml.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use drydock_testkit::finding::Finding;
use drydock_testkit::host::TestHost;
use drydock_testkit::wait::{LIMIT, until};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

/// Where the workloads are.
pub const NAMESPACE: &str = "demo";

/// Budgets that allow one pod to be away; the drained nodes have several of their pods.
pub const TIGHT_BUDGETS: [&str; 3] = ["web", "api", "db"];

/// All workloads.
pub const ROLLOUTS: [&str; 6] = [
    "deployment/web",
    "deployment/batch",
    "deployment/cache",
    "deployment/api",
    "statefulset/db",
    "daemonset/agent",
];

/// A taint of the nodes that has nothing to do with Drydock.
const MARK: &str = "example.com/rack=1:PreferNoSchedule";

const MANIFEST: &str = include_str!("../manifests/playground.yaml");
const HELD: &str = include_str!("../manifests/held.yaml");

/// Creates the workloads and waits until every pod is ready.
pub fn create(host: &TestHost) -> Result<()> {
    apply(host)?;
    wait_ready(host)
}

/// Creates the workloads.
pub fn apply(host: &TestHost) -> Result<()> {
    let path = host.dir.join("playground.yaml");
    std::fs::write(&path, MANIFEST)?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()]).map(drop)
}

/// Waits until every workload has all of its pods.
pub fn wait_ready(host: &TestHost) -> Result<()> {
    ROLLOUTS.iter().try_for_each(|rollout| wait_for(host, rollout))
}

/// Waits until one workload has all of its pods.
pub fn wait_for(host: &TestHost, rollout: &str) -> Result<()> {
    let timeout = format!("--timeout={}s", LIMIT.as_secs());
    host.kubectl(&["rollout", "status", rollout, "-n", NAMESPACE, &timeout]).map(drop)
}

/// Puts a pod on a node that stays until [`let_go`].
pub fn hold(host: &TestHost, node: &str) -> Result<()> {
    let path = host.dir.join("held.yaml");
    std::fs::write(&path, HELD.replace("{NODE}", node))?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
    let timeout = format!("--timeout={}s", LIMIT.as_secs());
    host.kubectl(&["wait", "pod/held", "--for=condition=Ready", &timeout])?;
    host.kubectl(&["wait", "pdb/held", "--for=jsonpath={.status.currentHealthy}=1", &timeout]).map(drop)
}

/// Lets that pod leave.
pub fn let_go(host: &TestHost) -> Result<()> {
    host.kubectl(&["delete", "pdb/held"]).map(drop)
}

/// On which node each pod is, by its UID.
pub async fn places(client: &Client) -> Result<BTreeMap<String, String>> {
    let pods = Api::<Pod>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(pods.into_iter().filter_map(|pod| Some((pod.uid()?, pod.spec?.node_name?))).collect())
}

/// Puts that taint on nodes.
pub fn mark(host: &TestHost, nodes: &[String]) -> Result<()> {
    let mut args = vec!["taint", "nodes", MARK];
    args.splice(2..2, nodes.iter().map(String::as_str));
    host.kubectl(&args).map(drop)
}

/// Whether that taint is on the node, unchanged.
pub fn is_marked(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let text = |taint: &Taint| {
        format!("{}={}:{}", taint.key, taint.value.as_deref().unwrap_or_default(), taint.effect)
    };
    taints.into_iter().any(|taint| text(taint) == MARK)
}

/// Waits until each node has its pod of the DaemonSet again.
pub async fn agents_return(client: &Client) -> Result<Finding> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?.items.len();
    let everywhere = |found: Option<&DaemonSet>| {
        let ready = found.and_then(|set| set.status.as_ref()).map(|status| status.number_ready);
        ready.and_then(|ready| usize::try_from(ready).ok()) == Some(nodes)
    };
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    until(sets, "agent", LIMIT, "on every node", everywhere).await?;
    Ok(Finding::new(true, format!("the DaemonSet has its pod on each of the {nodes} nodes again")))
}

/// Deletes two pods of an application at once, past its budget of one.
pub fn inject_violation(host: &TestHost, app: &str) -> Result<()> {
    let selector = format!("app={app}");
    let pods = host.kubectl(&["get", "pods", "-n", NAMESPACE, "-l", &selector, "-o", "name"])?;
    let mut names = pods.lines();
    let (first, second) = names.next().zip(names.next()).context("fewer than two pods")?;
    host.kubectl(&["delete", "-n", NAMESPACE, "--wait=false", first, second]).map(drop)
}
