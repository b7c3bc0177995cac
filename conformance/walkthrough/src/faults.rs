//! Servers are killed in the middle of the drain, in turn and repeatedly, and started again as a cluster would.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use drydock_api::text::times;
use drydock_testkit::drydock::Drydock;
use drydock_testkit::finding::Finding;
use drydock_testkit::wait::LIMIT;
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use kube::runtime::{WatchStreamExt, watcher};
use tokio_util::sync::CancellationToken;

use super::screen::{Screen, Span, Tone};
use super::workload;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Chaos {
    /// Drydock's API server and controller managers.
    Drydock,
    /// The kube-apiserver.
    Host,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// Our API server is killed and comes back.
    ApiserverKilled,
    /// The controller manager that holds the lease is killed: the other one goes on.
    LeaderKilled,
    /// Our API server is asked to end: it does so in order.
    ApiserverStopped,
    /// Both controller managers are killed and come back.
    ManagersKilled,
    /// The host's API server is killed and comes back, a little later each time.
    HostKilled,
}

impl Fault {
    /// What happens, in words that "3 times" can follow.
    fn words(self) -> &'static str {
        match self {
            Fault::ApiserverKilled => "drydock-apiserver killed",
            Fault::LeaderKilled => "leading drydock-controller-manager killed",
            Fault::ApiserverStopped => "drydock-apiserver stopped in order",
            Fault::ManagersKilled => "both drydock-controller-managers killed",
            Fault::HostKilled => "kube-apiserver killed",
        }
    }
}

/// How long a fault waits for the drain to get on: a drain may be held up by an interceptor.
const PROGRESS_LIMIT: Duration = Duration::from_secs(8);
/// How long the host stays away each time: at last longer than the lease can be kept without it.
const HOST_AWAY: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(6)];

/// The faults of one run, which end with what they accompany.
pub struct ServerFaults<'a> {
    drydock: &'a Drydock,
    screen: &'a Screen,
    chaos: Chaos,
    done: BTreeMap<Fault, usize>,
}

impl<'a> ServerFaults<'a> {
    /// No fault has occurred yet.
    pub fn new(drydock: &'a Drydock, screen: &'a Screen, chaos: Chaos) -> ServerFaults<'a> {
        ServerFaults { drydock, screen, chaos, done: BTreeMap::new() }
    }

    /// Runs `work` and lets things go wrong until it is done.
    pub async fn during<T>(mut self, work: impl Future<Output = Result<T>>) -> Result<(T, Vec<Finding>)> {
        let over = CancellationToken::new();
        let work = async {
            let result = work.await;
            over.cancel();
            result
        };
        let (drydock, screen) = (self.drydock, self.screen);
        let (result, (), ()) = tokio::try_join!(work, self.go_on(&over), supervise(drydock, screen, &over))?;
        Ok((result, vec![self.repeated()]))
    }

    async fn go_on(&mut self, over: &CancellationToken) -> Result<()> {
        for fault in self.fault_cycle().iter().cycle().take(self.most()) {
            self.progress(over).await?;
            if over.is_cancelled() {
                break;
            }
            warn(self.screen, fault.words());
            self.happen(*fault).await.context(fault.words())?;
            *self.done.entry(*fault).or_default() += 1;
        }
        // Until now the drain could not end.
        workload::let_go(&self.drydock.host)
    }

    fn fault_cycle(&self) -> &'static [Fault] {
        match self.chaos {
            Chaos::Drydock => {
                use Fault::{ApiserverKilled, ApiserverStopped, LeaderKilled, ManagersKilled};
                &[
                    ApiserverKilled,
                    LeaderKilled,
                    ApiserverKilled,
                    ManagersKilled,
                    ApiserverStopped,
                    LeaderKilled,
                ]
            }
            Chaos::Host => &[Fault::HostKilled],
        }
    }

    /// Each fault twice at the least; after that the drain may finish. A host that goes away all the time would keep its
    /// own controllers from replacing what was evicted.
    fn most(&self) -> usize {
        match self.chaos {
            Chaos::Drydock => 2 * self.fault_cycle().len(),
            Chaos::Host => HOST_AWAY.len(),
        }
    }

    async fn happen(&self, fault: Fault) -> Result<()> {
        let drydock = self.drydock;
        match fault {
            Fault::ApiserverKilled => {
                ensure!(drydock.kill_apiserver()?, "the API server did not run");
                drydock.start_apiserver().await
            }
            Fault::ApiserverStopped => {
                let ended = drydock.stop_apiserver().await?;
                ensure!(ended.success(), "the API server ended with {ended}");
                drydock.start_apiserver().await
            }
            Fault::LeaderKilled => self.kill_leader().await,
            Fault::ManagersKilled => {
                for name in drydock.managers() {
                    drydock.host.processes.kill(name)?;
                }
                drydock.managers().iter().try_for_each(|name| drydock.spawn_manager_as(name))
            }
            Fault::HostKilled => self.kill_host().await,
        }
    }

    /// The other one takes over by itself; only then does the killed one come back, to stand by.
    async fn kill_leader(&self) -> Result<()> {
        let leader = self.a_leader(None).await?;
        ensure!(self.drydock.host.processes.kill(leader)?, "{leader} did not run");
        let next = self.a_leader(Some(leader)).await?;
        ensure!(next != leader, "{leader} was killed and still leads");
        self.drydock.spawn_manager_as(leader)
    }

    /// Watches the lease until one of ours that runs holds it.
    async fn a_leader(&self, killed: Option<&str>) -> Result<&'static str> {
        let leases: Api<Lease> = Api::namespaced(self.drydock.host.client().await?, "drydock-system");
        let mut changes =
            watcher::watch_object(leases, "drydock-controller-manager").default_backoff().boxed();
        let found = async {
            while changes.next().await.is_some() {
                if let Some(leader) = self.drydock.leader().await?.filter(|name| Some(*name) != killed) {
                    return Ok(leader);
                }
            }
            anyhow::bail!("the watch ended")
        };
        tokio::time::timeout(LIMIT, found).await.context("nobody took the lease over")?
    }

    async fn kill_host(&self) -> Result<()> {
        let host = &self.drydock.host;
        ensure!(host.kill_apiserver()?, "the kube-apiserver did not run");
        let earlier = self.done.get(&Fault::HostKilled).copied().unwrap_or_default();
        tokio::time::sleep(HOST_AWAY.get(earlier).copied().unwrap_or_default()).await;
        host.start_apiserver().await
    }

    /// Waits until a pod is gone, for a while: the drain is under way, and what the last fault broke is mended.
    async fn progress(&self, over: &CancellationToken) -> Result<()> {
        let pods: Api<Pod> = Api::all(self.drydock.host.client().await?);
        let mut events = watcher::watcher(pods, watcher::Config::default()).default_backoff().boxed();
        let gone = async {
            while let Some(event) = events.next().await {
                if matches!(event, Ok(watcher::Event::Delete(_))) {
                    break;
                }
            }
        };
        tokio::select! {
            () = over.cancelled() => {}
            _ = tokio::time::timeout(PROGRESS_LIMIT, gone) => {}
        }
        Ok(())
    }

    /// Each of the faults came at least twice: otherwise the run says too little.
    fn repeated(&self) -> Finding {
        let often =
            self.fault_cycle().iter().all(|fault| self.done.get(fault).is_some_and(|times| *times > 1));
        let counts: Vec<_> = self
            .done
            .iter()
            .map(|(fault, count)| format!("{} {}", fault.words(), times(*count as u64)))
            .collect();
        Finding::new(often, format!("in the middle of the drain: {}", counts.join(", ")))
    }
}

/// A controller manager that loses its lease ends, and has to be started again, as a cluster would.
async fn supervise(drydock: &Drydock, screen: &Screen, over: &CancellationToken) -> Result<()> {
    let mut checks = tokio::time::interval(Duration::from_millis(500));
    while !over.is_cancelled() {
        checks.tick().await;
        for name in drydock.managers().iter().filter(|name| drydock.host.processes.has_ended(name)) {
            warn(screen, &format!("{name} has ended and is started again"));
            drydock.host.processes.kill(name)?;
            drydock.spawn_manager_as(name)?;
        }
    }
    Ok(())
}

fn warn(screen: &Screen, what: &str) {
    screen.line(&[Span::new(Tone::Warning, format!("    !! {what}"))]);
}
