//! The order of a request, in one place (k8s.io/apiserver pkg/server/config.go, DefaultBuildHandlerChain):
//!
//! panics -> audit id -> request info -> cache control -> deadline -> authentication -> in-flight limit
//! -> authorization -> health, metrics, the API

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use drydock_machinery::ApiError;
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use rustls::pki_types::CertificateDer;

use crate::api_group::ApiGroup;
use crate::authn::Authenticator;
use crate::authz::{Attributes, Authorizer};
use crate::health::Health;
use crate::limits::InFlight;
use crate::metrics::Metrics;
use crate::request::Request;
use crate::request_info::{self, RequestInfo, Verb};

/// Everything that a request passes through.
pub struct Chain {
    /// Who asks.
    pub authenticator: Authenticator,
    /// Who may.
    pub authorizer: Arc<Authorizer>,
    /// How many at a time.
    pub limits: InFlight,
    /// /livez and its like.
    pub health: Health,
    /// /metrics.
    pub metrics: Metrics,
    /// What is served.
    pub api: ApiGroup,
    /// Longest time that a request which does not stream may take.
    pub request_timeout: Duration,
}

/// The client certificates of a connection, as its handshake showed them.
pub type PeerCertificates = Arc<Vec<CertificateDer<'static>>>;

impl Chain {
    /// Answers one request. Whatever goes wrong, there is an answer.
    pub async fn serve(&self, request: http::Request<Body>, peer: &PeerCertificates) -> Response<Body> {
        let started = Instant::now();
        let info = request_info::parse(request.method(), request.uri());
        let audit_id = audit_id(request.headers());
        let guarded = AssertUnwindSafe(self.answer(request, info.clone(), &audit_id, peer)).catch_unwind();
        let mut response = match guarded.await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => refusal(&error),
            Err(_) => refusal(&panicked(&info)),
        };
        decorate(response.headers_mut(), &audit_id);
        self.metrics.answered(&self.countable(info), response.status(), started.elapsed());
        response
    }

    async fn answer(
        &self,
        request: http::Request<Body>,
        info: RequestInfo,
        audit_id: &str,
        peer: &PeerCertificates,
    ) -> Result<Response<Body>, ApiError> {
        let deadline = Instant::now() + self.deadline(&info);
        let (mut parts, body) = request.into_parts();
        let user = self.authenticator.authenticate(&mut parts.headers, peer).await?;
        refuse_impersonation(&parts.headers)?;
        let place = self.take_place(&info)?;
        self.authorizer.require(&user, &Attributes::from(&info)).await?;
        if let Some(answer) = self.health.answer(&info.path, &info.query) {
            return Ok(answer);
        }
        if info.path == "/metrics" {
            return Ok(self.metrics.answer());
        }
        let streams = info.verb == Verb::Watch;
        let open = (streams && self.api.is_mounted(&info)).then(|| self.metrics.watch_opened(&info));
        let (method, headers, audit_id) = (parts.method, parts.headers, audit_id.to_owned());
        let request = Request { method, info, user: Arc::new(user), headers, body, deadline, audit_id };
        let answer = self.api.handle(request);
        if streams {
            return Ok(hold(answer.await, open));
        }
        let answer = tokio::time::timeout_at(deadline.into(), answer).await;
        drop(place);
        answer.map_err(|_| out_of_time())
    }

    /// What metrics may tell of a request: a path that leads nowhere is not worth a series.
    fn countable(&self, info: RequestInfo) -> RequestInfo {
        if !info.is_resource || self.api.is_mounted(&info) {
            return info;
        }
        RequestInfo { verb: info.verb, ..RequestInfo::default() }
    }

    /// Watches hold no place: they are bounded by time, not by number.
    fn take_place(&self, info: &RequestInfo) -> Result<Option<tokio::sync::OwnedSemaphorePermit>, ApiError> {
        if info.verb == Verb::Watch {
            return Ok(None);
        }
        let place = self.limits.enter(info.verb.is_mutating());
        self.metrics.set_in_flight(self.limits.taken());
        match place {
            Some(place) => Ok(Some(place)),
            None => Err(ApiError::too_many_requests("too many requests, please try again later", 1)),
        }
    }

    /// `?timeout=` may shorten the time, never lengthen it (k8s.io/apiserver pkg/endpoints/filters/request_deadline.go).
    fn deadline(&self, info: &RequestInfo) -> Duration {
        let asked = info.query.non_empty("timeout").and_then(|t| t.parse::<jiff::SignedDuration>().ok());
        let asked = asked.and_then(|t| Duration::try_from(t).ok()).filter(|t| !t.is_zero());
        asked.unwrap_or(self.request_timeout).min(self.request_timeout)
    }
}

/// Keeps `guard` until the body has been sent or dropped.
fn hold(response: Response<Body>, guard: impl Send + 'static) -> Response<Body> {
    response.map(|body| {
        let held = body.into_data_stream().inspect(move |_| {
            let _ = &guard;
        });
        Body::from_stream(held)
    })
}

/// Acting for somebody else is not served: going on with the caller's own rights would do what nobody asked for.
fn refuse_impersonation(headers: &HeaderMap) -> Result<(), ApiError> {
    let impersonates = headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
    if impersonates {
        let message = "impersonation is not served on direct requests; go through the kube-apiserver";
        return Err(ApiError::forbidden("", "", "", message));
    }
    Ok(())
}

fn out_of_time() -> ApiError {
    let message = "the server was unable to return a response in the time allotted, but may still be processing the request";
    ApiError::timeout(message, 0)
}

fn panicked(info: &RequestInfo) -> ApiError {
    tracing::error!(path = info.path, verb = %info.verb, "a request panicked");
    ApiError::internal("This request caused apiserver to panic. Look in the logs for details.")
}

/// A refusal that came before the API could be asked.
fn refusal(error: &ApiError) -> Response<Body> {
    let mut response = Response::new(Body::from(error.to_json()));
    *response.status_mut() = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The caller's id if it sent a sensible one, a new one otherwise.
fn audit_id(headers: &HeaderMap) -> String {
    let sent =
        headers.get("audit-id").and_then(|v| v.to_str().ok()).filter(|v| !v.is_empty() && v.len() <= 64);
    sent.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

fn decorate(headers: &mut HeaderMap, audit_id: &str) {
    if let Ok(value) = HeaderValue::from_str(audit_id) {
        headers.insert("audit-id", value);
    }
    let private = HeaderValue::from_static("no-cache, private");
    headers.entry(header::CACHE_CONTROL).or_insert(private);
}
