//! Sends each request by its route.

use std::sync::Arc;

use bytes::Bytes;
use drydock_logging::NoAnswer;
use drydock_runtime::cache::is_of_own_kinds;
use http::request::Parts;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::service_fn;

use super::api_service::VerifiedServer;
use super::breaker::{Attempt, TRIAL};
use super::failure::DirectFailure;
use super::route::DirectRoute;

impl DirectRoute {
    /// Returns a client whose requests for our kinds go straight to the API server, over a connection of its own. All
    /// others, and those for our kinds while that fails, go to `host`.
    pub fn over(self: &Arc<Self>, host: Client) -> Client {
        let namespace = host.default_namespace().to_owned();
        let router = Arc::new(Router { route: self.clone(), host, straight: Mutex::default() });
        let service = service_fn(move |request: Request<Body>| {
            let router = router.clone();
            async move { router.send(request).await }
        });
        Client::new(service, namespace)
    }
}

/// Sends the requests of one client.
struct Router {
    route: Arc<DirectRoute>,
    host: Client,
    /// The client of the server that was used last.
    straight: Mutex<Option<(Arc<VerifiedServer>, Client)>>,
}

impl Router {
    async fn send(&self, request: Request<Body>) -> kube::Result<Response<Body>> {
        if !is_of_own_kinds(request.uri().path()) {
            return self.host.send(request).await;
        }
        let Some((attempt, server)) = self.route.enter(Instant::now()) else {
            return self.host.send(request).await;
        };
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let result = match self.straight(&server) {
            Ok(client) => send_within(attempt, &client, assembled(&parts, &body)).await,
            Err(failure) => {
                return self.fall_back(attempt, &server, &failure, assembled(&parts, &body)).await;
            }
        };
        match DirectFailure::of(&result) {
            Some(failure) if failure.may_repeat(&parts, &body) => {
                self.fall_back(attempt, &server, &failure, assembled(&parts, &body)).await
            }
            Some(failure) => {
                self.route.failed(attempt, &server, &failure, Instant::now());
                result
            }
            None => {
                if result.is_ok() {
                    self.route.succeeded(attempt, &server);
                }
                result
            }
        }
    }

    async fn fall_back(
        &self,
        attempt: Attempt,
        server: &Arc<VerifiedServer>,
        failure: &DirectFailure,
        request: Request<Body>,
    ) -> kube::Result<Response<Body>> {
        self.route.failed(attempt, server, failure, Instant::now());
        self.route.count(failure.name());
        self.host.send(request).await
    }

    /// The client of this server. A connection to another one lasts until its last request has ended.
    fn straight(&self, server: &Arc<VerifiedServer>) -> Result<Client, DirectFailure> {
        let mut straight = self.straight.lock();
        if let Some((_, client)) = straight.as_ref().filter(|(of, _)| Arc::ptr_eq(of, server)) {
            return Ok(client.clone());
        }
        let client = self.route.client(server);
        let client = client.map_err(|error| DirectFailure::NoClient(format!("{error:#}")))?;
        *straight = Some((server.clone(), client.clone()));
        Ok(client)
    }
}

/// Sends a request. One that tries a route that has failed is not waited for any more when another one may try.
async fn send_within(
    attempt: Attempt,
    client: &Client,
    request: Request<Body>,
) -> kube::Result<Response<Body>> {
    let Some(trial_ends) = attempt.trial_ends else { return client.send(request).await };
    let words = format!("{} {}", request.method(), request.uri().path());
    tokio::time::timeout_at(trial_ends, client.send(request)).await.unwrap_or_else(|_| {
        let silent = NoAnswer { request: words, waited: TRIAL, has_begun: false };
        Err(kube::Error::Service(Box::new(silent)))
    })
}

fn assembled(parts: &Parts, body: &Bytes) -> Request<Body> {
    Request::from_parts(parts.clone(), Body::from(body.clone()))
}

#[cfg(test)]
#[path = "router_tests.rs"]
mod tests;
