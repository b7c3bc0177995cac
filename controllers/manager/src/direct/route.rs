//! Whether requests go straight to the API server: what the APIService says, and how the requests before went.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use drydock_api::API_VERSION;
use drydock_runtime::metrics::Metrics;
use drydock_serving::host::service_client;
use drydock_serving::tasks::ProgramTasks;
use kube::{Api, Client};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use super::api_service::{self, NoServer, VerifiedServer};
use super::breaker::{Attempt, CircuitBreaker};
use super::failure::DirectFailure;

/// A failure is logged once in this time, unless the reason is another one.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Knows whether requests go straight to the API server. All clients of the process share it.
pub struct DirectRoute {
    /// Reads the APIService and its Service.
    host: Client,
    token_file: PathBuf,
    state: Mutex<State>,
    /// Whether the APIService has been read.
    known: watch::Sender<bool>,
    through_aggregator: Family<FallbackLabels, Counter>,
}

struct State {
    server: Result<Arc<VerifiedServer>, NoServer>,
    breaker: CircuitBreaker,
    /// The failure that opened the breaker.
    failure: Option<DirectFailure>,
    logged: LoggedFailures,
}

/// Which failures the log has told of.
#[derive(Default)]
struct LoggedFailures {
    /// The last one by its reason, and when.
    last: Option<(&'static str, Instant)>,
    /// Whether its end is still to be told.
    is_open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FallbackLabels {
    reason: &'static str,
}

impl DirectRoute {
    /// Follows the APIService through `host` until shutdown. Requests carry the token in `token_file`.
    pub fn follow(host: Client, token_file: PathBuf, metrics: &Metrics, tasks: &ProgramTasks) -> Arc<Self> {
        let route = Arc::new(Self::unknown(host.clone(), token_file, metrics));
        let follower = route.clone();
        let follow = api_service::follow(Api::all(host), move |found| follower.set(found));
        tasks.spawn_endless("reflector of the APIService", follow);
        route
    }

    /// The route before the APIService has been read.
    pub(super) fn unknown(host: Client, token_file: PathBuf, metrics: &Metrics) -> Self {
        let state = State::new(Err(NoServer::Unread));
        let through_aggregator = metrics.add(
            "drydock_apiservice_fallback",
            "Requests for our kinds that went through the host's aggregator, by why not straight to the API server: \
             connect, tls, unavailable (503), no_answer, apiservice (it names no server that can be verified)",
        );
        Self {
            host,
            token_file,
            state: Mutex::new(state),
            known: watch::channel(false).0,
            through_aggregator,
        }
    }

    /// Waits until the APIService has been read.
    pub async fn known(&self) {
        // The sender lives as long as this does.
        let _ = self.known.subscribe().wait_for(|known| *known).await;
    }

    /// Takes what the APIService says from now on.
    pub(super) fn set(&self, found: Result<VerifiedServer, NoServer>) {
        let mut state = self.state.lock();
        if state.is_new(&found) {
            match &found {
                Ok(VerifiedServer { service, .. }) => {
                    info!("requests for {API_VERSION} go straight to {}", service.url());
                }
                Err(why) => warn!("requests for {API_VERSION} go through the host's aggregator: {why}"),
            }
            *state = State::new(found.map(Arc::new));
        }
        drop(state);
        self.known.send_replace(true);
    }

    /// Returns where a request is to be sent; none if it has to go through the aggregator, which is counted then.
    pub(super) fn enter(&self, now: Instant) -> Option<(Attempt, Arc<VerifiedServer>)> {
        let mut state = self.state.lock();
        let server = state.server.as_ref().ok().cloned();
        let entered = server.and_then(|server| Some((state.breaker.enter(now)?, server)));
        if entered.is_none() {
            self.count(state.failure.as_ref().map_or(NoServer::NAME, DirectFailure::name));
        }
        entered
    }

    /// Records that the API server answered a request.
    pub(super) fn succeeded(&self, attempt: Attempt, server: &Arc<VerifiedServer>) {
        let mut state = self.state.lock();
        if !state.is_of(server) || !state.breaker.succeeded(attempt) {
            return;
        }
        state.failure = None;
        if std::mem::take(&mut state.logged.is_open) {
            info!("requests for {API_VERSION} go straight to {} again", server.service.url());
        }
    }

    /// Records that a request could not be sent, was answered 503, or was not answered.
    pub(super) fn failed(
        &self,
        attempt: Attempt,
        server: &Arc<VerifiedServer>,
        failure: &DirectFailure,
        now: Instant,
    ) {
        let mut state = self.state.lock();
        if !state.is_of(server) {
            return;
        }
        let Some(pause) = state.breaker.failed(attempt, now) else { return };
        if state.logged.must_log(failure.name(), now) {
            let url = server.service.url();
            warn!(
                "{url}: {failure}; requests for {API_VERSION} go through the host's aggregator, and this is tried again \
                 after {pause:?}"
            );
        }
        state.failure = Some(failure.clone());
    }

    /// Counts a request that goes through the aggregator.
    pub(super) fn count(&self, reason: &'static str) {
        self.through_aggregator.get_or_create(&FallbackLabels { reason }).inc();
    }

    /// Returns a client of the API server at its Service.
    ///
    /// # Errors
    /// The bundle or the token cannot be read.
    pub(super) fn client(&self, server: &VerifiedServer) -> anyhow::Result<Client> {
        service_client(&self.host, &server.service, &server.ca_bundle, &self.token_file)
    }
}

impl State {
    fn new(server: Result<Arc<VerifiedServer>, NoServer>) -> Self {
        let (breaker, logged) = (CircuitBreaker::default(), LoggedFailures::default());
        Self { server, breaker, failure: None, logged }
    }

    /// Whether the server is the present one: a request to one before it says nothing about this one.
    fn is_of(&self, server: &Arc<VerifiedServer>) -> bool {
        self.server.as_ref().is_ok_and(|present| Arc::ptr_eq(present, server))
    }

    fn is_new(&self, found: &Result<VerifiedServer, NoServer>) -> bool {
        match (&self.server, found) {
            (Ok(old), Ok(new)) => **old != *new,
            (Err(old), Err(new)) => old != new,
            _ => true,
        }
    }
}

impl LoggedFailures {
    /// Whether the log is to tell of a failure: of one for another reason than the last, and once a minute.
    fn must_log(&mut self, reason: &'static str, now: Instant) -> bool {
        let is_news = self
            .last
            .is_none_or(|(last, at)| last != reason || now.saturating_duration_since(at) >= LOG_INTERVAL);
        if is_news {
            *self = Self { last: Some((reason, now)), is_open: true };
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_that_fails_again_and_again_is_logged_once_a_minute_and_for_each_new_reason() {
        let (mut logged, start) = (LoggedFailures::default(), Instant::now());
        let mut must = |reason, second| logged.must_log(reason, start + Duration::from_secs(second));
        assert_eq!([must("connect", 0), must("connect", 59), must("connect", 60)], [true, false, true]);
        assert_eq!([must("tls", 61), must("tls", 62), must("connect", 63)], [true, false, true]);
    }
}
