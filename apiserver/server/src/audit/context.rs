//! Collects what becomes known of one request, and makes the events that log it.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use drydock_machinery::error::Status;
use drydock_machinery::{ApiError, Object};
use drydock_serving::auth::authn::Peer;
use drydock_serving::auth::authz::Decision;
use drydock_serving::guarded_body::guard;
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::body::LoggedBody;
use super::direct::DirectRequest;
use super::event::{AuthenticationMetadata, Event, ResponseStatus, UserInfo};
use super::policy::{AuditStage, Level, RequestAuditConfig};
use super::{Audit, headers};

/// The audit context of one request; it is empty for one that is not logged.
#[derive(Clone, Default)]
pub struct AuditContext(Option<Arc<Record>>);

struct Record {
    audit: Arc<Audit>,
    state: Mutex<State>,
}

struct State {
    event: Event,
    /// `None` until the policy has been asked.
    config: Option<RequestAuditConfig>,
    /// What is read in addition to the resource that the event names.
    also: Vec<Arc<RequestInfo>>,
    /// Whether the request came through a front proxy.
    is_proxied: bool,
    /// A request whose answer decides whether it is logged; `None` where the policy decides.
    direct: Option<DirectRequest>,
    /// Whether the last event has been made.
    closed: bool,
}

impl AuditContext {
    pub(super) fn begin(
        audit: Arc<Audit>,
        request: &Request<Body>,
        info: &RequestInfo,
        audit_id: &str,
        peer: &Peer,
    ) -> Self {
        let mut event = Event::new(request, info, audit_id.to_owned());
        event.source_ips = headers::addresses(request.headers(), peer.address());
        let state =
            State { event, config: None, also: Vec::new(), is_proxied: false, direct: None, closed: false };
        let state = Mutex::new(state);
        Self(Some(Arc::new(Record { audit, state })))
    }

    /// Sets what the request is about, which was not known when it came, and what else it reads. What the policy says
    /// of each is [joined](RequestAuditConfig::and).
    pub fn about(&self, info: &RequestInfo, also: &[Arc<RequestInfo>]) {
        self.visit(Level::Metadata, |event| event.about(info));
        if let Some(record) = &self.0 {
            record.state.lock().also = also.to_vec();
        }
    }

    /// Records that a front proxy sent the request for its user.
    pub fn came_through_front_proxy(&self) {
        if let Some(record) = &self.0 {
            record.state.lock().is_proxied = true;
        }
    }

    /// Logs that the request has come from this user; only the first call counts. Fails with 500 if it must be logged
    /// first and cannot be.
    pub async fn received(&self, user: &User, info: &RequestInfo) -> Result<(), ApiError> {
        let Some(record) = &self.0 else { return Ok(()) };
        if !record.decide(Some(user), info) {
            return Ok(());
        }
        let Some(line) = record.line(AuditStage::RequestReceived) else { return Ok(()) };
        if record.audit.log.write(line).await {
            return Ok(());
        }
        record.audit.counts.rejected();
        Err(ApiError::internal("failed to store audit event"))
    }

    /// Records that the user acts as another user, under a constraint unless that is empty.
    pub fn impersonated(&self, user: &User, constraint: &str) {
        self.visit(Level::Metadata, |event| {
            event.impersonated_user = Some(UserInfo::from(user));
            event.authentication_metadata = AuthenticationMetadata::of(constraint);
        });
    }

    /// Records whether the user is authorized (k8s.io/apiserver pkg/endpoints/filters/authorization.go).
    pub fn authorized(&self, decision: &Result<Decision, ApiError>) {
        match decision {
            Ok(decision) => {
                let word = if decision.allowed { "allow" } else { "forbid" };
                self.annotate("authorization.k8s.io/decision", word);
                self.annotate("authorization.k8s.io/reason", &decision.reason);
            }
            Err(_) => self.annotate("authorization.k8s.io/reason", "internal error"),
        }
    }

    /// Adds an annotation under a key that names its author. The first value of a key counts.
    pub fn annotate(&self, key: &str, value: &str) {
        self.annotate_at(Level::Metadata, key, value);
    }

    /// The same for logs of this level and above: an annotation that shows parts of the object needs a level that shows
    /// objects.
    pub fn annotate_at(&self, level: Level, key: &str, value: &str) {
        self.visit(level, |event| {
            let kept = event.annotations.entry(key.to_owned()).or_insert_with(|| value.to_owned());
            if kept != value {
                let id = &event.audit_id;
                tracing::warn!(key, value, audit_id = id, "an audit annotation has another value already");
            }
        });
    }

    /// Records the object that was sent.
    pub fn request(&self, object: &Object) {
        self.visit(Level::Metadata, |event| {
            let Some(about) = &mut event.object_ref else { return };
            let fill = |slot: &mut String, text: &str| {
                if slot.is_empty() {
                    text.clone_into(slot);
                }
            };
            fill(&mut about.namespace, object.namespace());
            fill(&mut about.name, object.name());
            fill(&mut about.uid, object.uid());
            fill(&mut about.resource_version, object.resource_version());
        });
        self.with_body(Level::Request, |event, omit| {
            event.request_object = LoggedBody::of_object(&object.to_json(), omit);
        });
    }

    /// Records the patch, or the options of a delete, that was sent. `sent` is called only if it is to be logged;
    /// YAML is written as JSON.
    pub fn request_body(&self, sent: impl FnOnce() -> Bytes) {
        self.with_body(Level::Request, |event, _| event.request_object = LoggedBody::of_sent(&sent()));
    }

    /// Records the answer's body. `json` is called only if it is to be logged.
    pub fn response(&self, json: impl FnOnce() -> Bytes) {
        self.with_body(Level::RequestResponse, |event, omit| {
            event.response_object = LoggedBody::of_object(&json(), omit);
        });
    }

    /// Records a Status as the answer.
    pub fn status(&self, status: &Status) {
        self.visit(Level::Metadata, |event| event.response_status = Some(ResponseStatus::from(status)));
        self.response(|| status.to_json());
    }

    /// Logs that the request panicked, as its last event.
    pub async fn panicked(&self, why: &str, info: &RequestInfo) {
        let Some(record) = &self.0 else { return };
        record.decide(None, info);
        record.settle(StatusCode::INTERNAL_SERVER_ERROR);
        let message = format!("APIServer panic'd: {why}");
        self.status(&ApiError::new(500, "InternalError", message, None).status);
        if let Some(line) = record.line(AuditStage::Panic) {
            record.audit.log.write(line).await;
        }
    }

    /// Logs the beginning and the end of the answer, which counts as `code`. The event of a request that was not
    /// authenticated has no user, and only the beginning of its answer is logged (k8s.io/apiserver
    /// pkg/endpoints/filters/authn_audit.go).
    pub async fn answered(
        &self,
        response: Response<Body>,
        code: StatusCode,
        info: &RequestInfo,
        streams: bool,
    ) -> Response<Body> {
        let Some(record) = &self.0 else { return response };
        let unknown = record.decide(None, info);
        record.settle(code);
        if !record.is_at(Level::Metadata) {
            return response;
        }
        record.state.lock().event.response_status.get_or_insert_default().code = code.as_u16();
        if unknown || streams {
            record.write(AuditStage::ResponseStarted).await;
        }
        if unknown {
            record.state.lock().closed = true;
            return response;
        }
        if !streams && response.body().size_hint().exact().is_some() {
            record.write(AuditStage::ResponseComplete).await;
            return response;
        }
        // Its last event is made when it has been sent.
        guard(response, record.clone()).map(|body| Body::new(body.boxed_unsync()))
    }

    fn visit(&self, level: Level, change: impl FnOnce(&mut Event)) {
        if let Some(record) = self.0.as_ref().filter(|record| record.is_at(level)) {
            change(&mut record.state.lock().event);
        }
    }

    /// The second argument of `change` is whether to leave managedFields out.
    fn with_body(&self, level: Level, change: impl FnOnce(&mut Event, bool)) {
        let Some(record) = self.0.as_ref().filter(|record| record.is_at(level)) else { return };
        let state = &mut *record.state.lock();
        let omit = state.config.as_ref().is_some_and(|config| config.omit_managed_fields);
        change(&mut state.event, omit);
    }
}

impl Drop for Record {
    /// Logs the end of the request in every case: the answer has been sent, or the client is gone.
    fn drop(&mut self) {
        // A write whose client is gone may have been made.
        self.settle(StatusCode::OK);
        let state = self.state.get_mut();
        if state.closed || state.config.is_none() {
            return;
        }
        state.event.response_status.get_or_insert_with(ResponseStatus::closed_early);
        if let Some(line) = self.line(AuditStage::ResponseComplete) {
            self.audit.log.write_later(line);
        }
    }
}

impl Record {
    /// Asks the policy, unless it has been asked; returns whether it was asked now.
    fn decide(&self, user: Option<&User>, info: &RequestInfo) -> bool {
        let mut state = self.state.lock();
        if state.config.is_some() {
            return false;
        }
        let of = |info: &RequestInfo| self.audit.policy.config(user, info);
        let config = state.also.iter().map(|info| of(info)).fold(of(info), RequestAuditConfig::and);
        if self.audit.logs_direct_requests && !state.is_proxied && config.level == Level::None {
            state.direct = Some(DirectRequest::new(user, info));
        } else {
            self.audit.counts.level(config.level);
        }
        state.event.level = config.level;
        state.event.user = user.map(UserInfo::from).unwrap_or_default();
        state.config = Some(config);
        true
    }

    /// Decides by the code of the answer whether a direct request is logged of which the policy logs nothing.
    fn settle(&self, code: StatusCode) {
        let mut state = self.state.lock();
        let Some(direct) = state.direct.take() else { return };
        let config = direct.config(code, |is_stranger| self.audit.has_room_for_refusal(is_stranger));
        let config = config.unwrap_or_default();
        state.event.level = config.level;
        state.config = Some(config);
        self.audit.counts.level(state.event.level);
    }

    /// Whether what this level logs is to be recorded. Before the policy has been asked, only the metadata is.
    fn is_at(&self, level: Level) -> bool {
        let state = self.state.lock();
        let is_logged = state.config.as_ref().is_some_and(|config| config.level >= level);
        is_logged || level <= Level::Metadata && (state.config.is_none() || state.direct.is_some())
    }

    /// Returns the line of a stage's event; `None` if it is not logged.
    fn line(&self, stage: AuditStage) -> Option<Vec<u8>> {
        let state = &mut *self.state.lock();
        state.closed |= matches!(stage, AuditStage::ResponseComplete | AuditStage::Panic);
        let config = state.config.as_ref().filter(|config| config.level > Level::None)?;
        if config.omit_stages.contains(&stage) {
            return None;
        }
        let event = &mut state.event;
        event.stage = stage;
        let received = event.request_received_timestamp;
        event.stage_timestamp =
            if stage == AuditStage::RequestReceived { received } else { Timestamp::now() };
        self.audit.counts.event();
        self.audit.lines.of(event)
    }

    async fn write(&self, stage: AuditStage) {
        if let Some(line) = self.line(stage) {
            self.audit.log.write(line).await;
        }
    }
}
