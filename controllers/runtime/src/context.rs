//! What a controller is given: caches, events, metrics, the lease, and clients of the host, which lead to our own kinds as
//! well: by the host's aggregator, or past it.
//!
//! A client sends a request once. Controllers retry, through their queues, because they know what an answer
//! means: the 429 of an eviction is a result, and after a 504 the write may have been made. They decide
//! again, from what the caches hold then; each write carries the UID or the resourceVersion that it was
//! decided on.

use std::time::Duration;

use drydock_api::FENCING_TOKEN_HEADER;
use http::{HeaderValue, Method, Request};
use kube::Client;
use kube::client::Body;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::service_fn;
use tracing::{debug, info, warn};

use crate::cache::{Cacheable, HostCaches};
use crate::clock::Clock;
use crate::error::CallError;
use crate::events::EventRecorder;
use crate::lease::LeaseHandle;
use crate::metrics::Metrics;
use crate::skew::Skew;
use drydock_logging::with_causes;

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
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
    /// Whether writes may be sent, and in which term of the lease.
    pub lease: LeaseHandle,
    /// Our clocks.
    pub clock: Clock,
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

/// Returns a client whose writes carry the number of the lease's term as fencing token, once one has been acquired: our
/// API server refuses the writes of a term that has ended.
pub fn with_term(client: Client, lease: LeaseHandle) -> Client {
    let namespace = client.default_namespace().to_owned();
    let stamped = service_fn(move |mut request: Request<Body>| {
        if let Some(term) = lease.term().filter(|_| request.method() != Method::GET) {
            request.headers_mut().insert(FENCING_TOKEN_HEADER, HeaderValue::from(term));
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(stamped, namespace)
}

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

#[cfg(test)]
mod tests {
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
