//! The clients that must not be harmed: probes, system:masters, another tenant, and a drain.

mod count;
mod drain;
mod other_tenant;
mod probes;
mod stream;
mod system_masters;

pub use count::RequestCount;
pub use drain::{SmallDrain, SmallDrainResult};
pub use other_tenant::{OtherTenant, WatchHealth};

use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result};
use drydock_testkit::wait::LIMIT;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::setup::AttackSetup;
use other_tenant::FollowWay;

/// How long a request may wait until it counts as failed. To be served is to get an answer at last: how soon says more about
/// the machine.
const GUARD: Duration = LIMIT;

/// The running bystanders.
pub struct Bystanders {
    stop: CancellationToken,
    probes: Vec<JoinHandle<RequestCount>>,
    system_masters: JoinHandle<RequestCount>,
    asks: JoinHandle<RequestCount>,
    watch: JoinHandle<WatchHealth>,
    stream: JoinHandle<WatchHealth>,
    drain: JoinHandle<Result<SmallDrainResult>>,
}

/// What the bystanders got.
#[derive(Clone, Debug, Default)]
pub struct BystanderResults {
    /// GET of /livez and /readyz.
    pub probes: RequestCount,
    /// Requests of system:masters.
    pub system_masters: RequestCount,
    /// Reads and writes of the other tenant.
    pub other_tenant: RequestCount,
    /// Its watch.
    pub watch: WatchHealth,
    /// Its gRPC stream.
    pub stream: WatchHealth,
    /// The drain.
    pub drain: SmallDrainResult,
}

impl Bystanders {
    /// Starts them. Kubelets probe from an address of their own, and from that of the attack.
    pub fn start(
        setup: &Arc<AttackSetup>,
        other_tenant: &Arc<OtherTenant>,
        drain: SmallDrain,
        from: [Ipv4Addr; 2],
    ) -> Result<Bystanders> {
        let (stop, threads) = (CancellationToken::new(), threads()?);
        Ok(Bystanders {
            probes: from.map(|from| threads.spawn(probes::probe(setup.clone(), from, stop.clone()))).into(),
            system_masters: threads.spawn(system_masters::ask(setup.clone(), stop.clone())),
            asks: threads.spawn(other_tenant.clone().ask(stop.clone())),
            watch: threads.spawn(other_tenant.clone().watch(stop.clone(), FollowWay::Watch)),
            stream: threads.spawn(other_tenant.clone().watch(stop.clone(), FollowWay::Stream)),
            drain: threads.spawn(drain.run(setup.clone())),
            stop,
        })
    }

    /// Ends them when what they asked is answered.
    pub async fn end(self) -> Result<BystanderResults> {
        let drain = self.drain.await?.unwrap_or_else(|error| SmallDrainResult::failed(&error));
        self.stop.cancel();
        let mut probes = RequestCount::default();
        for some in self.probes {
            probes.join(some.await?);
        }
        let (system_masters, other_tenant) = (self.system_masters.await?, self.asks.await?);
        let (watch, stream) = (self.watch.await?, self.stream.await?);
        Ok(BystanderResults { probes, system_masters, other_tenant, watch, stream, drain })
    }
}

/// The bystanders' own threads, on which no attack makes them wait.
fn threads() -> Result<&'static Runtime> {
    static THREADS: OnceLock<Runtime> = OnceLock::new();
    if THREADS.get().is_none() {
        let started = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let _ = THREADS.set(started.context("no threads for the bystanders")?);
    }
    THREADS.get().context("no threads")
}

/// Pauses, and returns whether it is over.
async fn pause(stop: &CancellationToken, length: Duration) -> bool {
    tokio::select! {
        () = stop.cancelled() => true,
        () = tokio::time::sleep(length) => false,
    }
}
