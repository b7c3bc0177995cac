//! What is mounted: resources by group, version and name, and the documents that describe them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::kind::Kind;
use drydock_storage::storage::Storage;
use http::Response;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::request::Request;

/// One resource that is served, with its status subresource.
pub struct Resource {
    /// Names, schema and strategy.
    pub kind: Arc<dyn Kind>,
    /// Where its objects are.
    pub storage: Arc<dyn Storage>,
    /// Checks on writes, in order.
    pub admission: Vec<Arc<dyn Admission>>,
}

/// Everything that is mounted below `/apis`, and `/openapi` and `/version`.
pub struct ApiGroup {
    resources: BTreeMap<(String, String, String), Arc<Resource>>,
    /// Ends watches, cleanly.
    shutdown: CancellationToken,
}

impl ApiGroup {
    /// Mounts `resources`.
    pub fn new(resources: Vec<Resource>) -> Self {
        let keyed = resources.into_iter().map(|r| {
            let n = r.kind.names();
            ((n.group.to_owned(), n.version.to_owned(), n.plural.to_owned()), Arc::new(r))
        });
        Self { resources: keyed.collect(), shutdown: CancellationToken::new() }
    }

    /// Ends running watches when `shutdown` is cancelled.
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: CancellationToken) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Answers a request; errors are answered too.
    pub async fn handle(&self, request: Request) -> Response<Body> {
        let _ = (&self.resources, &self.shutdown, request);
        let mut response = Response::new(Body::empty());
        *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        response
    }
}
