//! A server's run: its tasks, the checks that make it ready, and the order of a shutdown: unready at the first signal, then
//! a delay until load balancers have noticed, then the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drydock_serving::serve::{self, Bounds};
use drydock_storage::retention::{self, COMPACTION_INTERVAL};
use drydock_storage::storage::Storage;
use parking_lot::Mutex;
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
        let tasks = Arc::new(Tasks::default());
        tasks.spawn("CA files", trust::follow_files(self.trusted.clone(), self.options.trust.clone()));
        tasks.spawn("authentication-config", self.trusted.clone().follow(self.client.clone()));
        // The tasks end with this function, and the check does not keep them.
        let watched = Arc::downgrade(&tasks);
        let ended = move || watched.upgrade().and_then(|tasks| tasks.ended());
        self.live.push(("background-tasks", Arc::new(move || ended().map_or(Ok(()), Err))));
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
        if mux.grpc.is_some() {
            tasks.spawn("reviews of streams", mux.clone().review_streams());
        }
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

/// Tasks without which the server does not do what it should. They end when this is dropped.
#[derive(Default)]
struct Tasks(Mutex<Vec<(&'static str, AbortOnDropHandle<()>)>>);

impl Tasks {
    fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().push((name, AbortOnDropHandle::new(tokio::spawn(task))));
    }

    /// Which task has ended, if one has: none does but by a panic, and only a restart brings it back.
    fn ended(&self) -> Option<String> {
        let tasks = self.0.lock();
        let ended = tasks.iter().find(|(_, task)| task.is_finished());
        ended.map(|(name, _)| format!("a background task has ended: {name}"))
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
    use super::*;

    /// A server went on for ever with the CAs that it had when the task that follows them panicked.
    #[tokio::test]
    async fn a_task_that_panics_is_named() {
        let tasks = Tasks::default();
        tasks.spawn("one that goes on", std::future::pending());
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        tasks.spawn("one that ends", async {
            let _ = ended.await;
        });
        assert_eq!(tasks.ended(), None);
        let _ = end.send(());
        while tasks.ended().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.ended().as_deref(), Some("a background task has ended: one that ends"));
    }
}
