//! Those who do no harm and must not be harmed: probes, system:masters, an observing tenant, and a drain.

mod count;
mod drain;
mod masters;
mod observer;
mod probes;
mod stream;

pub use count::Count;
pub use drain::{Drain, Drained};
pub use observer::{Observer, Watched};

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::setup::AttackSetup;
use observer::Way;

/// Whoever waits longer for an answer waits for ever.
const GUARD: Duration = Duration::from_secs(30);

/// The others while they are at work.
pub struct Others {
    stop: CancellationToken,
    probes: Vec<JoinHandle<Count>>,
    masters: JoinHandle<Count>,
    asks: JoinHandle<Count>,
    watch: JoinHandle<Watched>,
    stream: JoinHandle<Watched>,
    drain: JoinHandle<Result<Drained>>,
}

/// How the others fared.
#[derive(Clone, Debug, Default)]
pub struct Fared {
    /// GET of /livez and /readyz.
    pub probes: Count,
    /// Requests of system:masters.
    pub masters: Count,
    /// Reads and writes of the observing tenant.
    pub observer: Count,
    /// Its watch.
    pub watch: Watched,
    /// Its gRPC stream.
    pub stream: Watched,
    /// The drain.
    pub drain: Drained,
}

impl Others {
    /// They begin. Kubelets probe from addresses of their own and from that of the attack alike.
    pub fn start(
        setup: &Arc<AttackSetup>,
        observer: &Arc<Observer>,
        drain: Drain,
        from: [Ipv4Addr; 2],
    ) -> Others {
        let stop = CancellationToken::new();
        Others {
            probes: from.map(|from| tokio::spawn(probes::probe(setup.clone(), from, stop.clone()))).into(),
            masters: tokio::spawn(masters::ask(setup.clone(), stop.clone())),
            asks: tokio::spawn(observer.clone().ask(stop.clone())),
            watch: tokio::spawn(observer.clone().watch(stop.clone(), Way::Watch)),
            stream: tokio::spawn(observer.clone().watch(stop.clone(), Way::Stream)),
            drain: tokio::spawn(drain.run(setup.clone())),
            stop,
        }
    }

    /// They end when what they began is answered.
    pub async fn end(self) -> Result<Fared> {
        let drain = self.drain.await?.unwrap_or_else(|error| Drained::failed(&error));
        self.stop.cancel();
        let mut probes = Count::default();
        for some in self.probes {
            probes.join(some.await?);
        }
        let (masters, observer) = (self.masters.await?, self.asks.await?);
        let (watch, stream) = (self.watch.await?, self.stream.await?);
        Ok(Fared { probes, masters, observer, watch, stream, drain })
    }
}

/// Pauses, and returns whether it is over.
async fn pause(stop: &CancellationToken, length: Duration) -> bool {
    tokio::select! {
        () = stop.cancelled() => true,
        () = tokio::time::sleep(length) => false,
    }
}
