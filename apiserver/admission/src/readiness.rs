//! Whether the host's configurations have been read: no write is admitted before (k8s.io/apiserver pkg/admission,
//! Handler.WaitForReady).

use std::time::Duration;

use tokio::sync::watch;

/// Longest time that a request waits for the first list from the host.
const WAIT: Duration = Duration::from_secs(10);

/// Whether the configurations have been read.
#[derive(Clone)]
pub struct Readiness(watch::Receiver<bool>);

impl Readiness {
    /// Creates the readiness from the receiver of a reflector.
    pub fn new(told: watch::Receiver<bool>) -> Self {
        Self(told)
    }

    /// Whether the configurations have been read.
    pub fn is_ready(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until they have been read, at most as long as a request may wait.
    pub async fn wait(&self) {
        let mut ready = self.0.clone();
        let waited = tokio::time::timeout(WAIT, ready.wait_for(|ready| *ready)).await;
        if waited.is_err() {
            tracing::warn!("a write is refused: the host's admission configurations have not been read yet");
        }
    }
}
