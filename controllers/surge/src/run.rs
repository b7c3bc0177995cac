//! Puts the interceptor together and runs it until a signal stops it or the lease is lost.

use drydock_api::eviction_request::interceptors::SURGE;
use drydock_runtime::cache::Select;
use drydock_runtime::metrics::Metrics;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{ControllerContext, leading};
use drydock_serving::host;
use drydock_serving::tasks::ProgramTasks;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::controller::SurgeController;
use crate::flags::Flags;
use crate::turns::{TurnServer, TurnTable};
use crate::workloads::Workloads;
use crate::{metrics, register};

/// Reported as the source of events.
const COMPONENT: &str = "drydock-surge-interceptor";
/// The caches that are read, beside those of workloads.
const READS: Select = Select { pods: true, budgets: true, requests: true, ..Select::NONE };

/// Runs until SIGTERM or SIGINT. Fails if the program cannot start, if it loses the lease, or if one of its tasks ends before.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let tasks = ProgramTasks::new(CancellationToken::new());
    tasks.run(intercept(flags, tasks.clone())).await
}

async fn intercept(flags: Flags, tasks: ProgramTasks) -> anyhow::Result<()> {
    let open = || host::client("--kubeconfig", flags.kubeconfig.as_deref());
    // A connection each, so that renewals and watches do not wait for writes.
    let (client, watches, leases, reviews) = (open().await?, open().await?, open().await?, open().await?);
    let port = flags.port.bind(&tasks).await?;
    leading::stop_on_signal(tasks.shutdown().clone())?;
    let context =
        ControllerContext::new(COMPONENT, client.clone(), client, flags.lease.lease(), Metrics::new(), tasks);
    let controller = SurgeController { context, workloads: Workloads::new(), turns: TurnTable::default() };
    metrics::register(&controller);
    let context = &controller.context;
    let (caches, workloads) = (context.caches.clone(), controller.workloads.clone());
    let is_synced = move || caches.is_synced(READS) && workloads.is_synced();
    flags.port.serve(port, is_synced, context, reviews);
    info!(version = env!("CARGO_PKG_VERSION"), "drydock-surge-interceptor starts");
    if !leading::wait_for_server(&context.client, context.tasks.shutdown()).await {
        return Ok(());
    }
    // A standby keeps its caches current too.
    context.caches.start(&watches, READS, &context.tasks);
    controller.workloads.start(&watches, context);
    flags.lease.lead(context, &leases, || start(&controller)).await
}

fn start(controller: &SurgeController) -> Vec<&'static str> {
    controller.context.tasks.spawn(SURGE, act(controller.clone()));
    vec![SURGE]
}

/// Nothing is decided before all lists are complete: a record without a request in an incomplete list would be taken
/// back.
async fn act(controller: SurgeController) {
    let complete = async {
        controller.workloads.wait_until_synced().await;
        controller.context.caches.wait_until_synced(READS).await;
    };
    tokio::select! {
        () = controller.context.tasks.shutdown().cancelled() => return,
        () = complete => {}
    }
    let queue = |name| WorkQueue::new(name, &controller.context.metrics, ExponentialBackoff::WRITES);
    let (deployments, pods) = (queue("surge"), queue("surge_registrations"));
    let SurgeController { context, workloads, turns } = controller.clone();
    let server = TurnServer { context, workloads, table: turns, queue: deployments.clone() };
    tokio::join!(controller.clone().run(deployments), register::run(controller.clone(), pods), server.run(),);
}
