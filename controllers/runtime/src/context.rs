//! What a controller is given: caches, events, metrics, the lease, and clients of the host, which lead to our own kinds as
//! well: by the host's aggregator, or past it.
//!
//! A client sends a request once. Controllers retry, through their queues, because they know what an answer
//! means: the 429 of an eviction is a result, and after a 504 the write may have been made. They decide
//! again, from what the caches hold then; each write carries the UID or the resourceVersion that it was
//! decided on.

use drydock_serving::tasks::ProgramTasks;
use kube::Client;

use crate::cache::{Cacheable, HostCaches};
use crate::clock::Clock;
use crate::error::CallError;
use crate::events::EventRecorder;
use crate::lease::LeaseHandle;
use crate::metrics::Metrics;
use crate::skew::Skew;

/// Everything that a controller needs. Cheap to clone; clones share all of it.
#[derive(Clone)]
pub struct ControllerContext {
    /// For the host and for our own kinds.
    pub client: Client,
    /// For evictions, each of which may take most of a minute inside the host: on a connection of their own, where they
    /// do not use up the requests that a host allows on one (100).
    pub evictions: Client,
    /// Local copies of what the API servers hold.
    pub caches: HostCaches,
    /// For events.
    pub recorder: EventRecorder,
    /// Registry of metrics.
    pub metrics: Metrics,
    /// Whether writes may be sent, and in which term of the lease.
    pub lease: LeaseHandle,
    /// Our clocks.
    pub clock: Clock,
    /// What is known of the API server's clock.
    pub skew: Skew,
    /// What runs until the process is to end, and is waited for then.
    pub tasks: ProgramTasks,
}

impl ControllerContext {
    /// What a program has at its start: caches that nothing feeds yet, the system's clock, and events of `component`.
    /// Requests of `client` and `evictions` are sent as they are:
    /// [`with_term`](crate::lease::with_term) adds the term of the lease.
    pub fn new(
        component: &'static str,
        client: Client,
        evictions: Client,
        lease: LeaseHandle,
        metrics: Metrics,
        tasks: ProgramTasks,
    ) -> Self {
        let clock = Clock::SYSTEM;
        let recorder = EventRecorder::start(client.clone(), component, &metrics, clock, &tasks);
        let (caches, skew) = (HostCaches::default(), Skew::default());
        Self { client, evictions, caches, recorder, metrics, lease, clock, skew, tasks }
    }

    /// Whether a write to the host may be sent now.
    pub fn may_write(&self) -> bool {
        self.lease.is_valid()
    }

    /// Publishes an event if the clocks are too far apart. To be called when the API server refused a write
    /// with times to `object` as invalid.
    pub async fn report_skew<T: Cacheable>(&self, object: &T) {
        self.skew.report(&self.client, &self.recorder, self.clock, object).await;
    }

    /// Fails if no write may be sent now.
    pub fn check_lease(&self) -> Result<(), CallError> {
        if self.may_write() { Ok(()) } else { Err(CallError::NoLease) }
    }
}
