//! Figures of the servers: memory of ours, reviews that the host was asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use drydock_testkit::proc;
use serde_json::json;
use tokio::task::JoinHandle;

use super::{AttackSetup, USUAL_ADDRESS};
use crate::client::{FlowWindows, UserConnection, UserRequest};

/// KiB beyond which a server is killed, before the machine is out of memory.
const TOO_MUCH: u64 = 6 << 20;
/// How often the memory is read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// What Rust's panic hook writes.
const PANIC: &[u8] = b" panicked at ";
/// The host's API server.
const HOST: &str = "kube-apiserver";
const SCRAPER: &str = "scraper";
const ACCOUNTS: &str = "/api/v1/namespaces/kube-system/serviceaccounts";
const REVIEWS: [&str; 2] = ["resource=\"subjectaccessreviews\"", "resource=\"tokenreviews\""];

/// The resident memory of a process while it is sampled.
pub struct MemoryGauge {
    seen: Arc<PeakMemory>,
    sampler: JoinHandle<()>,
}

#[derive(Default)]
struct PeakMemory {
    peak: AtomicU64,
    killed: AtomicBool,
}

impl MemoryGauge {
    /// Starts to sample; the peak so far is forgotten.
    pub fn of(pid: u32) -> Result<MemoryGauge> {
        proc::forget_peak(pid)?;
        let seen = Arc::<PeakMemory>::default();
        let sampler = tokio::spawn(sample(pid, seen.clone()));
        Ok(MemoryGauge { seen, sampler })
    }

    /// The peak in MiB, and whether the process had to be killed for it.
    pub fn peak(&self) -> (u64, bool) {
        (self.seen.peak.load(Ordering::Relaxed) / 1024, self.seen.killed.load(Ordering::Relaxed))
    }
}

impl Drop for MemoryGauge {
    fn drop(&mut self) {
        self.sampler.abort();
    }
}

async fn sample(pid: u32, seen: Arc<PeakMemory>) {
    let mut ticks = tokio::time::interval(SAMPLE_INTERVAL);
    while let Ok(memory) = proc::memory(pid) {
        seen.peak.fetch_max(memory.peak, Ordering::Relaxed);
        if memory.resident > TOO_MUCH && !seen.killed.swap(true, Ordering::Relaxed) {
            let _ = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
        }
        ticks.tick().await;
    }
}

/// Resident memory of a process in MiB; 0 if it does not run.
fn resident(pid: Option<u32>) -> u64 {
    pid.and_then(|pid| proc::memory(pid).ok()).unwrap_or_default().resident / 1024
}

impl AttackSetup {
    /// Resident memory of our API server, in MiB.
    pub fn resident(&self) -> u64 {
        resident(self.pid())
    }

    /// Panics in the log of our API server.
    pub fn panics(&self) -> usize {
        let path = self.drydock.host.dir.join("logs/drydock-apiserver.log");
        let log = std::fs::read(path).unwrap_or_default();
        log.windows(PANIC.len()).filter(|at| *at == PANIC).count()
    }

    /// Resident memory of the host's API server, in MiB.
    pub fn host_resident(&self) -> u64 {
        resident(self.drydock.host.processes.pid(HOST))
    }

    /// Bytes in the files of the embedded store; 0 where there is none.
    pub fn stored(&self) -> u64 {
        let files =
            std::fs::read_dir(self.drydock.host.dir.join("drydock/data")).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// The metric of our controller manager that has the most series, and how many.
    pub async fn manager_series(&self) -> Result<(String, usize)> {
        let text = self.manager_metrics().await?;
        let mut counts = BTreeMap::<&str, usize>::new();
        for name in text.lines().filter_map(|line| line.split_once('{')).map(|(name, _)| name) {
            *counts.entry(name).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).context("no metrics")?;
        Ok((most.0.to_owned(), most.1))
    }

    /// The metrics of our controller manager.
    pub async fn manager_metrics(&self) -> Result<String> {
        let token = self.scraper().await?;
        let connection =
            UserConnection::open(&self.manager(true)?, USUAL_ADDRESS, Some(&token), FlowWindows::USUAL)
                .await?;
        let answer = connection.ask(&UserRequest::get("/metrics")).await?;
        ensure!(answer.code.is_success(), "the controller manager's metrics: {}", answer.summary());
        Ok(String::from_utf8_lossy(&answer.body).into_owned())
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
        self.answered(|line| REVIEWS.iter().any(|of| line.contains(of))).await
    }

    /// Patches of objects of this resource that the host has answered since it started, without those of their status.
    pub async fn patches(&self, resource: &str) -> Result<u64> {
        let of = [
            format!(",resource=\"{resource}\","),
            "subresource=\"\"".to_owned(),
            "verb=\"PATCH\"".to_owned(),
        ];
        self.answered(|line| of.iter().all(|part| line.contains(part))).await
    }

    /// How many requests the host has answered whose line in its metrics is meant.
    async fn answered(&self, is_meant: impl Fn(&str) -> bool) -> Result<u64> {
        let answer = self.admin().await?.decided(&UserRequest::get("/metrics")).await?;
        ensure!(answer.code.is_success(), "the host's metrics: {}", answer.summary());
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let counts =
            text.lines().filter(|line| line.starts_with("apiserver_request_total{") && is_meant(line));
        Ok(counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64)
    }
}
