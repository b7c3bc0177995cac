//! Whether the host's configurations are known: until then no write is let through (k8s.io/apiserver pkg/admission,
//! Handler.WaitForReady).

use std::time::Duration;

use tokio::sync::watch;

/// Longest wait of a request for the first list from the host.
const WAIT: Duration = Duration::from_secs(10);

/// Whether they are known.
#[derive(Clone)]
pub struct Readiness(watch::Receiver<bool>);

impl Readiness {
    /// As it is told.
    pub fn new(told: watch::Receiver<bool>) -> Self {
        Self(told)
    }

    /// Whether they are.
    pub fn is_ready(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until they are, for as long as a request may.
    pub async fn wait(&self) {
        let mut ready = self.0.clone();
        let waited = tokio::time::timeout(WAIT, ready.wait_for(|ready| *ready)).await;
        if waited.is_err() {
            tracing::warn!("a write is refused: the host's admission configurations have not been read yet");
        }
    }
}
