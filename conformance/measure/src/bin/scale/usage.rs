//! CPU time, memory and work queues of our programs.

use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result};
use drydock_testkit::drydock::{Drydock, MANAGER, PROGRAMS};
use drydock_testkit::proc;
use kube::Client;
use serde::Serialize;

/// What our programs use at one time.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramUsage {
    /// Resident memory of API server and controller manager in MiB.
    pub resident_mib: [f64; 2],
    /// The most until then.
    pub peak_mib: [f64; 2],
    /// Objects that wait in the work queues of the controller manager.
    pub queued: f64,
}

impl fmt::Display for ProgramUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [server, manager] = self.resident_mib;
        write!(f, "API server {server:.0} MiB, controller manager {manager:.0} MiB, {} queued", self.queued)
    }
}

/// What something cost our programs.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// How long it took.
    pub seconds: f64,
    /// CPU seconds of API server and controller manager.
    pub cpu: [f64; 2],
    /// What they used at its end.
    pub usage: ProgramUsage,
}

/// Reads what our programs use.
pub struct Meter<'d> {
    drydock: &'d Drydock,
    /// Of an account that may read metrics.
    token: String,
}

impl Meter<'_> {
    /// Makes the account that reads the controller manager's metrics.
    pub fn of(drydock: &Drydock) -> Result<Meter<'_>> {
        let kubectl = |line: &str| drydock.host.kubectl(&line.split(' ').collect::<Vec<_>>());
        kubectl("create clusterrole scraper --verb=get --non-resource-url=/metrics")?;
        kubectl("create serviceaccount scraper -n default")?;
        kubectl("create clusterrolebinding scraper --clusterrole=scraper --serviceaccount=default:scraper")?;
        let token = kubectl("create token scraper -n default --duration=24h")?;
        Ok(Meter { drydock, token: token.trim().to_owned() })
    }

    /// Returns what our programs use now.
    pub async fn now(&self) -> Result<ProgramUsage> {
        let (mut resident_mib, mut peak_mib) = ([0.0; 2], [0.0; 2]);
        for (index, pid) in self.pids()?.into_iter().enumerate() {
            let memory = proc::memory(pid)?;
            resident_mib[index] = memory.resident as f64 / 1024.0;
            peak_mib[index] = memory.peak as f64 / 1024.0;
        }
        Ok(ProgramUsage { resident_mib, peak_mib, queued: self.queued().await? })
    }

    /// Does something, and returns what it cost our programs.
    pub async fn while_doing(&self, what: &str, work: impl Future<Output = Result<()>>) -> Result<Cost> {
        eprintln!("==> {what}");
        let (began, before) = (Instant::now(), self.cpu()?);
        work.await?;
        let (seconds, after) = (began.elapsed().as_secs_f64(), self.cpu()?);
        let cpu = [after[0] - before[0], after[1] - before[1]];
        let cost = Cost { seconds, cpu, usage: self.now().await? };
        eprintln!("    {seconds:.1} s, CPU {:.2} s and {:.2} s, {}", cpu[0], cpu[1], cost.usage);
        Ok(cost)
    }

    fn cpu(&self) -> Result<[f64; 2]> {
        let [server, manager] = self.pids()?;
        Ok([proc::cpu(server)?.as_secs_f64(), proc::cpu(manager)?.as_secs_f64()])
    }

    fn pids(&self) -> Result<[u32; 2]> {
        let processes = &self.drydock.host.processes;
        let pid = |name| processes.pid(name).with_context(|| format!("{name} does not run"));
        Ok([pid(PROGRAMS[0])?, pid(MANAGER)?])
    }

    /// The sum of `workqueue_depth`.
    async fn queued(&self) -> Result<f64> {
        let mut config = kube::Config::new(self.drydock.manager_url()?.parse()?);
        config.accept_invalid_certs = true;
        config.auth_info.token = Some(self.token.clone().into());
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = Client::try_from(config)?.request_text(request).await;
        let text = text.context("metrics of the controller manager")?;
        let depths = text.lines().filter(|line| line.starts_with("workqueue_depth{"));
        Ok(depths.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}
