//! D: drydock-apiserver, on SQLite or on an etcd of its own.

use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::drydock::program;
use drydock_testkit::host::{TestHost, free_ports};

use super::{
    BENCH_USER, DRYDOCK_API, ServerCommand, Settings, SubjectServer, Who, bench_user, etcd, host, slow_disk,
};

/// Starts it and waits until it is ready.
pub async fn start(host: &Arc<TestHost>, who: Who, settings: Settings) -> Result<SubjectServer> {
    let Settings { cpu, access_checks, default_limits } = settings;
    let port = free_ports(1)?.first().copied().context("no free port")?;
    let server = format!("drydock-on-{who}");
    let mut flags = flags(host, &server, port);
    // A question to the host for every new name, which neither K nor G asks.
    flags.push(format!("--require-pod-delete-permission={access_checks}"));
    // The user may have more objects waiting than a tenant, and its requests are reviewed like a
    // tenant's.
    flags.push(format!("--controller-users={BENCH_USER}"));
    flags.push("--unnamed-review-users=".to_owned());
    if !default_limits {
        flags.extend(host::IN_FLIGHT.map(String::from));
    }
    let mut own_etcd = None;
    if who == Who::Etcd {
        let name = "etcd-of-drydock".to_owned();
        let etcd_port = etcd::start_for(host, &name, cpu).await?;
        flags.push(format!("--etcd-servers=https://127.0.0.1:{etcd_port}"));
        flags.extend(etcd::flags_of_clients(host)?);
        own_etcd = Some(name);
    }
    let mut command = ServerCommand { program: program("drydock-apiserver"), flags, cpu };
    if who == Who::SlowDisk {
        command = slow_disk::under(host, command)?;
    }
    command.start(host, &server)?;
    host::ready(host, &server, port).await?;
    Ok(SubjectServer {
        who,
        api: DRYDOCK_API,
        host: host.clone(),
        port,
        credentials: bench_user(host)?,
        server,
        etcd: own_etcd,
        command: Some(command),
    })
}

fn flags(host: &TestHost, name: &str, port: u16) -> Vec<String> {
    let dir = host.dir.join(name);
    vec![
        format!("--kubeconfig={}", host.admin().display()),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", dir.display()),
        format!("--tls-cert-file={}", host.pki.server.cert.display()),
        format!("--tls-private-key-file={}", host.pki.server.key.display()),
        format!("--data-dir={}", dir.join("data").display()),
    ]
}
