//! An etcd with TLS and client certificates, durable: everyone's etcd is like this, and E is one alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::host::{TestHost, free_ports};
use drydock_testkit::wait::{http_ready, unless_ended};

use super::{DRYDOCK_API, SubjectServer, Who, credentials};
use crate::client::Credentials;
use crate::machine::on_cpu;

/// Starts an etcd on a port and waits until it serves.
pub async fn start(host: &TestHost, name: &str, port: u16, cpu: usize) -> Result<()> {
    let more = free_ports(2)?;
    let (peer, metrics) = (format!("http://127.0.0.1:{}", more[0]), format!("127.0.0.1:{}", more[1]));
    let client = format!("https://127.0.0.1:{port}");
    let pki = &host.pki;
    let flags = vec![
        format!("--data-dir={}", host.dir.join(name).display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
        format!("--listen-metrics-urls=http://{metrics}"),
        format!("--cert-file={}", pki.server.cert.display()),
        format!("--key-file={}", pki.server.key.display()),
        format!("--trusted-ca-file={}", pki.ca.display()),
        "--client-cert-auth=true".into(),
        // No client speaks JSON to it.
        "--enable-grpc-gateway=false".into(),
        // Room for every row.
        "--quota-backend-bytes=8589934592".into(),
        "--log-level=warn".into(),
    ];
    on_cpu(cpu, || host.processes.start(name, &host.bin.join("etcd"), &flags))?;
    let serves = http_ready(&metrics, "/health", Duration::from_secs(60));
    unless_ended(&host.processes, name, serves).await
}

/// Starts an etcd that belongs to a subject; its port.
pub async fn start_for(host: &TestHost, name: &str, cpu: usize) -> Result<u16> {
    let port = free_ports(1)?.first().copied().context("no free port")?;
    start(host, name, port, cpu).await?;
    Ok(port)
}

/// Starts the subject E.
pub async fn server(host: &Arc<TestHost>, cpu: usize) -> Result<SubjectServer> {
    let port = start_for(host, "etcd-raw", cpu).await?;
    let credentials = client(host)?;
    let (server, etcd) = ("etcd-raw".to_owned(), None);
    let (api, host, command) = (DRYDOCK_API, host.clone(), None);
    Ok(SubjectServer { who: Who::Raw, api, host, port, credentials, server, etcd, command })
}

/// The flags with which K, G and D reach their etcd.
pub fn flags_of_clients(host: &TestHost) -> Result<Vec<String>> {
    let client = client(host)?;
    Ok(vec![
        format!("--etcd-cafile={}", client.ca.display()),
        format!("--etcd-certfile={}", client.cert.display()),
        format!("--etcd-keyfile={}", client.key.display()),
    ])
}

fn client(host: &TestHost) -> Result<Credentials> {
    credentials(host, "etcd-client", &[])
}
