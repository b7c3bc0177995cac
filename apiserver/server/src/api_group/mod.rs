//! What is mounted: resources by group, version and name, and the documents that describe them.

pub mod discovery;
pub mod openapi;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_machinery::kind::Kind;
use drydock_machinery::openapi::OpenApi;
use drydock_serving::auth::authz::CreateAuthorizer;
use drydock_serving::auth::{Caller, Origin};
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::user::User;
use drydock_serving::wire::{negotiate, response, status};
use drydock_storage::fence::FenceError;
use drydock_storage::storage::{PageOptions, ReadAt, Scope};
use http::{HeaderMap, Method, Response};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::api_group::discovery::Discovery;
use crate::audit::AuditContext;
use crate::flow_control::fair_budget::FairBudget;
use crate::flow_control::offload::{LARGE_BODY, Offload};
use crate::flow_control::{Listed, PriorityLevel, ReplacedBytes};
use crate::handlers::fencing::{FencingToken, FencingTokens, TokenError};
use crate::handlers::{self, LIST_ROOM, RequestContext, Resource};
use crate::metrics::WatchEvents;
use crate::request::warnings::Warnings;
use crate::watch::RecentFrames;
use crate::wire::body::{self, RequestBody};
pub use discovery::Identity;

/// A request after authentication and authorization.
pub struct ApiRequest {
    /// HTTP method.
    pub method: Method,
    /// What it is about.
    pub info: Arc<RequestInfo>,
    /// The authenticated sender.
    pub caller: Caller,
    /// The user of the request: the caller, or the user that the caller acts as.
    pub user: Arc<User>,
    /// The user's priority level.
    pub level: PriorityLevel,
    /// Headers, without those that authenticated.
    pub headers: HeaderMap,
    /// Body, not read yet.
    pub body: Body,
    /// The audit context of the request.
    pub audit: AuditContext,
}

impl ApiRequest {
    /// A request that did not arrive over a port, and is logged nowhere. It must be answered within `time`.
    pub fn local(request: http::Request<Body>, user: User, level: PriorityLevel, time: Duration) -> Self {
        let (http::request::Parts { method, uri, headers, .. }, body) = request.into_parts();
        let info = Arc::new(RequestInfo::parse(&method, &uri));
        let (user, audit) = (Arc::new(user), AuditContext::default());
        let caller = Caller::new(user.clone(), Origin::local(time));
        Self { method, info, caller, user, level, headers, body, audit }
    }
}

/// Everything that is mounted below `/apis`, and `/openapi` and `/version`.
pub struct ApiGroup {
    resources: Vec<Arc<Resource>>,
    /// Ends watches, cleanly.
    shutdown: CancellationToken,
    /// Decides whether an apply may create.
    authorizer: Option<Arc<dyn CreateAuthorizer>>,
    /// Refuses writes with an outdated fencing token.
    fencing_tokens: Option<FencingTokens>,
    discovery: Discovery,
    openapi: OpenApi,
    version: Value,
    watch_events: WatchEvents,
    recent_frames: Arc<RecentFrames>,
    /// What each flow has recently put into the history.
    replaced_bytes: Arc<ReplacedBytes>,
    /// The budget of all bodies in flight.
    bodies: Arc<FairBudget>,
    /// The budget of the objects that lists have read from the store.
    lists: Arc<FairBudget>,
    offload: Offload,
}

impl ApiGroup {
    /// Mounts `resources`. Of a kind in several versions, the stored one comes first.
    pub fn new(resources: Vec<Resource>) -> Self {
        let identity = Identity { title: "API", version: env!("CARGO_PKG_VERSION") };
        let kinds: Vec<&dyn Kind> = resources.iter().map(|r| r.kind.as_ref()).collect();
        let discovery = Discovery::new(&kinds);
        let openapi = OpenApi::new(&kinds, identity.title, identity.version);
        Self {
            resources: resources.into_iter().map(Arc::new).collect(),
            shutdown: CancellationToken::new(),
            authorizer: None,
            fencing_tokens: None,
            discovery,
            openapi,
            version: identity.info(),
            watch_events: WatchEvents::default(),
            recent_frames: Arc::default(),
            replaced_bytes: Arc::default(),
            bodies: body::budget(),
            lists: handlers::list_budget(LIST_ROOM),
            offload: Offload::default(),
        }
    }

    /// Names the server, for `/version` and the OpenAPI documents.
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

    /// Refuses writes with an outdated fencing token; without it, fencing tokens are not looked at.
    #[must_use]
    pub fn with_fencing_tokens(mut self, tokens: FencingTokens) -> Self {
        self.fencing_tokens = Some(tokens);
        self
    }

    /// Counts the events of watches.
    #[must_use]
    pub fn with_watch_events(mut self, watch_events: WatchEvents) -> Self {
        self.watch_events = watch_events;
        self
    }

    /// Limits the bytes of objects that lists read from the store and hold until they are sent.
    #[cfg(feature = "test-util")]
    #[must_use]
    pub fn with_list_room(mut self, bytes: usize) -> Self {
        self.lists = handlers::list_budget(bytes);
        self
    }

    /// Whether a request's URL names a resource that is served, whatever the object.
    pub fn is_mounted(&self, info: &RequestInfo) -> bool {
        self.find(info).is_some()
    }

    /// Returns about how many bytes of objects a request reads that lists `listed`, counted no further than `enough`.
    pub fn listed_bytes(&self, info: &RequestInfo, listed: &Listed, enough: usize) -> usize {
        let Some(resource) = self.find(info) else { return 0 };
        let prefix = if info.namespace.is_empty() { String::new() } else { format!("{}/", info.namespace) };
        let scope = Scope { prefix, single: false, matches: None };
        let options = PageOptions { at: ReadAt::Latest, limit: listed.limit, start: listed.start.clone() };
        resource.storage.listed_bytes(&scope, &options, enough)
    }

    /// Answers a request; errors are answered too.
    pub async fn handle(&self, request: ApiRequest) -> Response<Body> {
        if !request.info.is_resource {
            let answer = self.document(&request).unwrap_or_else(|| Ok(self.not_found(&request)));
            return answer
                .unwrap_or_else(|error| refuse(&error, &request.headers, &request.info, &request.audit));
        }
        let Some(resource) = self.find(&request.info).cloned() else { return self.not_found(&request) };
        let ApiRequest { method, info, caller, user, level, headers, body, audit } = request;
        let mut request = RequestContext {
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
            recent_frames: self.recent_frames.clone(),
            replaced_bytes: self.replaced_bytes.clone(),
            lists: self.lists.clone(),
            fencing_token: None,
        };
        match self.read_request(&mut request, &method, body).await {
            Ok(body) if body.len() > LARGE_BODY => self.serve_large(request, body).await,
            Ok(body) => answered(&request, handlers::dispatch(&request, &body).await),
            Err(error) => answered(&request, Err(error)),
        }
    }

    /// Reads the fencing token and the body of a request.
    async fn read_request(
        &self,
        request: &mut RequestContext,
        method: &http::Method,
        body: Body,
    ) -> Result<RequestBody, ApiError> {
        if !handlers::is_served(request, method) {
            return Err(ApiError::method_not_allowed());
        }
        request.fencing_token = self.fencing_token(request).await?;
        if !handlers::takes_body(&request.info.verb) {
            return Ok(RequestBody::empty());
        }
        body::read(body, self.bodies.holding(&request.user, request.level, request.caller.deadline())).await
    }

    /// Answers a request with a large body on a thread of its own: decoding, merging and validating it would delay the
    /// other requests of the worker.
    async fn serve_large(&self, request: RequestContext, body: RequestBody) -> Response<Body> {
        let request = Arc::new(request);
        let of_request = request.clone();
        let answer = async move { handlers::dispatch(&of_request, &body).await };
        let served = self.offload.run(&request.user, request.level, request.caller.deadline(), answer).await;
        answered(&request, served.unwrap_or_else(Err))
    }

    /// Returns the fencing token of a write that carries one. A dry run's is ignored: it must not make another one
    /// outdated.
    async fn fencing_token(&self, request: &RequestContext) -> Result<Option<FencingToken>, ApiError> {
        let pretends = request.info.query.get("dryRun").is_some();
        let Some(tokens) =
            self.fencing_tokens.as_ref().filter(|_| request.info.verb.is_mutating() && !pretends)
        else {
            return Ok(None);
        };
        let accepted = tokens.accept(request.level, &request.user, &request.headers, request.now).await;
        accepted.map_err(|error| match error {
            TokenError::Malformed(malformed) => malformed,
            TokenError::Stranger(why) => {
                let names = request.resource.kind.names();
                ApiError::forbidden(names.group, names.plural, &request.info.name, &why)
            }
            TokenError::Fence(FenceError::Backend(error)) => {
                request.storage_error(error.into(), "fencing check")
            }
            TokenError::Fence(FenceError::Refused(refused)) => {
                let names = request.names();
                ApiError::refused_token(names.group, names.plural, &request.info.name, refused, Some(refused))
            }
        })
    }

    /// A document that describes the API; `None` if there is none at the path.
    fn document(&self, request: &ApiRequest) -> Option<Result<Response<Body>, ApiError>> {
        let ApiRequest { method, info, headers, .. } = request;
        let path = info.path.as_str();
        // These two have no route of go-restful: they answer any method.
        if path.starts_with("/openapi/") {
            return openapi::answer(&self.openapi, path, headers, &info.query).map(Ok);
        }
        if path == "/" {
            let paths = self.discovery.root(self.openapi.v3.iter().map(|(key, _)| key));
            return Some(Ok(discovery::raw_json(&paths, headers)));
        }
        let answer = if path == "/version" || path == "/version/" {
            negotiate::only_json(headers).map(|()| discovery::raw_json(&self.version, headers))
        } else {
            self.discovery.answer(path, headers, &info.query)?
        };
        Some(if method == http::Method::GET { answer } else { Err(ApiError::method_not_allowed()) })
    }

    /// 404: a Status within what has a route of go-restful, elsewhere the text of Go's own handler, as from
    /// kube-apiserver.
    fn not_found(&self, request: &ApiRequest) -> Response<Body> {
        let path = request.info.path.as_str();
        if self.discovery.has_route(path) || path.starts_with("/version/") {
            return refuse(&ApiError::unknown_path(), &request.headers, &request.info, &request.audit);
        }
        response::not_found(&request.headers)
    }

    /// The resource that a URL names; `None` if there is none.
    fn find(&self, info: &RequestInfo) -> Option<&Arc<Resource>> {
        let asked = (&*info.group, &*info.version, &*info.resource);
        let serves = |resource: &Resource| {
            let names = resource.kind.names();
            asked == (names.group, names.version, names.plural)
        };
        let resource = self.resources.iter().find(|resource| serves(resource))?;
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
        (!misplaced && !unknown).then_some(resource)
    }
}

fn answered(request: &RequestContext, answer: Result<Response<Body>, ApiError>) -> Response<Body> {
    let mut response =
        answer.unwrap_or_else(|error| refuse(&error, &request.headers, &request.info, &request.audit));
    crate::request::warnings::write(response.headers_mut(), &request.warnings.take());
    response
}

fn refuse(error: &ApiError, headers: &HeaderMap, info: &RequestInfo, audit: &AuditContext) -> Response<Body> {
    audit.status(&error.status);
    status::error(error, headers, &info.query)
}
