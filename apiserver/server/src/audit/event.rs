//! An event of the audit log, as audit.k8s.io/v1 writes it (k8s.io/apiserver pkg/apis/audit/v1/types.go).

use std::collections::BTreeMap;

use drydock_machinery::error::{Status, StatusDetails};
use drydock_machinery::metav1::time::format_micros;
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::body::LoggedBody;
use super::counts::AuditMetrics;
use super::policy::{AuditStage, Level};

/// Longest user agent that is logged whole (k8s.io/apiserver pkg/audit/request.go, maxUserAgentLength).
const USER_AGENT: usize = 1024;

/// One event. It never holds the credentials of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    pub(super) level: Level,
    #[serde(rename = "auditID")]
    pub(super) audit_id: String,
    pub(super) stage: AuditStage,
    #[serde(rename = "requestURI")]
    pub(super) request_uri: String,
    pub(super) verb: String,
    pub(super) user: UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) impersonated_user: Option<UserInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authentication_metadata: Option<AuthenticationMetadata>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub(super) source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object_ref: Option<ObjectReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_status: Option<ResponseStatus>,
    #[serde(skip)]
    pub(super) request_object: Option<LoggedBody>,
    #[serde(skip)]
    pub(super) response_object: Option<LoggedBody>,
    #[serde(serialize_with = "micro_time")]
    pub(super) request_received_timestamp: Timestamp,
    #[serde(serialize_with = "micro_time")]
    pub(super) stage_timestamp: Timestamp,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// authentication.k8s.io/v1 UserInfo.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UserInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) groups: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: BTreeMap<String, Vec<String>>,
}

/// How a user came to act as another.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticationMetadata {
    impersonation_constraint: String,
}

impl AuthenticationMetadata {
    /// `None` for impersonation without constraint.
    pub(super) fn of(constraint: &str) -> Option<Self> {
        (!constraint.is_empty()).then(|| Self { impersonation_constraint: constraint.to_owned() })
    }
}

/// What a request is for.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subresource: String,
}

/// The bounded part of a Status.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseStatus {
    metadata: BTreeMap<(), ()>,
    #[serde(skip_serializing_if = "str::is_empty")]
    status: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<StatusDetails>,
    pub(super) code: u16,
}

impl Event {
    /// What is known of a request when it comes; its level and its user come later.
    pub fn new(request: &http::Request<axum::body::Body>, info: &RequestInfo, audit_id: String) -> Self {
        let now = Timestamp::now();
        let uri = request.uri();
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: Level::None,
            audit_id,
            stage: AuditStage::RequestReceived,
            request_uri: match uri.path_and_query() {
                _ if info.is_cut => info.path.clone(),
                Some(whole) => whole.to_string(),
                None => uri.path().to_owned(),
            },
            verb: info.verb.to_string(),
            user: UserInfo::default(),
            impersonated_user: None,
            authentication_metadata: None,
            source_ips: Vec::new(),
            user_agent: user_agent(request.headers()),
            object_ref: info.is_resource.then(|| ObjectReference::from(info)),
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: now,
            stage_timestamp: now,
            annotations: BTreeMap::new(),
        }
    }

    /// Sets verb and object to those of another request.
    pub(super) fn about(&mut self, info: &RequestInfo) {
        self.verb = info.verb.to_string();
        self.object_ref = info.is_resource.then(|| ObjectReference::from(info));
    }

    /// The event in one line of JSON.
    pub fn json(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.pop();
        for (field, body) in
            [("requestObject", &self.request_object), ("responseObject", &self.response_object)]
        {
            let Some(body) = body else { continue };
            line.extend_from_slice(format!(",\"{field}\":").as_bytes());
            line.extend_from_slice(body.text().as_bytes());
        }
        line.extend_from_slice(b"}\n");
        Ok(line)
    }
}

impl ResponseStatus {
    /// The status of an answer that was never begun, because the client is gone (k8s.io/apiserver
    /// pkg/endpoints/filters/audit.go).
    pub(super) fn closed_early() -> Self {
        let [status, message] = ["Success", "Connection closed early"].map(str::to_owned);
        Self { status, message, code: 200, ..Self::default() }
    }
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        let User { name, uid, groups, extra } = user.clone();
        Self { username: name, uid, groups, extra }
    }
}

impl From<&RequestInfo> for ObjectReference {
    fn from(info: &RequestInfo) -> Self {
        Self {
            resource: info.resource.clone(),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            api_group: info.group.clone(),
            api_version: info.version.clone(),
            subresource: info.subresource.clone(),
            ..Self::default()
        }
    }
}

impl From<&Status> for ResponseStatus {
    fn from(status: &Status) -> Self {
        Self {
            metadata: BTreeMap::new(),
            status: status.status.clone(),
            message: status.message.clone(),
            reason: status.reason.clone(),
            details: status.details.clone(),
            code: status.code,
        }
    }
}

fn user_agent(headers: &http::HeaderMap) -> String {
    let sent = headers.get(http::header::USER_AGENT).map(http::HeaderValue::as_bytes).unwrap_or_default();
    match sent.get(..USER_AGENT).filter(|_| sent.len() > USER_AGENT) {
        Some(start) => format!("{}...TRUNCATED", String::from_utf8_lossy(start)),
        None => String::from_utf8_lossy(sent).into_owned(),
    }
}

fn micro_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_micros(*time))
}

/// Annotation of an event whose bodies were left out because it was too long.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// Makes the lines of a log.
pub(super) struct AuditLines {
    /// Maximum bytes of an event.
    pub(super) longest: Option<usize>,
    pub(super) counts: AuditMetrics,
}

impl AuditLines {
    /// The event's line; without its bodies if it is too long, and none at all if it still is (k8s.io/apiserver
    /// plugin/pkg/audit/truncate).
    pub(super) fn of(&self, event: &mut Event) -> Option<Vec<u8>> {
        let line = self.whole(event)?;
        let fits = |line: &Vec<u8>| self.longest.is_none_or(|longest| line.len() <= longest);
        if fits(&line) {
            return Some(line);
        }
        self.bare(event).filter(fits).or_else(|| {
            self.counts.error("truncate");
            let id = &event.audit_id;
            tracing::error!(audit_id = id, "event is too large even after truncating");
            None
        })
    }

    fn whole(&self, event: &Event) -> Option<Vec<u8>> {
        let line = event.json();
        line.inspect_err(|error| {
            self.counts.error("log");
            tracing::error!(%error, "Error in audit plugin 'log' affecting 1 audit events");
        })
        .ok()
    }

    fn bare(&self, event: &mut Event) -> Option<Vec<u8>> {
        let bodies = (event.request_object.take(), event.response_object.take());
        event.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        let line = self.whole(event);
        (event.request_object, event.response_object) = bodies;
        event.annotations.remove(TRUNCATED);
        line
    }
}
