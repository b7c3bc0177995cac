//! What is read off the servers: memory of ours, reviews that the host was asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::task::JoinHandle;

use super::{AttackSetup, USUAL_ADDRESS};
use crate::client::{FlowWindows, UserConnection, UserRequest};

/// A server that takes more, in KiB, is killed before it takes the machine with it.
const TOO_MUCH: u64 = 6 << 20;
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(50);
/// What Rust's panic hook writes.
const PANIC: &[u8] = b" panicked at ";
/// The host's API server.
const HOST: &str = "kube-apiserver";
const SCRAPER: &str = "scraper";
const ACCOUNTS: &str = "/api/v1/namespaces/kube-system/serviceaccounts";
const REVIEWS: [&str; 2] = ["resource=\"subjectaccessreviews\"", "resource=\"tokenreviews\""];

/// The resident memory of a process while it is looked at.
pub struct MemoryGauge {
    seen: Arc<SeenReviews>,
    looker: JoinHandle<()>,
}

#[derive(Default)]
struct SeenReviews {
    peak: AtomicU64,
    killed: AtomicBool,
}

impl MemoryGauge {
    /// Starts to look; the peak so far is forgotten.
    pub fn of(pid: u32) -> Result<MemoryGauge> {
        // proc_pid_clear_refs(5): 5 resets the peak of resident memory.
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("run this on Linux")?;
        let seen = Arc::<SeenReviews>::default();
        let looker = tokio::spawn(look(pid, seen.clone()));
        Ok(MemoryGauge { seen, looker })
    }

    /// The peak in MiB, and whether the process had to be killed for it.
    pub fn peak(&self) -> (u64, bool) {
        (self.seen.peak.load(Ordering::Relaxed) / 1024, self.seen.killed.load(Ordering::Relaxed))
    }
}

impl Drop for MemoryGauge {
    fn drop(&mut self) {
        self.looker.abort();
    }
}

async fn look(pid: u32, seen: Arc<SeenReviews>) {
    let mut ticks = tokio::time::interval(LOOK);
    while let Some(now) = field(pid, "VmRSS:") {
        let peak = field(pid, "VmHWM:").unwrap_or_default();
        seen.peak.fetch_max(peak, Ordering::Relaxed);
        if now > TOO_MUCH && !seen.killed.swap(true, Ordering::Relaxed) {
            let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        ticks.tick().await;
    }
}

/// A line of proc_pid_status(5), in KiB.
fn field(pid: u32, name: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

impl AttackSetup {
    /// Resident memory of our API server, in MiB.
    pub fn resident(&self) -> u64 {
        self.pid().and_then(|pid| field(pid, "VmRSS:")).unwrap_or_default() / 1024
    }

    /// Panics in the log of our API server.
    pub fn panics(&self) -> usize {
        let path = self.drydock.host.dir.join("logs/drydock-apiserver.log");
        let log = std::fs::read(path).unwrap_or_default();
        log.windows(PANIC.len()).filter(|at| *at == PANIC).count()
    }

    /// Resident memory of the host's API server, in MiB.
    pub fn host_resident(&self) -> u64 {
        let pid = self.drydock.host.processes.pid(HOST);
        pid.and_then(|pid| field(pid, "VmRSS:")).unwrap_or_default() / 1024
    }

    /// Bytes in the files of the embedded store; 0 where there is none.
    pub fn stored(&self) -> u64 {
        let files =
            std::fs::read_dir(self.drydock.host.dir.join("drydock/data")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// The metric of our controller manager that has the most series, and how many.
    pub async fn manager_series(&self) -> Result<(String, usize)> {
        let token = self.scraper().await?;
        let connection =
            UserConnection::open(&self.manager(true)?, USUAL_ADDRESS, Some(&token), FlowWindows::USUAL)
                .await?;
        let answer = connection.ask(&UserRequest::get("/metrics")).await?;
        ensure!(answer.code.is_success(), "the controller manager's metrics: {}", answer.summary());
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let mut counts = BTreeMap::<&str, usize>::new();
        for name in text.lines().filter_map(|line| line.split_once('{')).map(|(name, _)| name) {
            *counts.entry(name).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).context("no metrics")?;
        Ok((most.0.to_owned(), most.1))
    }

    /// The token of an account that may read metrics, like Prometheus.
    async fn scraper(&self) -> Result<String> {
        let (admin, rbac) = (self.admin().await?, "/apis/rbac.authorization.k8s.io/v1");
        let named = json!({"name": SCRAPER});
        let subject = json!({"kind": "ServiceAccount", "name": SCRAPER, "namespace": "kube-system"});
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": SCRAPER});
        let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
        let made = [
            (ACCOUNTS.to_owned(), json!({"metadata": named})),
            (format!("{rbac}/clusterroles"), json!({"metadata": named, "rules": rules})),
            (
                format!("{rbac}/clusterrolebindings"),
                json!({"metadata": named, "roleRef": role, "subjects": [subject]}),
            ),
        ];
        for (path, object) in made {
            // It may be there already.
            admin.ask_again(&UserRequest::post(path, &object)).await?;
        }
        let path = format!("{ACCOUNTS}/{SCRAPER}/token");
        let token = admin.done(&UserRequest::post(path, &json!({"spec": {}}))).await?;
        Ok(token["status"]["token"].as_str().unwrap_or_default().to_owned())
    }

    /// TokenReviews and SubjectAccessReviews that the host has answered since it started.
    pub async fn reviews(&self) -> Result<u64> {
        let answer = self.admin().await?.ask_again(&UserRequest::get("/metrics")).await?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let counts = text.lines().filter(|line| {
            line.starts_with("apiserver_request_total{") && REVIEWS.iter().any(|of| line.contains(of))
        });
        Ok(counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64)
    }
}
