//! What a controller is given.

use kube::Client;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cache::HostCaches;
use crate::events::EventRecorder;
use crate::lease::LeaseHandle;
use crate::metrics::Metrics;
use crate::skew::Skew;

/// Everything a controller needs of the world. Cheap to clone; clones share all of it.
#[derive(Clone)]
pub struct ControllerContext {
    /// For the host, and through it for our own kinds.
    pub client: Client,
    /// For evictions, each of which may take most of a minute inside the host: on a connection of their own, where they
    /// do not use up the requests that a host allows on one (100).
    pub evictions: Client,
    /// What the servers hold, as far as is known here.
    pub caches: HostCaches,
    /// For events.
    pub recorder: EventRecorder,
    /// Registry of metrics.
    pub metrics: Metrics,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
    /// Whether writes may be sent, and with which epoch.
    pub lease: LeaseHandle,
    /// What is known of the API server's clock.
    pub skew: Skew,
    /// Tasks that are waited for at shutdown.
    pub tasks: TaskTracker,
}

impl ControllerContext {
    /// Whether a write to the host may be sent now.
    pub fn may_write(&self) -> bool {
        self.lease.is_valid()
    }
}
