//! What is told of requests where the server's own log goes: what they are for, and what they carry only where the
//! log asks for it. Queries are left out, they may hold what nobody else should read.

use std::borrow::Cow;
use std::time::Duration;

use drydock_logging::target;
use drydock_storage::backend::Revision;
use http::StatusCode;
use tracing::Span;

use crate::request::info::{RequestInfo, Verb};

/// An answer that takes longer than this is told of (k8s.io/apiserver pkg/endpoints/handlers, trace.LogIfLong).
const SLOW: Duration = Duration::from_millis(500);
/// As many bytes of a body are told.
const MAX_BODY_SHOWN: usize = 8192;
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

/// Tells of each answer where the log asks for it (`-v 6`), and else of one that took long. Watches are meant to; and a failure of the server is told of by what failed, once
/// and not for each request that waited for it.
pub fn answered(info: &RequestInfo, audit_id: &str, status: StatusCode, took: Duration) {
    let (verb, code, path) = (info.verb.as_str(), status.as_u16(), &info.path);
    tracing::debug!(target: target::REQUESTS, "{verb} {path} answered {code} in {:.3} s", took.as_secs_f64());
    if took <= SLOW || info.verb == Verb::Watch || status.is_server_error() {
        return;
    }
    tracing::warn!(verb, path, code, ?took, audit_id = shown(audit_id), "a request was answered slowly");
}

/// Tells of a write that was stored, where the log asks for it (`-v 4`): who asked for what, and which key and revision came
/// of it.
pub fn stored(info: &RequestInfo, user: &str, key: &str, revision: Revision) {
    let (verb, slash) = (info.verb.as_str(), if info.subresource.is_empty() { "" } else { "/" });
    tracing::debug!(
        target: target::WRITES,
        "{verb} of {}{slash}{} by {user}: {key} stored at revision {}",
        info.resource, info.subresource, revision.0
    );
}

/// Tells of the body of a request where the log asks for it (`-v 8`). Objects of ours carry no credentials.
pub fn received(body: &[u8]) {
    if tracing::enabled!(target: target::BODIES, tracing::Level::DEBUG) && !body.is_empty() {
        tracing::debug!(target: target::BODIES, "received {}", shown_body(body));
    }
}

/// The first [`MAX_BODY_SHOWN`] bytes of a body, as text.
pub(crate) fn shown_body(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(MAX_BODY_SHOWN)])
}

fn shown(audit_id: &str) -> &str {
    // Header values that are read as text are ASCII.
    audit_id.get(..ID).unwrap_or(audit_id)
}

#[cfg(test)]
#[path = "spans_tests.rs"]
pub(crate) mod tests;
