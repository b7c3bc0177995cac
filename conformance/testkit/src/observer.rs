//! The observer: a process of its own that watches pods and budgets, independent of Drydock's caches.
//!
//! After each event it counts the ready pods under each budget. A budget counts from the moment at which it is first met;
//! from then on a single moment below it is a violation. The observer ends when its stdin is closed, and its last line is
//! its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Client, ResourceExt};

use crate::finding::Finding;
use crate::host::client_of;

/// The observer, as seen from the process that started it.
pub struct ObserverProcess {
    child: Child,
}

impl ObserverProcess {
    /// Starts it, and waits until it watches.
    pub fn start(program: &Path, kubeconfig: &Path, namespace: &str) -> Result<ObserverProcess> {
        let mut child = Command::new(program)
            .args(["observe", "--namespace", namespace, "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the observer does not start")?;
        let mut ready = String::new();
        let stdout = child.stdout.as_mut().context("the observer has no stdout")?;
        // One byte at a time: whatever follows the line is read at the end.
        BufReader::with_capacity(1, stdout).read_line(&mut ready)?;
        let observer = ObserverProcess { child };
        if ready.trim() != READY {
            bail!("the observer said {ready:?} instead of {READY:?}");
        }
        Ok(observer)
    }

    /// Ends it, and returns its verdict as a finding.
    pub fn finish(mut self) -> Result<Vec<Finding>> {
        drop(self.child.stdin.take());
        let mut said = String::new();
        if let Some(stdout) = self.child.stdout.as_mut() {
            stdout.read_to_string(&mut said)?;
        }
        let held = self.child.wait()?.success();
        Ok(vec![Finding::new(held, format!("observer: {}", said.trim()))])
    }
}

impl Drop for ObserverProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const READY: &str = "observing";

/// The hidden command of a program that starts itself once more as the observer.
#[derive(clap::Subcommand)]
pub enum ObserverCommand {
    /// Watch a namespace's budgets until stdin ends.
    #[command(hide = true)]
    Observe {
        /// Whose watches these are
        #[arg(long)]
        kubeconfig: PathBuf,
        /// Where the budgets are
        #[arg(long)]
        namespace: String,
    },
}

impl ObserverCommand {
    /// Runs the command.
    pub async fn run(&self) -> Result<ExitCode> {
        let ObserverCommand::Observe { kubeconfig, namespace } = self;
        observe(kubeconfig, namespace).await
    }
}

async fn observe(kubeconfig: &Path, namespace: &str) -> Result<ExitCode> {
    let client = client_of(kubeconfig).await?;
    let mut count = PodCount::new(budgets(&client, namespace).await?);
    let mut ended = end_of_stdin();
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let mut events = watcher::watcher(pods, watcher::Config::default()).default_backoff().boxed();
    loop {
        tokio::select! {
            _ = &mut ended => break,
            event = events.next() => match event.context("the watch ended")? {
                Ok(event) => count.see(event),
                Err(error) => eprintln!("observer: {error}"),
            },
        }
    }
    println!("{}", count.summary());
    Ok(if count.is_kept() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn budgets(client: &Client, namespace: &str) -> Result<Vec<ObservedBudget>> {
    let api: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), namespace);
    api.list(&ListParams::default()).await?.iter().map(ObservedBudget::read).collect()
}

fn end_of_stdin() -> tokio::sync::oneshot::Receiver<()> {
    let (send, receive) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = send.send(());
    });
    receive
}

struct ObservedBudget {
    name: String,
    labels: BTreeMap<String, String>,
    least: usize,
    met: bool,
}

impl ObservedBudget {
    /// Takes only a number for minAvailable: for a percentage it would have to trust the host's count of pods.
    fn read(budget: &PodDisruptionBudget) -> Result<ObservedBudget> {
        let name = budget.name_any();
        let spec = budget.spec.as_ref().context("a budget without spec")?;
        let Some(IntOrString::Int(least)) = spec.min_available else {
            bail!("budget {name}: the observer wants minAvailable as a number");
        };
        let selector = spec.selector.as_ref().and_then(|selector| selector.match_labels.clone());
        let labels = selector.with_context(|| format!("budget {name} has no matchLabels"))?;
        Ok(ObservedBudget { name, labels, least: usize::try_from(least)?, met: false })
    }

    fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// The ready pods by name, each with the indices of the budgets that cover it.
type ObservedReadiness = BTreeMap<String, Vec<usize>>;

#[derive(Default)]
struct PodCount {
    budgets: Vec<ObservedBudget>,
    ready: ObservedReadiness,
    relisted: Option<ObservedReadiness>,
    moments: usize,
    violations: BTreeSet<String>,
}

impl PodCount {
    fn new(budgets: Vec<ObservedBudget>) -> PodCount {
        PodCount { budgets, ..PodCount::default() }
    }

    fn see(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.relisted = Some(BTreeMap::new()),
            Event::InitApply(pod) => note(self.relisted.get_or_insert_default(), &self.budgets, &pod),
            Event::InitDone => {
                self.ready = self.relisted.take().unwrap_or_default();
                if self.moments == 0 {
                    println!("{READY}");
                }
                self.check();
            }
            Event::Apply(pod) => {
                note(&mut self.ready, &self.budgets, &pod);
                self.check();
            }
            Event::Delete(pod) => {
                self.ready.remove(&pod.name_any());
                self.check();
            }
        }
    }

    fn check(&mut self) {
        self.moments += 1;
        let mut counts = vec![0; self.budgets.len()];
        self.ready.values().flatten().for_each(|budget| counts[*budget] += 1);
        for (budget, ready) in self.budgets.iter_mut().zip(counts) {
            budget.met |= ready >= budget.least;
            if budget.met && ready < budget.least {
                self.violations.insert(format!("{} had {ready} of {} ready pods", budget.name, budget.least));
            }
        }
    }

    fn is_kept(&self) -> bool {
        self.violations.is_empty() && self.moments > 0 && self.budgets.iter().all(|budget| budget.met)
    }

    fn summary(&self) -> String {
        let unmet: Vec<_> = self.budgets.iter().filter(|b| !b.met).map(|b| b.name.as_str()).collect();
        let (moments, budgets) = (self.moments, self.budgets.len());
        match (self.violations.is_empty(), unmet.is_empty()) {
            (true, true) => format!("{budgets} budgets kept at each of {moments} moments"),
            (true, false) => format!("never met, so never observed: {}", unmet.join(", ")),
            (false, _) => {
                let all: Vec<_> = self.violations.iter().map(String::as_str).collect();
                format!("BROKEN in {moments} moments: {}", all.join("; "))
            }
        }
    }
}

/// A pod that is ready and not being deleted counts for its budgets; any other does not.
fn note(ready: &mut ObservedReadiness, budgets: &[ObservedBudget], pod: &Pod) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
    if is_ready && pod.metadata.deletion_timestamp.is_none() {
        let covering = (0..budgets.len()).filter(|budget| budgets[*budget].covers(pod.labels()));
        ready.insert(pod.name_any(), covering.collect());
    } else {
        ready.remove(&pod.name_any());
    }
}
