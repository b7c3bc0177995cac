//! The order of a request, in one place (k8s.io/apiserver pkg/server/config.go, DefaultBuildHandlerChain):
//!
//! panics -> audit id -> request info -> cache control -> probes -> path, deadline -> authentication -> audit -> impersonation
//! -> flow control -> authorization -> single health checks, metrics, the API

use std::any::Any;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use drydock_machinery::ApiError;
use futures::FutureExt;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use hyper::body::Body as _;
use tracing::Instrument;

use crate::api_group::ApiGroup;
use crate::audit::{Audit, Trail};
use crate::audit_id;
use crate::authn::{Authenticator, Caller, Peer, Proof};
use crate::authz::{Attributes, Authorizer};
use crate::body;
use crate::deadline;
use crate::encode;
use crate::flow_control::{FlowControl, PriorityLevel, Seats, Work};
use crate::grpc::{self, Grpc};
use crate::health::Health;
use crate::metrics::{Metrics, OpenWatch};
use crate::request::Request;
use crate::request_info::{self, RequestInfo, Verb};
use crate::sending::{Delivery, Outgoing, Sending, Streaming};
use crate::spans;
use crate::user::User;

/// Everything that a request passes through.
pub struct Chain {
    /// Who asks.
    pub authenticator: Authenticator,
    /// Who may.
    pub authorizer: Arc<Authorizer>,
    /// Who is served when not all can be.
    pub flow_control: Arc<FlowControl>,
    /// /livez and its like.
    pub health: Health,
    /// /metrics.
    pub metrics: Metrics,
    /// The audit log, where there is a policy.
    pub audit: Option<Arc<Audit>>,
    /// What is served.
    pub api: ApiGroup,
    /// The gRPC service, where one is mounted.
    pub grpc: Option<Grpc>,
    /// Longest time that a request which does not stream may take.
    pub request_timeout: Duration,
    /// Answers on their way out.
    pub sending: Sending,
}

/// Media type of server-side apply, which metrics tell from other patches.
const APPLY: &str = "application/apply-patch+yaml";

/// What an answer holds on to until it has been sent.
pub enum Kept {
    /// Nothing: it took no place, or has given it back.
    Nothing,
    /// The seats of the request.
    Seats(Seats),
    /// The count of open watches.
    Watch(OpenWatch),
}

impl Chain {
    /// Answers one request. Whatever goes wrong, there is an answer.
    pub async fn serve(&self, request: http::Request<Body>, peer: &Peer) -> Response<Outgoing<Kept>> {
        if let Some(grpc) = self.grpc.as_ref().filter(|_| grpc::is_call(&request)) {
            // Boxed: its state is larger than that of other requests, which would all make room for it.
            return Box::pin(self.serve_call(grpc, request, peer)).await;
        }
        let started = Instant::now();
        let info = Arc::new(request_info::parse(request.method(), request.uri()));
        let audit_id = audit_id::of(request.headers());
        let deadline = deadline::of(&info, self.request_timeout);
        let by = deadline.as_ref().map_or(started, |time| started + *time);
        let log = self.audit.as_ref();
        let audit = log.map(|log| log.trail(&request, &info, &audit_id, peer)).unwrap_or_default();
        let authenticated = OnceLock::new();
        let asked = Asked { info: info.clone(), audit: audit.clone(), peer, authenticated: &authenticated };
        let applies = info.verb == Verb::Patch && body::media_type(request.headers()) == APPLY;
        let answer = self.answer(request, asked, deadline).instrument(spans::request(&info, &audit_id));
        let (mut response, kept) = match AssertUnwindSafe(answer).catch_unwind().await {
            Ok((answer, kept)) => {
                let code = answer.status();
                (audit.answered(answer, code, &info, info.verb == Verb::Watch).await, kept)
            }
            Err(why) => (encode::fallback(&panicked(&info, why, &audit).await), Kept::Nothing),
        };
        decorate(response.headers_mut(), &audit_id);
        let took = started.elapsed();
        spans::answered(&info, &audit_id, response.status(), took);
        let info = self.countable(&info);
        self.metrics.answered(&info, applies, response.status(), took);
        let (sizes, deadline) = match kept {
            Kept::Nothing | Kept::Watch(_) => (None, started + took + self.request_timeout),
            Kept::Seats(_) => (self.metrics.sizes(&info), by),
        };
        let (user, connection) = (authenticated.into_inner(), peer.connection().clone());
        self.sending.send(response, Delivery { deadline, user, connection, guard: kept, sizes })
    }

    async fn answer(
        &self,
        request: http::Request<Body>,
        asked: Asked<'_>,
        deadline: Result<Duration, ApiError>,
    ) -> (Response<Body>, Kept) {
        let (mut parts, body) = request.into_parts();
        let Asked { info, audit, .. } = &asked;
        // Whoever fills the server, or cuts it off from the host, must not have it restarted or taken out of service: this
        // needs no user, no place and no review.
        if let Some(answer) = self.health.probe(&parts.method, &info.path, &info.query) {
            asked.peer.proves(Proof::Unasked);
            return (answer, Kept::Nothing);
        }
        let deadline = match info.check_path().and(deadline) {
            Ok(time) => Instant::now() + time,
            Err(error) => {
                audit.status(&error.status);
                return (encode::error(&error, &parts.headers, &info.query), Kept::Nothing);
            }
        };
        let sent = body.size_hint().upper();
        let let_in = self.let_in(&mut parts, sent, &asked, deadline);
        let let_in = tokio::time::timeout_at(deadline.into(), let_in);
        let LetIn { caller, user, level, seats } =
            match let_in.await.unwrap_or_else(|_| Err(self.out_of_time(info))) {
                Ok(let_in) => let_in,
                Err(error) => {
                    audit.status(&error.status);
                    return (encode::refusal(&error, &parts.headers, &info.query), Kept::Nothing);
                }
            };
        if let Some(answer) = self.health.answer(&info.path, &info.query) {
            return (answer, Kept::Seats(seats));
        }
        if info.path == "/metrics" {
            return (self.metrics.answer(), Kept::Seats(seats));
        }
        let (Asked { info, audit, .. }, method, headers) = (asked, parts.method, parts.headers);
        let request = Request { method, info: info.clone(), caller, user, level, headers, body, audit };
        self.handle(request, &info, seats).await
    }

    /// The API's own answer: a watch bounds itself, anything else must come within its time.
    async fn handle(&self, request: Request, info: &RequestInfo, seats: Seats) -> (Response<Body>, Kept) {
        let (deadline, audit) = (request.caller.deadline(), request.audit.clone());
        let answer = self.api.handle(request);
        if info.verb == Verb::Watch {
            let open = self.api.is_mounted(info).then(|| self.metrics.watch_opened(info));
            let answer = answer.await;
            if let Some(streaming) = answer.extensions().get::<Streaming>() {
                streaming.keep(seats, deadline);
            }
            return (answer, open.map_or(Kept::Nothing, Kept::Watch));
        }
        match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(answer) => (answer, Kept::Seats(seats)),
            Err(_) => {
                let error = self.out_of_time(info);
                audit.status(&error.status);
                (encode::fallback(&error), Kept::Nothing)
            }
        }
    }

    /// Who asks, and the seats taken for the answer, if the caller may ask this at all. The body has `sent` bytes, if that
    /// is known.
    async fn let_in(
        &self,
        parts: &mut http::request::Parts,
        sent: Option<u64>,
        asked: &Asked<'_>,
        deadline: Instant,
    ) -> Result<LetIn, ApiError> {
        let Asked { info, audit, peer, .. } = asked;
        let caller = self.authenticator.authenticate(&mut parts.headers, peer, deadline).await?;
        let _ = asked.authenticated.set(caller.user.clone());
        audit.received(&caller.user, info).await?;
        let attributes = Attributes::from(&**info);
        let (impersonation, headers) = (self.authenticator.impersonation(), &mut parts.headers);
        let other = impersonation.act_as(&caller, headers, &attributes, &self.authorizer).await?;
        let user = other.map_or_else(
            || caller.user.clone(),
            |other| {
                audit.impersonated(&other.user, &other.constraint);
                other.user
            },
        );
        let level = self.flow_control.level_of(&user);
        let seats = self.seats(level, &user, Work { info, body: sent }, deadline).await?;
        self.authorize(&caller, &user, &attributes, audit).await?;
        Ok(LetIn { caller, user, level, seats })
    }

    /// 403 with the host's wording unless the user may.
    async fn authorize(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &Attributes,
        audit: &Trail,
    ) -> Result<(), ApiError> {
        let decision = self.authorizer.authorize(caller, user, attributes).await;
        audit.authorized(&decision);
        attributes.allowed(user, &decision?)
    }

    /// What metrics may tell of a request: a path that leads nowhere is not worth a series.
    pub(crate) fn countable<'a>(&self, info: &'a RequestInfo) -> Cow<'a, RequestInfo> {
        if !info.is_resource || self.api.is_mounted(info) {
            return Cow::Borrowed(info);
        }
        Cow::Owned(RequestInfo { verb: info.verb.clone(), ..RequestInfo::default() })
    }

    /// 429 where too many wait already, or the request has waited for as long as it may.
    pub(crate) async fn seats(
        &self,
        level: PriorityLevel,
        user: &User,
        work: Work<'_>,
        deadline: Instant,
    ) -> Result<Seats, ApiError> {
        let info = work.info;
        let left = deadline.saturating_duration_since(Instant::now());
        let listed_bytes = |listed: &_, enough| self.api.listed_bytes(info, listed, enough);
        self.flow_control.admit(level, user, work, left, listed_bytes).await.map_err(|_| {
            self.metrics.terminated(&self.countable(info), StatusCode::TOO_MANY_REQUESTS);
            ApiError::too_many_requests("Too many requests, please try again later.", 1)
        })
    }

    pub(crate) fn out_of_time(&self, info: &RequestInfo) -> ApiError {
        self.metrics.terminated(&self.countable(info), StatusCode::GATEWAY_TIMEOUT);
        deadline::missed(info)
    }
}

/// What is asked, by whom it was sent, and where that is logged.
struct Asked<'a> {
    info: Arc<RequestInfo>,
    audit: Trail,
    peer: &'a Peer,
    /// Who sent it, once that is known.
    authenticated: &'a OnceLock<Arc<User>>,
}

/// A request that may be answered.
struct LetIn {
    caller: Caller,
    user: Arc<User>,
    level: PriorityLevel,
    seats: Seats,
}

/// What is answered when a request has panicked.
pub(crate) async fn panicked(info: &RequestInfo, why: Box<dyn Any + Send>, audit: &Trail) -> ApiError {
    let text = why.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or("for no reason given");
    audit.panicked(text).await;
    tracing::error!(path = info.path, verb = %info.verb, "a request panicked");
    ApiError::internal("This request caused apiserver to panic. Look in the logs for details.")
}

fn decorate(headers: &mut HeaderMap, audit_id: &str) {
    audit_id::write(headers, audit_id);
    let private = HeaderValue::from_static("no-cache, private");
    headers.entry(header::CACHE_CONTROL).or_insert(private);
}
