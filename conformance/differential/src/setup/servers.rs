//! Starts our servers beside the host and registers them with its aggregator.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::drydock::program;
use drydock_testkit::host::TestHost;
use drydock_testkit::wait::{api_available, file, https_ready, unless_ended};
use serde_json::{Value, json};

use super::clients::Clients;
use crate::target::REFERENCE_KINDS;

/// How long to wait for anything.
pub const LIMIT: Duration = Duration::from_secs(300);
const NAME: &str = "reference-kinds";
const NAMESPACE: &str = "reference-kinds";

/// Starts the reference kinds, waits until the aggregator has found them, and returns their clients.
pub async fn start_reference_kinds(host: &TestHost) -> Result<Clients> {
    let port = host.free_port()?;
    let folder = host.dir.join(NAME);
    let kubeconfig = host.kubeconfig(NAME, &["system:masters"])?;
    let arguments = [kubeconfig.display().to_string(), port.to_string(), folder.display().to_string()];
    host.processes.start(NAME, &program(NAME), &arguments)?;
    let ca = folder.join("certs/ca.crt");
    file(&ca, &host.processes, NAME, LIMIT).await?;
    let ready = https_ready(port, "/readyz", LIMIT);
    unless_ended(&host.processes, NAME, ready).await.with_context(|| host.processes.log_tail(NAME))?;
    register(host, port, &ca)?;
    let service = format!("{}.{}", REFERENCE_KINDS.version, REFERENCE_KINDS.group);
    api_available(&host.client().await?, &service, LIMIT).await?;
    Clients::of_url(host, &format!("https://127.0.0.1:{port}"), &ca).await
}

/// A Service that leads to loopback, and the APIService that names it.
fn register(host: &TestHost, port: u16, ca: &Path) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let registration = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{}.{}", REFERENCE_KINDS.version, REFERENCE_KINDS.group)},
        "spec": {"group": REFERENCE_KINDS.group, "version": REFERENCE_KINDS.version,
                 "groupPriorityMinimum": 100, "versionPriority": 1,
                 "service": {"name": NAME, "namespace": NAMESPACE, "port": port},
                 "caBundle": k8s_openapi::ByteString(std::fs::read(ca)?)},
    });
    apply(host, "reference-kinds.json", &[namespace, service, registration])
}

/// Users that sequences act as, with the same rights on both kinds of a target.
pub fn allow_users(host: &TestHost) -> Result<()> {
    let groups = ["", "policy", "coordination.k8s.io", "node.k8s.io", REFERENCE_KINDS.group];
    let role = |name: &str, verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
               "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": verbs}]})
    };
    let bound = |name: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
               "metadata": {"name": name},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}]})
    };
    apply(
        host,
        "users.json",
        &[
            role("reader", &["get", "list", "watch"]),
            bound("reader"),
            role("patcher", &["get", "patch"]),
            bound("patcher"),
        ],
    )
}

fn apply(host: &TestHost, name: &str, items: &[Value]) -> Result<()> {
    let path = host.dir.join(name);
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()]).map(drop)
}
