//! Puts the controllers together and runs them until a signal stops them or the lease is lost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use drydock_eviction::PastTurns;
use drydock_runtime::ControllerContext;
use drydock_runtime::cache::Select;
use drydock_runtime::metrics::Metrics;
use drydock_runtime::{leading, lease, ownership};
use drydock_serving::host;
use drydock_serving::tasks::ProgramTasks;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::controllers::{self, ControllerInputs};
use crate::direct::DirectRoute;
use crate::flags::Flags;

/// Reported as the source of events.
const COMPONENT: &str = "drydock-controller-manager";
/// How long the controllers wait for the APIService of our kinds. Until it is known their requests go through the host.
const ROUTE_KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Runs until SIGTERM or SIGINT. Fails if the manager cannot start, if it loses the lease, or if one of its tasks ends before.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    run_as(flags, ProgramTasks::new(CancellationToken::new())).await
}

async fn run_as(flags: Flags, tasks: ProgramTasks) -> anyhow::Result<()> {
    tasks.run(start(flags, tasks.clone())).await
}

async fn start(flags: Flags, tasks: ProgramTasks) -> anyhow::Result<()> {
    let lease = flags.lease.lease();
    let metrics = Metrics::new();
    let shutdown = tasks.shutdown().clone();
    let mut connections = HostConnections::open(flags.kubeconfig.as_deref()).await?;
    let route = connections.go_straight(&flags, &metrics, &tasks)?;
    let client = lease::with_term(connections.writes, lease.clone(), &metrics);
    let port = flags.port.bind(&tasks).await?;

    leading::stop_on_signal(shutdown.clone())?;
    let context = ControllerContext::new(COMPONENT, client, connections.evictions, lease, metrics, tasks);
    let caches = context.caches.clone();
    flags.port.serve(port, move || caches.is_synced(Select::ALL), &context, connections.reviews);
    info!(version = env!("CARGO_PKG_VERSION"), "drydock-controller-manager starts");
    if !leading::wait_for_server(&context.client, &shutdown).await
        || !is_known(route.as_deref(), &shutdown).await
    {
        return Ok(());
    }
    // A standby keeps its caches current too.
    context.caches.start(&connections.watches, Select::ALL, &context.tasks);
    context.tasks.spawn("owners of pods", ownership::run(context.clone()));
    let inputs = ControllerInputs { past_turns: PastTurns::follow(&context), flags };
    let start = || controllers::start(&context, &inputs);
    inputs.flags.lease.lead(&context, &connections.lease, start).await
}

/// Clients with a connection each. A host limits how many requests of one connection it serves at a time
/// (100, kube-apiserver's `--http2-max-streams-per-connection`). With several connections, renewals and new
/// watches do not wait for writes, nor writes for evictions, for a long list, or for reviews of the callers of our port.
struct HostConnections {
    /// Its requests carry the fencing token.
    writes: Client,
    evictions: Client,
    watches: Client,
    lease: Client,
    reviews: Client,
}

impl HostConnections {
    async fn open(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let open = || host::client("--kubeconfig", kubeconfig);
        Ok(Self {
            writes: open().await?,
            evictions: open().await?,
            watches: open().await?,
            lease: open().await?,
            reviews: open().await?,
        })
    }

    /// Sends what concerns our kinds straight to the API server, if the flags ask for it: writes and watches, over a
    /// connection each.
    fn go_straight(
        &mut self,
        flags: &Flags,
        metrics: &Metrics,
        tasks: &ProgramTasks,
    ) -> anyhow::Result<Option<Arc<DirectRoute>>> {
        let Some(token_file) = flags.direct_token_file() else { return Ok(None) };
        std::fs::metadata(token_file)
            .with_context(|| format!("--apiservice-token-file {}", token_file.display()))?;
        let route = DirectRoute::follow(self.watches.clone(), token_file.to_owned(), metrics, tasks);
        self.writes = route.over(self.writes.clone());
        self.watches = route.over(self.watches.clone());
        Ok(Some(route))
    }
}

/// Waits for a while until it is known whether there is a direct route: watches stay on the route on which they began. `false`
/// if stopped before.
async fn is_known(route: Option<&DirectRoute>, stop: &CancellationToken) -> bool {
    let Some(route) = route else { return true };
    tokio::select! {
        () = stop.cancelled() => false,
        _ = tokio::time::timeout(ROUTE_KNOWN_WITHIN, route.known()) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::SocketAddr;

    use drydock_logging::target;
    use drydock_logging::testing::log;

    use super::*;

    /// The kubeconfig of a host that is away, and its address.
    fn away() -> (tempfile::NamedTempFile, SocketAddr) {
        // Nothing listens on the port of a listener that is gone.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let cluster = format!("{{name: c, cluster: {{server: 'http://{address}'}}}}");
        let context = "{name: c, context: {cluster: c, user: u}}";
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{cluster}]\ncontexts: [{context}]\nusers: [{{name: u}}]\n"
        );
        std::fs::write(file.path(), text).unwrap();
        (file, address)
    }

    async fn broken() {
        panic!("broken");
    }

    /// A task that ended while the program waited for its host was not missed before it led.
    #[tokio::test]
    async fn a_task_that_panics_before_the_program_leads_ends_it() {
        let (kubeconfig, _) = away();
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.path().display());
        let flags = Flags::read(["m", "--secure-port=0", &kubeconfig].map(Into::into));
        let tasks = ProgramTasks::new(CancellationToken::new());
        tasks.spawn("reflector of pods", broken());
        let error = run_as(flags.unwrap_or_else(|_| panic!("flags")), tasks).await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"reflector of pods\" panicked");
    }

    /// Each of the clients logged that the same host could not be reached.
    #[tokio::test]
    async fn a_host_that_is_away_is_reported_once_by_all_clients() {
        let (file, address) = away();
        let (log, _guard) = log(&target::directives(0));
        let HostConnections { writes, evictions, watches, lease, reviews } =
            HostConnections::open(Some(file.path())).await.unwrap();
        for client in [writes, evictions, watches, lease, reviews] {
            assert!(client.apiserver_version().await.is_err());
        }
        let lines = log.lines();
        let told = format!("cannot reach http://{address} (from --kubeconfig {}): ", file.path().display());
        assert!(matches!(lines.as_slice(), [line] if line.contains(&told)), "{lines:?}");
    }
}
