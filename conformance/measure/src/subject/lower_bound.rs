//! F: what Drydock's libraries cost by themselves, which is a lower bound for D.

use std::sync::Arc;

use anyhow::{Context, Result};
use drydock_testkit::host::{TestHost, free_ports};
use drydock_testkit::wait::{https_ready, unless_ended};

use super::{DRYDOCK_API, LIMIT, SubjectServer, Who, bench_user};
use crate::machine::on_cpu;

const SERVER: &str = "lower-bound";

/// Starts it and waits until it is ready.
pub async fn start(host: &Arc<TestHost>, cpu: usize) -> Result<SubjectServer> {
    let port = free_ports(1)?.first().copied().context("no free port")?;
    let program = std::env::current_exe()?.with_file_name(SERVER);
    let flags = [
        format!("--port={port}"),
        format!("--cert={}", host.pki.server.cert.display()),
        format!("--key={}", host.pki.server.key.display()),
        format!("--client-ca={}", host.pki.ca.display()),
        format!("--data={}", host.dir.join("lower-bound.db").display()),
    ];
    on_cpu(cpu, || host.processes.start(SERVER, &program, &flags))?;
    unless_ended(&host.processes, SERVER, https_ready(port, "/readyz", LIMIT)).await?;
    Ok(SubjectServer {
        who: Who::LowerBound,
        api: DRYDOCK_API,
        host: host.clone(),
        port,
        credentials: bench_user(host)?,
        server: SERVER.into(),
        etcd: None,
        command: None,
    })
}
