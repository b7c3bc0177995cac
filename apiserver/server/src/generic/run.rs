//! A server's run: its tasks, the checks that make it ready, and the order of a shutdown: unready at the first signal, then
//! a delay until load balancers have noticed, then the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drydock_serving::serve::{self, Bounds};
use drydock_storage::retention::{self, COMPACTION_INTERVAL};
use drydock_storage::storage::Storage;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, info_span};

use super::{Options, Server, trust};
use crate::admission::namespace_lifecycle::Namespaces;

impl Server {
    /// Serves until SIGTERM or SIGINT.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let shutdown = Shutdown::default();
        self.add_checks(&shutdown);
        let (backend, stop) = (self.backend.clone(), shutdown.now.clone());
        tokio::spawn(async move { retention::compact(backend.as_ref(), COMPACTION_INTERVAL, stop).await });
        tokio::spawn(trust::follow_files(self.trusted.clone(), self.options.trust.clone()));
        tokio::spawn(self.trusted.clone().follow(self.client.clone()));
        tokio::spawn(shutdown.clone().on_signal(self.options.shutdown_delay));
        self.announce();
        let audit = self.audit.clone();
        let connections_per_address = self.options.max_connections_per_address;
        let bounds = Bounds { connections_per_address, ..Bounds::default() };
        let (listener, tls, mux) = self.assemble(&shutdown)?;
        let responses = mux.chain.responses.clone();
        let mux = Arc::new(mux);
        let look_after = async move { responses.look_after().await };
        // These tasks run until the last connection has ended, which may be long after `shutdown.now`.
        let _sweeper = AbortOnDropHandle::new(tokio::spawn(look_after.instrument(info_span!("sweeper"))));
        let _reviews = AbortOnDropHandle::new(tokio::spawn(mux.clone().review_streams()));
        serve::serve(listener, tls, mux, shutdown.now, bounds).await;
        if let Some(audit) = audit {
            audit.flush().await;
        }
        tracing::info!("stopped");
        Ok(())
    }

    fn add_checks(&mut self, shutdown: &Shutdown) {
        let (trusted, namespaces) = (self.trusted.clone(), self.namespaces.clone());
        let (caches, shutdown) = (self.caches.clone(), shutdown.clone());
        self.ready_when("storage", "a cache is not filled", move || {
            caches.iter().all(|(_, cache)| cache.ready())
        });
        let unread = "not read from the host";
        self.ready_when("authentication-config", unread, move || trusted.is_ready());
        self.ready_when("namespaces", unread, move || namespaces.ready());
        self.ready_when("shutdown", "shutting down", move || !shutdown.is_unready());
    }

    fn announce(&self) {
        let Options { identity, address, storage, .. } = &self.options;
        tracing::info!(%address, storage = storage.name(), version = identity.version, "{} serves", identity.title);
    }
}

/// How far the shutdown has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Shutdown {
    unready: Arc<AtomicBool>,
    /// Nothing new begins once this is cancelled.
    pub(super) now: CancellationToken,
}

impl Shutdown {
    /// Whether the server is to be unready.
    pub(super) fn is_unready(&self) -> bool {
        self.unready.load(Ordering::Relaxed)
    }

    /// Waits for SIGTERM or SIGINT, then shuts down in order.
    pub(super) async fn on_signal(self, delay: Duration) {
        let (Ok(mut terminate), Ok(mut interrupt)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return tracing::error!("signals cannot be listened to");
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down: unready, then no new connections, then what is in flight ends");
        self.unready.store(true, Ordering::Relaxed);
        tokio::time::sleep(delay).await;
        self.now.cancel();
    }
}
