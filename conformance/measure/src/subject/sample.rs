//! G: k8s.io/sample-apiserver, an aggregated server on the library that kube-apiserver is built from.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use drydock_testkit::host::{TestHost, free_ports};

use super::{SubjectServer, Who, bench_user, etcd, host};
use crate::machine::on_cpu;
use crate::object::{self, ObjectApi};

const API: ObjectApi = ObjectApi {
    group: "wardle.example.com",
    version: "v1alpha1",
    kind: "Flunder",
    resource: "flunders",
    has_status: false,
    spec: object::flunder,
};
const SERVER: &str = "sample-apiserver";
const ETCD: &str = "etcd-of-sample";

/// Starts it and waits until it is ready.
pub async fn start(host: &Arc<TestHost>, cpu: usize) -> Result<SubjectServer> {
    let binary = host.bin.join(SERVER);
    ensure!(binary.exists(), "{} is not there: conformance/bench builds it", binary.display());
    let port = free_ports(1)?.first().copied().context("no free port")?;
    let etcd_port = etcd::start_for(host, ETCD, cpu).await?;
    let admin = host.admin();
    let admin = admin.display();
    let mut flags = vec![
        format!("--etcd-servers=https://127.0.0.1:{etcd_port}"),
        format!("--kubeconfig={admin}"),
        format!("--authentication-kubeconfig={admin}"),
        format!("--authorization-kubeconfig={admin}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", host.dir.join(SERVER).display()),
        format!("--tls-cert-file={}", host.pki.server.cert.display()),
        format!("--tls-private-key-file={}", host.pki.server.key.display()),
    ];
    // It has no flags for requests in flight; its default is 600 together, and it queues what is above.
    flags.extend(etcd::flags_of_clients(host)?);
    on_cpu(cpu, || host.processes.start(SERVER, &binary, &flags))?;
    host::ready(host, SERVER, port).await?;
    Ok(SubjectServer {
        who: Who::Sample,
        api: API,
        host: host.clone(),
        port,
        credentials: bench_user(host)?,
        server: SERVER.into(),
        etcd: Some(ETCD.into()),
        command: None,
    })
}
