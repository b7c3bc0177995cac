//! The order of a call. It is that of other requests ([`crate::chain`]), but the message is read after authentication,
//! since it says what is asked for:
//!
//! audit id -> health check -> deadline -> authentication -> message -> audit, impersonation, flow control,
//! authorization as for every request -> open streams -> the call -> its end

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::Body;
use drydock_serving::auth::authn::{Credential, Peer, Proof};
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::clock;
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_serving::request::user::User;
use futures::FutureExt;
use http::{Request, Response, StatusCode, request};
use tracing::Instrument;

use super::access::{GrantedCall, ReadCall, impersonation_headers};
use super::answer::{check, client_timeout, unary};
use super::routes::Route;
use super::{CallRefusal, Grpc, read, status};
use crate::audit::{self, AuditContext};
use crate::chain::{self, Chain, GrantedAccess, RequestOutcome, ResponseGuard};
use crate::flow_control::RequestWork;
use crate::request::spans;
use crate::responses::ResponseBody;

/// Audit annotation of a call that reads more than one resource: an event has room for the first one alone.
const READS: &str = "grpc.drydock/reads";

/// A call on its way.
pub(super) struct GrpcCall<'a> {
    pub(super) peer: &'a Peer,
    pub(super) audit: AuditContext,
    /// When it has to be answered, or its stream to have begun.
    pub(super) by: Instant,
    /// When the client gives up.
    pub(super) client_deadline: Option<Instant>,
    pub(super) route: Option<Route>,
    /// What its method and path say.
    pub(super) parsed: Arc<RequestInfo>,
    /// What it asks for, once that is known.
    info: OnceLock<Arc<RequestInfo>>,
    /// The authenticated sender, once it is known.
    authenticated: OnceLock<Arc<User>>,
}

impl GrpcCall<'_> {
    /// What it asks for, as far as that is known.
    pub(super) fn info(&self) -> &Arc<RequestInfo> {
        self.info.get().unwrap_or(&self.parsed)
    }

    /// Makes a response of an answer or a refusal, and logs it in the audit log.
    async fn conclude(
        &self,
        answer: Result<(Response<Body>, ResponseGuard), CallRefusal>,
    ) -> (Response<Body>, ResponseGuard, StatusCode) {
        let (response, guard, code) = match answer {
            Ok((response, guard)) => {
                let code = status::http_code(response.headers());
                (response, guard, code)
            }
            Err(mut refusal) => {
                // One whose message did not come, or could not be read, is logged with its user all the same.
                if let Some(user) = self.authenticated.get()
                    && let Err(error) = self.audit.received(user, self.info()).await
                {
                    refusal = error.into();
                }
                self.audit.status(&refusal.error.status);
                refused(refusal)
            }
        };
        let streams = self.route.is_some_and(Route::streams);
        (self.audit.answered(response, code, self.info(), streams).await, guard, code)
    }
}

impl Chain {
    /// Answers one call. Whatever goes wrong, there is an answer.
    pub(crate) async fn serve_call(
        &self,
        grpc: &Grpc,
        request: Request<Body>,
        peer: &Peer,
    ) -> Response<ResponseBody<ResponseGuard>> {
        let started = clock::now();
        let parsed = Arc::new(RequestInfo::parse(request.method(), request.uri()));
        let audit_id = audit::headers::audit_id(request.headers());
        let log = self.audit.as_ref();
        let audit = log.map(|log| log.context(&request, &parsed, &audit_id, peer)).unwrap_or_default();
        let mut call = GrpcCall {
            peer,
            audit,
            by: started + self.request_timeout,
            client_deadline: None,
            route: grpc.routes.find(&parsed.path),
            parsed,
            info: OnceLock::new(),
            authenticated: OnceLock::new(),
        };
        let span = spans::request(&call.parsed, &audit_id);
        let answer = AssertUnwindSafe(self.answer_call(grpc, request, &mut call)).catch_unwind();
        let (response, guard, code) = match answer.instrument(span).await {
            Ok(answer) => call.conclude(answer).await,
            Err(why) => refused(chain::panicked(call.info(), why, &call.audit).await.into()),
        };
        let user = call.authenticated.take();
        let (info, audit_id, by) = (call.info(), &*audit_id, call.by);
        let answered = RequestOutcome { info, audit_id, code, applies: false, started, by, user, peer };
        self.deliver(response, guard, answered)
    }

    /// The service's answer.
    async fn answer_call(
        &self,
        grpc: &Grpc,
        request: Request<Body>,
        call: &mut GrpcCall<'_>,
    ) -> Result<(Response<Body>, ResponseGuard), CallRefusal> {
        let (mut parts, body) = request.into_parts();
        if call.route == Some(Route::HealthCheck) {
            call.peer.proves(Proof::Unasked);
            return check(grpc, parts, body).await.map(|answer| (answer, ResponseGuard::None));
        }
        let unasked = |_: &_| call.peer.proves(Proof::Unasked);
        call.parsed.check_path().inspect_err(unasked)?;
        if let Some(time) = client_timeout(&parts.headers).inspect_err(unasked)? {
            let end = clock::now() + time;
            (call.client_deadline, call.by) = (Some(end), call.by.min(end));
        }
        let granted = tokio::time::timeout_at(call.by.into(), self.grant_call(grpc, &mut parts, body, call));
        let GrantedCall { route, user, seats, request, stream } =
            granted.await.unwrap_or_else(|_| Err(self.late(call)))?;
        let answer = grpc.routes.call(route, &user, request);
        let answer = tokio::time::timeout_at(call.by.into(), answer).await.map_err(|_| self.late(call))?;
        if let Some(stream) = stream {
            let open = self.metrics.watch_opened(&self.metrics_info(call.info()));
            return Ok((call.open_stream(grpc, answer, stream, seats), ResponseGuard::Watch(open)));
        }
        Ok((unary(answer, call.by), ResponseGuard::Seats(seats)))
    }

    /// Runs all checks that come before the answer to a call.
    async fn grant_call(
        &self,
        grpc: &Grpc,
        parts: &mut request::Parts,
        body: Body,
        call: &GrpcCall<'_>,
    ) -> Result<GrantedCall, CallRefusal> {
        let (token, peer) = (Credential::shown(&parts.headers), call.peer);
        let (caller, proved_by) =
            self.authenticate(&mut parts.headers, peer, call.by, &call.authenticated, &call.audit).await?;
        let credential = Credential::of(proved_by, token, peer);
        let ReadCall { route, infos, body, bytes } =
            self.read_call(grpc, &mut parts.headers, body, call, &caller).await?;
        let info = infos.first().cloned().unwrap_or_else(|| reads_nothing(&call.parsed));
        let also = infos.get(1..).unwrap_or_default();
        call.audit.about(&info, also);
        let _ = call.info.set(info);
        if !also.is_empty() {
            call.audit.annotate(READS, &read::line(&infos));
        }
        let attributes: Vec<AuthorizationAttributes> =
            infos.iter().map(|info| AuthorizationAttributes::from(&**info)).collect();
        let impersonation = impersonation_headers(&parts.headers);
        let work = RequestWork { info: call.info(), also, body: Some(bytes as u64) };
        let GrantedAccess { user, mode, seats, .. } =
            self.grant_access(&caller, &mut parts.headers, &attributes, work, &call.audit, call.by).await?;
        let stream = match route.streams() {
            true => {
                let impersonated = mode.map(|mode| (mode, impersonation));
                Some(self.grant_stream(grpc, &caller, &user, impersonated, credential, attributes)?)
            }
            false => None,
        };
        let body = match &stream {
            Some(stream) if !route.has_one_message() => stream.messages(body),
            _ => body,
        };
        let request = Request::from_parts(parts.clone(), body);
        Ok(GrantedCall { route, user, seats, request, stream })
    }

    fn late(&self, call: &GrpcCall<'_>) -> CallRefusal {
        self.out_of_time(call.info()).into()
    }
}

/// The response to a call that is refused.
fn refused(refusal: CallRefusal) -> (Response<Body>, ResponseGuard, StatusCode) {
    let code = StatusCode::from_u16(refusal.error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status::trailers_only(&refusal.status), ResponseGuard::None, code)
}

/// What a call that reads no objects asks for: no change, though it is sent with POST.
fn reads_nothing(parsed: &RequestInfo) -> Arc<RequestInfo> {
    Arc::new(RequestInfo { verb: Verb::Other("get".to_owned()), ..parsed.clone() })
}
