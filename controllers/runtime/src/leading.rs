//! The life of a program that acts only while it leads: it waits for the API server and for its Lease, starts its
//! controllers, and stops them in order on a signal, before it gives the Lease back.

use std::time::Duration;

use drydock_logging::with_causes;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::context::ControllerContext;
use crate::lease::{Elector, LeadershipEnd, LeaseConfig};

/// How long work under way may take to finish at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(25);

/// Waits until the API server answers. `false` if stopped before.
pub async fn wait_for_server(client: &Client, stop: &CancellationToken) -> bool {
    let (mut delay, mut is_logged) = (Duration::from_millis(250), false);
    loop {
        let answer = tokio::select! {
            () = stop.cancelled() => return false,
            answer = tokio::time::timeout(Duration::from_secs(10), client.apiserver_version()) => answer,
        };
        match answer {
            Ok(Ok(version)) => {
                info!(version = version.git_version, "API server answers");
                return true;
            }
            Ok(Err(error)) => {
                debug!(error = with_causes(&error), retry_in = ?delay, "waiting for the API server")
            }
            // The server accepts connections and does not answer. If it accepts none, the client logs that.
            Err(_) if !std::mem::replace(&mut is_logged, true) => {
                warn!("the API server accepts connections but does not answer; trying again");
            }
            Err(_) => debug!(retry_in = ?delay, "waiting for the API server: no answer in time"),
        }
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(delay) => {}
        }
        delay = (delay * 2).min(Duration::from_secs(10));
    }
}

/// Waits for the lease, if there is one, and then calls `start`, which starts the controllers as tasks of the context and
/// returns their names. Returns when they have stopped, or as soon as the lease is lost: then the process must end at
/// once, because another one may act by now.
pub async fn lead(
    context: &ControllerContext,
    lease: Option<(&Client, LeaseConfig)>,
    start: impl FnOnce() -> Vec<&'static str>,
) -> LeadershipEnd {
    let mut elector = lease.map(|(client, config)| {
        Elector::new(client, config, context.lease.clone(), context.recorder.clone())
    });
    let may_act = match &mut elector {
        Some(candidate) => candidate.acquire(context.tasks.shutdown()).await,
        None => true,
    };
    let end = if may_act { work(context, elector, start).await } else { LeadershipEnd::Stopped };
    if end == LeadershipEnd::Stopped {
        info!("stopped");
    }
    end
}

/// The lease is kept until the controllers have stopped.
async fn work(
    context: &ControllerContext,
    elector: Option<Elector>,
    start: impl FnOnce() -> Vec<&'static str>,
) -> LeadershipEnd {
    // Outside of the macro, which evaluates nothing when its line is not logged.
    let controllers = start();
    info!(controllers = controllers.join(", "), "running");
    let give_back = CancellationToken::new();
    let hold = hold(elector, give_back.clone());
    let stopped = async {
        context.tasks.shutdown().cancelled().await;
        info!("stopping");
        if tokio::time::timeout(SHUTDOWN_GRACE, context.tasks.finished()).await.is_err() {
            warn!("some work did not finish in time");
        }
        give_back.cancel();
        std::future::pending().await
    };
    tokio::select! {
        end = hold => end,
        () = stopped => LeadershipEnd::Stopped,
    }
}

async fn hold(elector: Option<Elector>, give_back: CancellationToken) -> LeadershipEnd {
    match elector {
        Some(mut elector) => elector.hold(&give_back).await,
        None => {
            give_back.cancelled().await;
            LeadershipEnd::Stopped
        }
    }
}

/// Cancels `shutdown` at SIGTERM or SIGINT.
pub fn stop_on_signal(shutdown: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        shutdown.cancel();
    });
    Ok(())
}

/// Who a process is as a candidate: the host's name and a random part, as kube-controller-manager makes it.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}_{}", host.trim(), uuid::Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use http::Request;
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    /// A server that accepted connections and did not answer was a warning at each attempt, forever.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_silent_is_logged_once() {
        let silent = service_fn(|_: Request<Body>| {
            std::future::pending::<Result<http::Response<Body>, kube::Error>>()
        });
        let (log, _guard) = drydock_logging::testing::log("warn");
        let (client, stop) = (Client::new(silent, "default"), CancellationToken::new());
        let waits = wait_for_server(&client, &stop);
        assert!(tokio::time::timeout(Duration::from_secs(600), waits).await.is_err());
        assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    }
}
