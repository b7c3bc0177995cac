//! One drain by one subject on a host of its own, measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use drydock_testkit::drydock::{Drydock, Options};
use drydock_testkit::host::{TestHost, audit};
use drydock_testkit::observer::ObserverProcess;
use drydock_testkit::wait::{LIMIT, retry};
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;

use super::Arguments;
use super::cpu::Cpu;
use super::figures::DrainFigures;
use super::floor;
use super::form::BudgetForm;
use super::subject::DrainSubject;
use super::workload::{NAMESPACE, Workload, WorkloadSize};

/// Most successful writes of ours for each pod, by verb and resource, as the figures name them. All follow from the design,
/// and none from time: an eviction; a request that is made with the pod's labels, and removed; a status with the first turn,
/// and one with the end. One more for each pod is beyond each bound.
const MOST_WRITES: [(&str, f64); 4] = [
    ("create pods/eviction", 1.1),
    ("patch evictionrequests", 1.5),
    ("delete evictionrequests", 1.1),
    ("patch evictionrequests/status", 2.2),
];
/// Most reports for each pod that nothing explains: one for each pod is beyond it.
const MOST_UNEXPLAINED: f64 = 0.2;

/// How long the CPU time of idling is measured, and how often: the least counts, as the host may still be at work on what
/// was made before.
const IDLE: (Duration, usize) = (Duration::from_secs(2), 3);

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Which budgets there were.
    pub form: BudgetForm,
    /// Who drained.
    pub subject: DrainSubject,
    /// How many pods there were.
    pub pods: usize,
    /// Until the nodes were empty.
    pub seconds: f64,
    /// By the audit logs of the host and of our API server.
    pub figures: DrainFigures,
    /// CPU seconds by process, until the nodes were empty and all Deployments complete again, without what the same time
    /// takes when nothing happens.
    pub cpu: Cpu,
    /// CPU seconds by process in each second before the drain, with its subject and its observer at rest.
    pub idle: Cpu,
    /// Pods that are still on the nodes.
    pub left: Vec<String>,
    /// EvictionRequests that stay when the nodes are empty.
    pub requests_left: usize,
    /// Whether all budgets were kept at every moment.
    pub budgets_kept: bool,
    /// What the observer of the budgets said.
    pub observer: String,
    /// Why the drain did not end.
    pub failure: Option<String>,
}

/// What is known when the drain has ended.
struct DrainedTrial {
    from: Timestamp,
    ended: Timestamp,
    seconds: f64,
    cpu: Cpu,
    requests_left: usize,
    failure: Option<String>,
}

/// Starts a host, and Drydock if it is the subject, and lets it drain.
pub async fn run(subject: DrainSubject, form: BudgetForm, arguments: &Arguments) -> Result<Trial> {
    let host = TestHost::start_auditing_programs().await?;
    let drydock = match subject {
        DrainSubject::Drydock => Some(Drydock::start(host.clone(), Options::default()).await?),
        DrainSubject::Floor => {
            Some(Drydock::start_without_controllers(host.clone(), Options::default()).await?)
        }
        DrainSubject::Loop => None,
    };
    let size = WorkloadSize { pods: arguments.pods, nodes: arguments.nodes, room: arguments.room };
    let workload = Workload::create(&host, form, size).await?;
    match (subject, &drydock) {
        (DrainSubject::Drydock, Some(drydock)) => {
            let late = || format!("no controller manager leads within {LIMIT:?}: {}", drydock.log_tail());
            retry(LIMIT, late, async || Ok(drydock.leader().await?.is_some())).await?;
        }
        (DrainSubject::Floor, Some(drydock)) => floor::start(drydock).await?,
        _ => {}
    }
    let client = subject.client(&host).await?;
    subject.prepare(&client, &workload).await?;
    let observer = observe(&host, form)?;
    let idle = idle(&host).await?;
    let drained = drain(subject, &host, &client, &workload, &idle).await?;
    let left = workload.left().await?;
    if drained.failure.is_none() {
        subject.release(&client).await?;
    }
    let findings = observer.map_or_else(|| Ok(Vec::new()), ObserverProcess::finish)?;
    let logs =
        drydock.as_ref().map_or_else(|| vec![host.audit_log()], |drydock| drydock.audit_logs().to_vec());
    let log = audit::requests_of(&logs)?;
    Ok(Trial {
        form,
        subject,
        pods: size.pods,
        seconds: drained.seconds,
        figures: DrainFigures::read(&log, &workload.names(), drained.from, drained.ended),
        cpu: drained.cpu,
        idle,
        left,
        requests_left: drained.requests_left,
        budgets_kept: findings.iter().all(|finding| finding.good),
        observer: findings.into_iter().map(|finding| finding.what).collect(),
        failure: drained.failure,
    })
}

/// Without budgets there is nothing to observe.
fn observe(host: &TestHost, form: BudgetForm) -> Result<Option<ObserverProcess>> {
    if form == BudgetForm::None {
        return Ok(None);
    }
    let program = std::env::current_exe().context("this program does not know where it is")?;
    ObserverProcess::start(&program, &host.admin(), NAMESPACE).map(Some)
}

/// Measures the CPU time of each second in which nothing happens.
async fn idle(host: &TestHost) -> Result<Cpu> {
    let mut least = None::<Cpu>;
    for _ in 0..IDLE.1 {
        let (began, before) = (Instant::now(), Cpu::now(host)?);
        tokio::time::sleep(IDLE.0).await;
        let idle = Cpu::now(host)?.since(&before).each_of(began.elapsed().as_secs_f64());
        least = Some(least.map_or(idle.clone(), |least| least.least(&idle)));
    }
    Ok(least.unwrap_or_default())
}

/// The host's clock and ours are one: both run on this machine.
async fn drain(
    subject: DrainSubject,
    host: &TestHost,
    client: &Client,
    workload: &Workload,
    idle: &Cpu,
) -> Result<DrainedTrial> {
    let (from, began, before) = (Timestamp::now(), Instant::now(), Cpu::now(host)?);
    let drained = subject.drain(host, client, workload).await;
    let (ended, seconds) = (Timestamp::now(), began.elapsed().as_secs_f64());
    let requests_left = subject.requests_left(client).await?;
    let complete = match drained {
        Ok(()) => workload.complete().await,
        failed => failed,
    };
    // Of a process that has ended it cannot be read.
    let after = Cpu::now(host).with_context(|| host.processes.ended_processes())?;
    let cpu = after.since(&before).without_idle(idle, began.elapsed().as_secs_f64());
    let failure = complete.err().map(|error| format!("{error:#}; {}", host.processes.ended_processes()));
    Ok(DrainedTrial { from, ended, seconds, cpu, requests_left, failure })
}

impl Trial {
    /// No pod was left behind and no budget broken; and where all pods go by themselves, no owner got an
    /// event about one, and no request stayed for them to read. And no pod cost more writes than it should.
    pub fn is_good(&self) -> bool {
        let is_quiet = self.figures.events_of_pods == 0 && self.requests_left == 0;
        let is_frugal = self.excess_writes().is_empty();
        self.failure.is_none() && self.left.is_empty() && self.budgets_kept && is_quiet && is_frugal
    }

    /// Writes of which there were more for each pod than [`MOST_WRITES`] and [`MOST_UNEXPLAINED`], in words.
    fn excess_writes(&self) -> Vec<String> {
        let figures = &self.figures;
        let written = |what| figures.writes.get(what).copied().unwrap_or_default();
        let bounds = MOST_WRITES.map(|(what, most)| (what, written(what), most));
        let unexplained = ("reports without a reason", figures.unexplained_reports, MOST_UNEXPLAINED);
        let found = bounds.into_iter().chain([unexplained]).filter_map(|(what, count, most)| {
            let each = self.per_pod(count as f64);
            (each > most).then(|| format!("{what}: {each:.2} a pod, at most {most:.2}"))
        });
        found.collect()
    }

    /// A number of the whole drain for each pod.
    pub fn per_pod(&self, whole: f64) -> f64 {
        whole / self.pods as f64
    }

    /// In one line.
    pub fn summary(&self) -> String {
        let DrainFigures { deletions, per_second, .. } = &self.figures;
        let mut line = format!("{deletions} pods in {:.1} s, {per_second:.1} a second", self.seconds);
        if !self.observer.is_empty() {
            line += &format!("; {}", self.observer);
        }
        if !self.left.is_empty() {
            line += &format!("; LEFT BEHIND: {}", self.left.len());
        }
        if self.figures.events_of_pods + self.requests_left > 0 {
            let events = self.figures.events_of_pods;
            line += &format!("; TOLD OWNERS: {events} events, {} requests left", self.requests_left);
        }
        let writes = self.figures.writes.iter();
        let writes: Vec<_> =
            writes.map(|(what, count)| format!("{what} {:.2}", self.per_pod(*count as f64))).collect();
        line += &format!("; writes a pod: {}", writes.join(", "));
        let excess = self.excess_writes();
        if !excess.is_empty() {
            line += &format!("; TOO MANY WRITES: {}", excess.join(", "));
        }
        self.failure.iter().for_each(|failure| line += &format!("; FAILED: {failure}"));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A drain of 200 pods without budgets, with so many writes to the specs of requests.
    fn trial(patches: usize) -> Trial {
        let writes = [
            ("create pods/eviction", 200),
            ("delete evictionrequests", 200),
            ("patch evictionrequests", patches),
            ("patch evictionrequests/status", 404),
        ];
        let writes = writes.map(|(what, count)| (what.to_owned(), count)).into();
        Trial {
            form: BudgetForm::None,
            subject: DrainSubject::Drydock,
            pods: 200,
            seconds: 10.0,
            figures: DrainFigures { writes, ..DrainFigures::default() },
            cpu: Cpu::default(),
            idle: Cpu::default(),
            left: Vec::new(),
            requests_left: 0,
            budgets_kept: true,
            observer: String::new(),
            failure: None,
        }
    }

    #[test]
    fn a_drain_that_writes_once_more_for_each_pod_is_not_good() {
        let (before, after) = (trial(204), trial(404));
        assert!(before.is_good(), "{}", before.summary());
        assert!(!after.is_good());
        assert!(
            after.summary().contains("patch evictionrequests: 2.02 a pod, at most 1.50"),
            "{}",
            after.summary()
        );
        let mut reported = trial(204);
        reported.figures.unexplained_reports = 200;
        assert!(!reported.is_good() && reported.summary().contains("reports without a reason: 1.00 a pod"));
    }
}
