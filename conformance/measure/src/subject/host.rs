//! The host, which is also K: a kube-apiserver whose etcd keeps its promises, unlike the tests' own.

use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::host::{self, TestHost, free_ports, programs};
use drydock_testkit::wait::server_ready;

use super::{BENCH_USER, BENCHERS, LIMIT, Settings, SubjectServer, Who, bench_user, crd, etcd};
use crate::machine::on_cpu;
use crate::object::NAMESPACE;

const SERVER: &str = "kube-apiserver";

/// Limits of requests in flight that most rows do not reach, the same for K, G and D: what is measured is the work.
pub const IN_FLIGHT: [&str; 2] = ["--max-requests-inflight=3000", "--max-mutating-requests-inflight=1000"];

/// Folder, certificates and ports of a host; nothing runs yet.
pub fn lay_out() -> Result<Arc<TestHost>> {
    let ports = free_ports(2)?;
    Ok(Arc::new(TestHost::lay_out(ports[0], format!("https://127.0.0.1:{}", ports[1]))?))
}

/// Starts the host's etcd and API server.
pub async fn start(host: &Arc<TestHost>, settings: Settings) -> Result<SubjectServer> {
    let cpu = settings.cpu;
    let (port, etcd_port) = (port_of(&host.url)?, port_of(&host.etcd)?);
    etcd::start(host, "etcd-of-kube", etcd_port, cpu).await?;
    host.kubeconfig("admin", &["system:masters"])?;
    let mut flags = programs::apiserver_flags(host, port);
    flags.extend(etcd::flags_of_clients(host)?);
    if !settings.default_limits {
        flags.extend(IN_FLIGHT.map(String::from));
    }
    on_cpu(cpu, || host.processes.start(SERVER, &host.bin.join(SERVER), &flags))?;
    server_ready(&host.client().await?, &host.processes, SERVER, LIMIT).await?;
    Ok(SubjectServer {
        who: Who::Kube,
        api: crd::API,
        host: host.clone(),
        port,
        credentials: bench_user(host)?,
        server: SERVER.into(),
        etcd: Some("etcd-of-kube".into()),
        command: None,
    })
}

/// The namespace of the objects, and the rights of the user who makes the load.
pub async fn open_to_bench(host: &TestHost) -> Result<()> {
    let groups = ["coordination.k8s.io", crd::API.group, "wardle.example.com"];
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bench"},
         "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]},
                   {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}]},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bench"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"},
         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": BENCH_USER},
                      {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": BENCHERS}]},
    ]});
    let path = host.dir.join("bench.json");
    std::fs::write(&path, list.to_string())?;
    host.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()]).map(drop)
}

/// Waits until a server on a port of loopback is ready.
pub async fn ready(host: &TestHost, name: &str, port: u16) -> Result<()> {
    let admin = host.pki.client(&host.dir.join("pki"), "ready", "admin", &["system:masters"])?;
    let path = host.dir.join(format!("ready-{port}.kubeconfig"));
    std::fs::write(&path, host::kubeconfig(&format!("https://127.0.0.1:{port}"), &host.pki.ca, &admin))?;
    server_ready(&host::client_of(&path).await?, &host.processes, name, LIMIT).await
}

fn port_of(url: &str) -> Result<u16> {
    let port = url.rsplit(':').next().context("a URL without a port")?;
    Ok(port.parse()?)
}
