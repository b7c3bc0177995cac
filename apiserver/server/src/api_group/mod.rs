//! What is mounted: resources by group, version and name, and the documents that describe them.

pub mod discovery;
mod identity;
pub mod openapi;
pub mod request;

use std::sync::Arc;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_machinery::openapi::OpenApi;
use drydock_storage::cache::QuotaUsage;
use drydock_storage::fence::FenceError;
use drydock_storage::storage::{ListOptions, ReadAt, Scope, Storage};
use http::{HeaderMap, Response};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::admission::{Admission, Warnings};
use crate::api_group::discovery::Discovery;
pub use crate::api_group::identity::Identity;
use crate::api_group::request::Request;
use crate::audit::Trail;
use crate::flow_control::Listed;
use crate::flow_control::fair_budget::FairBudget;
use crate::flow_control::offload::{LARGE_BODY, Offload};
use crate::handlers::fence::{Refusal, Term, Terms};
use crate::handlers::{self, Call, CreateAuthorizer, LIST_ROOM, ReplacedBytes};
use crate::metrics::WatchEvents;
use crate::request::info::{RequestInfo, Verb};
use crate::watch::Recent;
use crate::wire::body::{self, Read};
use crate::wire::encode;
use crate::wire::negotiate;

/// One resource that is served, with its status subresource.
pub struct Resource {
    /// Names, schema and strategy.
    pub kind: Arc<dyn Kind>,
    /// Where its objects are.
    pub storage: Arc<dyn Storage>,
    /// Checks on writes, in order.
    pub admission: Vec<Arc<dyn Admission>>,
    /// How much of the kind's quota is used, of a kind that has one.
    pub usage: Option<Arc<QuotaUsage>>,
}

/// Everything that is mounted below `/apis`, and `/openapi` and `/version`.
pub struct ApiGroup {
    resources: Vec<Arc<Resource>>,
    /// Ends watches, cleanly.
    shutdown: CancellationToken,
    /// Who may create by applying.
    authorizer: Option<Arc<dyn CreateAuthorizer>>,
    /// Whose terms are over.
    terms: Option<Terms>,
    discovery: Discovery,
    openapi: OpenApi,
    version: Value,
    watch_events: WatchEvents,
    recent: Arc<Recent>,
    /// What each flow has put into the history lately.
    replaced_bytes: Arc<ReplacedBytes>,
    /// Of all bodies in flight.
    bodies: Arc<FairBudget>,
    /// Of the objects that lists have read from the store.
    lists: Arc<FairBudget>,
    offload: Offload,
}

impl ApiGroup {
    /// Mounts `resources`.
    pub fn new(resources: Vec<Resource>) -> Self {
        let identity = Identity { title: "API", version: env!("CARGO_PKG_VERSION") };
        let kinds: Vec<&dyn Kind> = resources.iter().map(|r| r.kind.as_ref()).collect();
        let discovery = Discovery::new(&kinds);
        let openapi = OpenApi::new(&kinds, identity.title, identity.version);
        Self {
            resources: resources.into_iter().map(Arc::new).collect(),
            shutdown: CancellationToken::new(),
            authorizer: None,
            terms: None,
            discovery,
            openapi,
            version: identity.info(),
            watch_events: WatchEvents::default(),
            recent: Arc::default(),
            replaced_bytes: Arc::default(),
            bodies: body::budget(),
            lists: handlers::list_budget(LIST_ROOM),
            offload: Offload::default(),
        }
    }

    /// Tells clients who this is.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity<'_>) -> Self {
        let kinds: Vec<&dyn Kind> = self.resources.iter().map(|r| r.kind.as_ref()).collect();
        self.openapi = OpenApi::new(&kinds, identity.title, identity.version);
        self.version = identity.info();
        self
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

    /// Refuses writes of terms that are over; without it, terms are not looked at.
    #[must_use]
    pub fn with_terms(mut self, terms: Terms) -> Self {
        self.terms = Some(terms);
        self
    }

    /// Counts the events of watches.
    #[must_use]
    pub fn with_watch_events(mut self, watch_events: WatchEvents) -> Self {
        self.watch_events = watch_events;
        self
    }

    /// So many bytes of objects may lists read from the store, and hold until they are sent.
    #[must_use]
    pub fn with_list_room(mut self, bytes: usize) -> Self {
        self.lists = handlers::list_budget(bytes);
        self
    }

    /// Whether a request's URL names a resource that is served, whatever the object.
    pub fn is_mounted(&self, info: &RequestInfo) -> bool {
        self.find(info).is_ok()
    }

    /// About how many bytes of objects a request looks at that lists these, counted no further than `enough`.
    pub fn listed_bytes(&self, info: &RequestInfo, listed: &Listed, enough: usize) -> usize {
        let Ok(resource) = self.find(info) else { return 0 };
        let prefix = if info.namespace.is_empty() { String::new() } else { format!("{}/", info.namespace) };
        let scope = Scope { prefix, single: false, matches: None };
        let options = ListOptions { at: ReadAt::Latest, limit: listed.limit, start: listed.start.clone() };
        resource.storage.listed_bytes(&scope, &options, enough)
    }

    /// Answers a request; errors are answered too.
    pub async fn handle(&self, request: Request) -> Response<Body> {
        if !request.info.is_resource {
            let answer = self.document(&request);
            return answer
                .unwrap_or_else(|error| refuse(&error, &request.headers, &request.info, &request.audit));
        }
        let resource = match self.find(&request.info) {
            Ok(resource) => resource.clone(),
            Err(error) => return refuse(&error, &request.headers, &request.info, &request.audit),
        };
        let Request { method, info, caller, user, level, headers, body, audit } = request;
        let mut call = Call {
            resource,
            info,
            caller,
            user,
            level,
            headers,
            audit,
            warnings: Arc::new(Warnings::default()),
            now: jiff::Timestamp::now(),
            authorizer: self.authorizer.clone(),
            shutdown: self.shutdown.clone(),
            watch_events: self.watch_events.clone(),
            recent: self.recent.clone(),
            replaced_bytes: self.replaced_bytes.clone(),
            lists: self.lists.clone(),
            term: None,
        };
        match self.admit(&mut call, &method, body).await {
            Ok(body) if body.len() > LARGE_BODY => self.serve_large(call, body).await,
            Ok(body) => answered(&call, handlers::serve(&call, &body).await),
            Err(error) => answered(&call, Err(error)),
        }
    }

    /// Reads the body of a request that is served.
    async fn admit(&self, call: &mut Call, method: &http::Method, body: Body) -> Result<Read, ApiError> {
        if !handlers::is_served(call, method) {
            return Err(ApiError::method_not_allowed());
        }
        call.term = self.term(call).await?;
        if !handlers::takes_body(&call.info.verb) {
            return Ok(Read::nothing());
        }
        body::read(body, self.bodies.holding(&call.user, call.level, call.caller.deadline())).await
    }

    /// Decoding, merging and validating a large body would hold up whoever shares the worker.
    async fn serve_large(&self, call: Call, body: Read) -> Response<Body> {
        let call = Arc::new(call);
        let of_request = call.clone();
        let request = async move { handlers::serve(&of_request, &body).await };
        let served = self.offload.run(&call.user, call.level, call.caller.deadline(), request).await;
        answered(&call, served.unwrap_or_else(Err))
    }

    /// The term of a write that names one; what only pretends to write begins none.
    async fn term(&self, call: &Call) -> Result<Option<Term>, ApiError> {
        let pretends = call.info.query.get("dryRun").is_some();
        let Some(terms) = self.terms.as_ref().filter(|_| call.info.verb.is_mutating() && !pretends) else {
            return Ok(None);
        };
        let admitted = terms.admit(call.level, &call.user, &call.headers).await;
        admitted.map_err(|refusal| match refusal {
            Refusal::Malformed(error) => error,
            Refusal::Stranger(why) => {
                let names = call.resource.kind.names();
                ApiError::forbidden(names.group, names.plural, &call.info.name, &why)
            }
            Refusal::Fence(FenceError::Backend(error)) => call.storage_error(error.into(), "term check"),
            Refusal::Fence(over) => call.conflict(over),
        })
    }

    /// A document that describes the API.
    fn document(&self, request: &Request) -> Result<Response<Body>, ApiError> {
        let Request { method, info, headers, .. } = request;
        let path = info.path.as_str();
        let answer = if path.starts_with("/openapi/") {
            openapi::answer(&self.openapi, path, headers, &info.query).map(Ok)
        } else if path == "/" || path == "/version" || path == "/version/" {
            let document = if path == "/" {
                self.discovery.root(self.openapi.v3.iter().map(|(key, _)| key))
            } else {
                self.version.clone()
            };
            Some(negotiate::plain(headers, &info.query).map(|o| encode::value(&document, o, headers)))
        } else {
            self.discovery.answer(path, headers, &info.query)
        };
        let answer = answer.ok_or_else(ApiError::unknown_path)?;
        if method == http::Method::GET { answer } else { Err(ApiError::method_not_allowed()) }
    }

    /// The resource that a URL names; 404 if there is none.
    fn find(&self, info: &RequestInfo) -> Result<&Arc<Resource>, ApiError> {
        let asked = (&*info.group, &*info.version, &*info.resource);
        let serves = |resource: &Resource| {
            let names = resource.kind.names();
            asked == (names.group, names.version, names.plural)
        };
        let resource = self.resources.iter().find(|resource| serves(resource));
        let resource = resource.ok_or_else(ApiError::unknown_path)?;
        let namespaced = resource.kind.names().namespaced;
        let named_in_path = !info.name.is_empty() && !matches!(info.verb, Verb::List | Verb::Watch);
        let misplaced =
            if namespaced { info.namespace.is_empty() && named_in_path } else { !info.namespace.is_empty() };
        let known = match info.subresource.as_str() {
            "" => true,
            "status" => resource.kind.has_status(),
            _ => false,
        };
        let unknown = !info.rest.is_empty() || !known;
        if misplaced || unknown { Err(ApiError::unknown_path()) } else { Ok(resource) }
    }
}

fn answered(call: &Call, answer: Result<Response<Body>, ApiError>) -> Response<Body> {
    let mut response = answer.unwrap_or_else(|error| refuse(&error, &call.headers, &call.info, &call.audit));
    crate::request::warnings::write(response.headers_mut(), &call.warnings.take());
    response
}

fn refuse(error: &ApiError, headers: &HeaderMap, info: &RequestInfo, audit: &Trail) -> Response<Body> {
    audit.status(&error.status);
    encode::error(error, headers, &info.query)
}
