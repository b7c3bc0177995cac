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
use tracing::{Instrument, info_span};

use super::{Options, Server, trust};
use crate::admission::namespace_lifecycle::Namespaces;

impl Server {
    /// Serves until SIGTERM or SIGINT.
    ///
    /// # Errors
    /// The server cannot serve, or one of its tasks has ended, which the error names.
    pub async fn run(mut self) -> anyhow::Result<()> {
        let (shutdown, tasks) = (Shutdown::default(), self.tasks.clone());
        self.add_checks(&shutdown);
        let (backend, stop) = (self.backend.clone(), tasks.shutdown().clone());
        tasks.spawn("compaction", async move {
            retention::compact(backend.as_ref(), COMPACTION_INTERVAL, stop).await;
        });
        tasks
            .spawn_endless("CA files", trust::follow_files(self.trusted.clone(), self.options.trust.clone()));
        tasks.spawn_endless("authentication-config", self.trusted.clone().follow(self.client.clone()));
        tokio::spawn(shutdown.clone().on_signal(self.options.shutdown_delay));
        self.announce();
        let audit = self.audit.clone();
        let connections_per_address = self.options.max_connections_per_address;
        let bounds = Bounds { connections_per_address, ..Bounds::default() };
        let (listener, tls, mux) = self.assemble(&shutdown)?;
        let (responses, mux) = (mux.chain.responses.clone(), Arc::new(mux));
        let look_after = async move { responses.look_after().await };
        tasks.spawn_endless("sweeper", look_after.instrument(info_span!("sweeper")));
        if mux.grpc.is_some() {
            tasks.spawn_endless("reviews of streams", mux.clone().review_streams());
        }
        let serving = async {
            serve::serve(listener, tls, mux, shutdown.now, bounds).await;
            Ok(())
        };
        let served = tasks.run(serving).await;
        // They run until the last connection has ended, which may be long after `shutdown.now`.
        tasks.shutdown().cancel();
        if let Some(audit) = audit {
            audit.flush().await;
        }
        served?;
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
        let unusable = "not read from the host, or refused: the log says why";
        self.ready_when("authentication-config", unusable, move || trusted.is_ready());
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
        tracing::info!(
            "shutting down: reporting unready, then refusing connections, then draining requests in flight"
        );
        self.unready.store(true, Ordering::Relaxed);
        tokio::time::sleep(delay).await;
        self.now.cancel();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::net::{Ipv4Addr, TcpListener};

    use drydock_storage_sqlite::DataDirectory;
    use serde_json::json;

    use super::*;
    use crate::api_group::Identity;

    async fn broken() {
        panic!("broken");
    }

    /// A server went on for ever with the CAs that it had when the task that follows them panicked.
    #[tokio::test]
    async fn a_server_ends_when_one_of_its_tasks_panics_and_says_which() {
        let dir = tempfile::tempdir().unwrap();
        // Nothing listens on the port of a listener that is gone.
        let absent = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{absent}")}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let kubeconfig = dir.path().join("kubeconfig");
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let storage = DataDirectory { folder: dir.path().to_owned(), quota: None };
        let identity = Identity { title: "A server", version: "1" };
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let mut options = Options::new(identity, address, dir.path().to_owned(), Arc::new(storage));
        options.host.kubeconfig = Some(kubeconfig);
        let server = Server::build(options).await.unwrap();
        server.tasks().spawn_endless("one that breaks", broken());
        let error = server.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"one that breaks\" panicked");
    }
}
