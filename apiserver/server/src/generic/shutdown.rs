//! The order of a shutdown: unready at the first signal, then a delay until load balancers have noticed, then the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

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
