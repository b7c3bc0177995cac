//! What is mounted: resources by group, version and name, and the documents that describe them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_storage::storage::Storage;
use http::Response;
use tokio_util::sync::CancellationToken;

use crate::admission::{Admission, Warnings};
use crate::encode;
use crate::request::Request;
use crate::request_info::{RequestInfo, Verb};
use crate::verbs::{self, Call, CreateAuthorizer};

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
    /// Who may create by applying.
    authorizer: Option<Arc<dyn CreateAuthorizer>>,
}

impl ApiGroup {
    /// Mounts `resources`.
    pub fn new(resources: Vec<Resource>) -> Self {
        let keyed = resources.into_iter().map(|r| {
            let n = r.kind.names();
            ((n.group.to_owned(), n.version.to_owned(), n.plural.to_owned()), Arc::new(r))
        });
        Self { resources: keyed.collect(), shutdown: CancellationToken::new(), authorizer: None }
    }

    /// Ends running watches when `shutdown` is cancelled.
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: CancellationToken) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Decides whether an apply may create; without it, an apply that finds nothing is refused.
    #[must_use]
    pub fn with_authorizer(mut self, authorizer: Arc<dyn CreateAuthorizer>) -> Self {
        self.authorizer = Some(authorizer);
        self
    }

    /// Answers a request; errors are answered too.
    pub async fn handle(&self, request: Request) -> Response<Body> {
        let (headers, query) = (request.headers.clone(), request.info.query.clone());
        let warnings = Arc::new(Warnings::default());
        let answer = self.answer(request, warnings.clone()).await;
        let mut response = answer.unwrap_or_else(|error| encode::error(&error, &headers, &query));
        crate::warnings::write(response.headers_mut(), &warnings.take());
        response
    }

    async fn answer(&self, request: Request, warnings: Arc<Warnings>) -> Result<Response<Body>, ApiError> {
        if !request.info.is_resource {
            return Err(ApiError::unknown_path());
        }
        let Request { method, info, user, headers, body, deadline, .. } = request;
        let resource = self.find(&info)?.clone();
        let now = jiff::Timestamp::now();
        let (authorizer, shutdown) = (self.authorizer.clone(), self.shutdown.clone());
        let call = Call { resource, info, user, headers, deadline, warnings, now, authorizer, shutdown };
        if !verbs::is_served(&call, &method) {
            return Err(ApiError::method_not_allowed());
        }
        verbs::serve(&call, body).await
    }

    /// The resource that a URL names; 404 if there is none.
    fn find(&self, info: &RequestInfo) -> Result<&Arc<Resource>, ApiError> {
        let key = (info.group.clone(), info.version.clone(), info.resource.clone());
        let resource = self.resources.get(&key).ok_or_else(ApiError::unknown_path)?;
        let namespaced = resource.kind.names().namespaced;
        let named_in_path = !info.name.is_empty() && !matches!(info.verb, Verb::List | Verb::Watch);
        let misplaced =
            if namespaced { info.namespace.is_empty() && named_in_path } else { !info.namespace.is_empty() };
        let unknown = !info.rest.is_empty() || !matches!(info.subresource.as_str(), "" | "status");
        if misplaced || unknown { Err(ApiError::unknown_path()) } else { Ok(resource) }
    }
}
