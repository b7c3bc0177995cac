//! Puts the interceptor together and runs it until a signal stops it or the lease is lost.

use std::sync::Arc;

use anyhow::bail;
use drydock_api::eviction_request::interceptors::SURGE;
use drydock_runtime::cache::Select;
use drydock_runtime::clock::Clock;
use drydock_runtime::lease::{LeadershipEnd, LeaseConfig, LeaseHandle};
use drydock_runtime::metrics::{Metrics, router};
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{ControllerContext, leading};
use drydock_serving::auth::delegated::DelegatedAuth;
use drydock_serving::health::Health;
use drydock_serving::host;
use drydock_serving::metrics_port::{self, ServedPaths};
use kube::Client;
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

/// Runs until SIGTERM or SIGINT. Fails if the program cannot start, or if it loses the lease.
pub async fn run(flags: Flags) -> anyhow::Result<()> {
    let lease = match flags.leader_elect {
        true => LeaseHandle::pending(Clock::SYSTEM),
        false => LeaseHandle::unelected(Clock::SYSTEM),
    };
    let open = || host::client("--kubeconfig", flags.kubeconfig.as_deref());
    // A connection each, so that renewals and watches do not wait for writes.
    let (client, watches, leases, reviews) = (open().await?, open().await?, open().await?, open().await?);
    let port = match flags.address() {
        Some(address) => Some(metrics_port::bind(address, &flags.serving()).await?),
        None => None,
    };
    let shutdown = CancellationToken::new();
    leading::stop_on_signal(shutdown.clone())?;
    let context = ControllerContext::new(COMPONENT, client.clone(), client, lease, Metrics::new(), shutdown);
    let controller = SurgeController { context, workloads: Workloads::new(), turns: TurnTable::default() };
    metrics::register(&controller);
    let context = &controller.context;
    if let Some(port) = port {
        let paths = ServedPaths {
            health: health(&controller),
            auth: DelegatedAuth::new(reviews).for_audiences(flags.api_audiences.clone()),
            metrics: router(context.metrics.clone()),
        };
        // Probes are answered until the process ends.
        tokio::spawn(metrics_port::serve(port, paths, CancellationToken::new()));
    }
    info!(version = env!("CARGO_PKG_VERSION"), "drydock-surge-interceptor starts");
    if !leading::wait_for_server(&context.client, &context.shutdown).await {
        return Ok(());
    }
    // A standby keeps its caches current too.
    context.caches.start(&watches, READS, &context.tasks, &context.shutdown);
    controller.workloads.start(&watches, context);
    match leading::lead(context, candidacy(&leases, &flags), || start(&controller)).await {
        LeadershipEnd::Stopped => {
            info!("stopped");
            Ok(())
        }
        // The process ends at once, because another one may act by now.
        LeadershipEnd::Lost => bail!("the lease was lost"),
    }
}

fn health(controller: &SurgeController) -> Health {
    let controller = controller.clone();
    let ready = move || match controller.context.caches.is_synced(READS) && controller.workloads.is_synced() {
        true => Ok(()),
        false => Err("caches are not complete yet".to_owned()),
    };
    Health::default().live("ping", Arc::new(|| Ok(()))).ready("caches", Arc::new(ready))
}

/// The lease to hold, unless the flags say that the interceptor acts without one.
fn candidacy<'a>(client: &'a Client, flags: &Flags) -> Option<(&'a Client, LeaseConfig)> {
    let config = LeaseConfig {
        duration: flags.leader_elect_lease_duration,
        renew_deadline: flags.leader_elect_renew_deadline,
        retry_period: flags.leader_elect_retry_period,
        ..LeaseConfig::new(
            &flags.leader_elect_resource_namespace,
            &flags.leader_elect_resource_name,
            &leading::identity(),
        )
    };
    flags.leader_elect.then_some((client, config))
}

fn start(controller: &SurgeController) -> Vec<&'static str> {
    controller.context.tasks.spawn(act(controller.clone()));
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
        () = controller.context.shutdown.cancelled() => return,
        () = complete => {}
    }
    let queue = |name| WorkQueue::new(name, &controller.context.metrics, ExponentialBackoff::WRITES);
    let (deployments, pods) = (queue("surge"), queue("surge_registrations"));
    let SurgeController { context, workloads, turns } = controller.clone();
    let server = TurnServer { context, workloads, table: turns, queue: deployments.clone() };
    tokio::join!(controller.clone().run(deployments), register::run(controller.clone(), pods), server.run(),);
}
