//! The order of a request, in one place (k8s.io/apiserver pkg/server/config.go, DefaultBuildHandlerChain):
//!
//! panics -> audit id -> request info -> cache control -> probes -> path, deadline -> access -> single health checks,
//! metrics, the API

mod access;
mod deadline;

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use drydock_machinery::ApiError;
use drydock_serving::auth::Caller;
use drydock_serving::auth::authn::{Authenticator, Peer, Proof};
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::auth::impersonation::Impersonation;
use drydock_serving::clock;
use drydock_serving::health::Health;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::user::User;
use drydock_serving::wire::status;
use futures::FutureExt;
use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Body as _;
use tracing::Instrument;

use crate::api_group::{ApiGroup, ApiRequest};
use crate::audit::{self, Audit, AuditContext};
use crate::flow_control::{FlowControl, RequestWork, Seats};
use crate::metrics::{Metrics, OpenWatch};
use crate::request::spans;
use crate::responses::{Delivery, OpenResponses, ResponseBody, Streaming};
use crate::wire::body;
pub(crate) use access::{AccessDenied, GrantedAccess};

/// The steps that a request passes through.
pub struct Chain {
    /// Authenticates the caller.
    pub authenticator: Authenticator,
    /// Decides who may act as which user.
    pub impersonation: Impersonation,
    /// Authorizes the request.
    pub authorizer: Arc<Authorizer>,
    /// Decides which requests are served when there are too many.
    pub flow_control: Arc<FlowControl>,
    /// /livez and its like.
    pub health: Health,
    /// /metrics.
    pub metrics: Metrics,
    /// The audit log, where there is something to log.
    pub audit: Option<Arc<Audit>>,
    /// What is served.
    pub api: ApiGroup,
    /// Longest time that a request which does not stream may take.
    pub request_timeout: Duration,
    /// Responses that are being sent.
    pub responses: OpenResponses,
}

/// Media type of server-side apply, which metrics count under a verb of its own.
const APPLY: &str = "application/apply-patch+yaml";

/// What a response holds until it has been sent.
pub enum ResponseGuard {
    /// Nothing: it took no seat, or has given it back.
    None,
    /// The seats of the request.
    Seats(Seats),
    /// The count of open watches.
    Watch(OpenWatch),
}

impl Chain {
    /// Answers one request. Whatever goes wrong, there is an answer.
    pub async fn handle_request(
        &self,
        request: http::Request<Body>,
        peer: &Peer,
    ) -> Response<ResponseBody<ResponseGuard>> {
        let started = clock::now();
        let info = Arc::new(RequestInfo::parse(request.method(), request.uri()));
        let audit_id = audit::headers::audit_id(request.headers());
        let deadline = deadline::of(&info, self.request_timeout);
        let by = deadline.as_ref().map_or(started, |time| started + *time);
        let log = self.audit.as_ref();
        let audit = log.map(|log| log.context(&request, &info, &audit_id, peer)).unwrap_or_default();
        let authenticated = OnceLock::new();
        let asked =
            PendingRequest { info: info.clone(), audit: audit.clone(), peer, authenticated: &authenticated };
        let applies = info.verb == Verb::Patch && body::media_type(request.headers()) == APPLY;
        let answer = self.answer(request, asked, deadline).instrument(spans::request(&info, &audit_id));
        let (mut response, guard) = match AssertUnwindSafe(answer).catch_unwind().await {
            Ok((answer, guard)) => {
                let code = answer.status();
                (audit.answered(answer, code, &info, info.verb == Verb::Watch).await, guard)
            }
            Err(why) => (status::fallback(&panicked(&info, why, &audit).await), ResponseGuard::None),
        };
        let private = HeaderValue::from_static("no-cache, private");
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(private);
        let (code, user) = (response.status(), authenticated.into_inner());
        self.deliver(
            response,
            guard,
            RequestOutcome { info: &info, audit_id: &audit_id, code, applies, started, by, user, peer },
        )
    }

    /// Logs and counts an answer, and sends it.
    pub(crate) fn deliver(
        &self,
        mut response: Response<Body>,
        guard: ResponseGuard,
        of: RequestOutcome<'_>,
    ) -> Response<ResponseBody<ResponseGuard>> {
        audit::headers::write_audit_id(response.headers_mut(), of.audit_id);
        let took = clock::now().saturating_duration_since(of.started);
        spans::answered(of.info, of.audit_id, of.code, took);
        let info = self.metrics_info(of.info);
        self.metrics.answered(&info, of.applies, of.code, took);
        let (sizes, deadline) = match guard {
            ResponseGuard::None | ResponseGuard::Watch(_) => (None, of.started + took + self.request_timeout),
            ResponseGuard::Seats(_) => (self.metrics.sizes(&info), of.by),
        };
        let (user, connection) = (of.user, of.peer.connection().clone());
        self.responses.send(response, Delivery { deadline, user, connection, guard, sizes })
    }

    async fn answer(
        &self,
        request: http::Request<Body>,
        asked: PendingRequest<'_>,
        deadline: Result<Duration, ApiError>,
    ) -> (Response<Body>, ResponseGuard) {
        let (mut parts, body) = request.into_parts();
        let PendingRequest { info, audit, .. } = &asked;
        // A probe needs no user, no seat and no review: a client that fills the server, or cuts it off from the host,
        // must not be able to cause a restart or to take it out of service.
        if let Some(answer) = self.health.probe(&parts.method, &info.path, &info.query) {
            asked.peer.proves(Proof::Unasked);
            return (answer, ResponseGuard::None);
        }
        let deadline = match info.check_path().and(deadline) {
            Ok(time) => clock::now() + time,
            Err(error) => {
                asked.peer.proves(Proof::Unasked);
                audit.status(&error.status);
                return (status::error(&error, &parts.headers, &info.query), ResponseGuard::None);
            }
        };
        let sent = body.size_hint().upper();
        let granted = self.authenticate_and_authorize(&mut parts, sent, &asked, deadline);
        let granted = tokio::time::timeout_at(deadline.into(), granted);
        let (caller, GrantedAccess { user, level, seats, .. }) =
            match granted.await.unwrap_or_else(|_| Err(self.out_of_time(info))) {
                Ok(granted) => granted,
                Err(error) => {
                    audit.status(&error.status);
                    return (status::refusal(&error, &parts.headers, &info.query), ResponseGuard::None);
                }
            };
        if let Some(answer) = self.health.answer(&info.path, &info.query) {
            return (answer, ResponseGuard::Seats(seats));
        }
        if info.path == "/metrics" {
            return (self.metrics.expose(&parts.headers), ResponseGuard::Seats(seats));
        }
        let (PendingRequest { info, audit, .. }, method, headers) = (asked, parts.method, parts.headers);
        let request = ApiRequest { method, info: info.clone(), caller, user, level, headers, body, audit };
        self.handle(request, &info, seats).await
    }

    /// Has the API answer a request. A watch has a timeout of its own; any other request gets 504 at its deadline.
    async fn handle(
        &self,
        request: ApiRequest,
        info: &RequestInfo,
        seats: Seats,
    ) -> (Response<Body>, ResponseGuard) {
        let (deadline, audit) = (request.caller.deadline(), request.audit.clone());
        let answer = self.api.handle(request);
        if info.verb == Verb::Watch {
            let open = self.api.is_mounted(info).then(|| self.metrics.watch_opened(info));
            let answer = answer.await;
            if let Some(streaming) = answer.extensions().get::<Streaming>() {
                streaming.keep(seats, deadline);
            }
            return (answer, open.map_or(ResponseGuard::None, ResponseGuard::Watch));
        }
        match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(answer) => (answer, ResponseGuard::Seats(seats)),
            Err(_) => {
                let error = self.out_of_time(info);
                audit.status(&error.status);
                (status::fallback(&error), ResponseGuard::None)
            }
        }
    }

    /// Authenticates the caller, takes seats and authorizes the request. `sent` is the length of its body, if that is
    /// known.
    async fn authenticate_and_authorize(
        &self,
        parts: &mut http::request::Parts,
        sent: Option<u64>,
        asked: &PendingRequest<'_>,
        by: Instant,
    ) -> Result<(Caller, GrantedAccess), ApiError> {
        let PendingRequest { info, audit, peer, authenticated } = asked;
        let (caller, _) = self.authenticate(&mut parts.headers, peer, by, authenticated, audit).await?;
        let (attributes, work) =
            ([AuthorizationAttributes::from(&**info)], RequestWork { info, also: &[], body: sent });
        let granted = self.grant_access(&caller, &mut parts.headers, &attributes, work, audit, by).await;
        Ok((caller, granted.map_err(|refused| refused.error)?))
    }

    /// The request as metrics count it: without a resource that is not served, because each such name would be a
    /// series of its own.
    pub(crate) fn metrics_info<'a>(&self, info: &'a RequestInfo) -> Cow<'a, RequestInfo> {
        if !info.is_resource || self.api.is_mounted(info) {
            return Cow::Borrowed(info);
        }
        Cow::Owned(RequestInfo { verb: info.verb.clone(), ..RequestInfo::default() })
    }

    pub(crate) fn out_of_time(&self, info: &RequestInfo) -> ApiError {
        self.metrics.terminated(&self.metrics_info(info), StatusCode::GATEWAY_TIMEOUT);
        deadline::missed(info)
    }
}

/// A request on its way through the chain.
struct PendingRequest<'a> {
    info: Arc<RequestInfo>,
    audit: AuditContext,
    peer: &'a Peer,
    /// The authenticated sender, once it is known.
    authenticated: &'a OnceLock<Arc<User>>,
}

/// An answer, as logs and metrics show it.
pub(crate) struct RequestOutcome<'a> {
    /// What was asked for.
    pub(crate) info: &'a RequestInfo,
    pub(crate) audit_id: &'a str,
    /// The status code that logs and metrics show.
    pub(crate) code: StatusCode,
    /// Whether it answers a server-side apply.
    pub(crate) applies: bool,
    pub(crate) started: Instant,
    /// When it has to be sent, if it keeps seats.
    pub(crate) by: Instant,
    /// The authenticated sender, where it is known.
    pub(crate) user: Option<Arc<User>>,
    pub(crate) peer: &'a Peer,
}

/// Logs the panic of a request, and returns the error for its client.
pub(crate) async fn panicked(info: &RequestInfo, why: Box<dyn Any + Send>, audit: &AuditContext) -> ApiError {
    let text = why.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or("for no reason given");
    audit.panicked(text, info).await;
    tracing::error!(path = info.path, verb = %info.verb, "a request panicked");
    ApiError::internal("This request caused apiserver to panic. Look in the logs for details.")
}
