//! What is told of requests where the server's own log goes: what they are for, never what they carry. Queries are
//! left out, they may hold what nobody else should read.

use std::time::Duration;

use http::StatusCode;
use tracing::Span;

use crate::request_info::{RequestInfo, Verb};

/// An answer that takes longer than this is told of (k8s.io/apiserver pkg/endpoints/handlers, trace.LogIfLong).
const SLOW: Duration = Duration::from_millis(500);
/// As much of an audit id is told (k8s.io/apiserver pkg/audit, GetAuditIDTruncated).
const ID: usize = 64;

/// The span in which a request is answered; off unless the log's filter asks for it (`drydock_server=debug`).
pub fn request(info: &RequestInfo, audit_id: &str) -> Span {
    tracing::debug_span!(
        "request",
        verb = info.verb.as_str(),
        group = info.group,
        resource = info.resource,
        subresource = info.subresource,
        namespace = info.namespace,
        name = info.name,
        path = if info.is_resource { "" } else { info.path.as_str() },
        audit_id = shown(audit_id),
    )
}

/// Tells of an answer that took long. Watches are meant to; and a failure of the server is told of by what failed, once
/// and not for each request that waited for it.
pub fn answered(info: &RequestInfo, audit_id: &str, status: StatusCode, took: Duration) {
    if took <= SLOW || info.verb == Verb::Watch || status.is_server_error() {
        return;
    }
    tracing::warn!(
        verb = info.verb.as_str(),
        path = info.path,
        code = status.as_u16(),
        ?took,
        audit_id = shown(audit_id),
        "a request was answered slowly"
    );
}

fn shown(audit_id: &str) -> &str {
    // Header values that are read as text are ASCII.
    audit_id.get(..ID).unwrap_or(audit_id)
}
