//! What the server's own log says of requests: what they ask for, and their bodies only at high verbosity. Queries are
//! left out: they may hold secrets.

use std::time::Duration;

use drydock_logging::target::{self, shown_body};
use drydock_serving::request::info::{RequestInfo, Verb};
use drydock_storage::backend::Revision;
use http::StatusCode;
use tracing::Span;

/// An answer that takes longer than this is logged (k8s.io/apiserver pkg/endpoints/handlers, trace.LogIfLong).
const SLOW: Duration = Duration::from_millis(500);
/// Maximum bytes of an audit id that are logged (k8s.io/apiserver pkg/audit, GetAuditIDTruncated).
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

/// Logs each answer at `-v 6`, and a slow one always. Watches are meant to take long; and a failure of the server is
/// logged once by the part that failed, not for each request that waited for it.
pub fn answered(info: &RequestInfo, audit_id: &str, status: StatusCode, took: Duration) {
    let (verb, code, path) = (info.verb.as_str(), status.as_u16(), &info.path);
    tracing::debug!(target: target::REQUESTS, "{verb} {path} answered {code} in {:.3} s", took.as_secs_f64());
    if took <= SLOW || info.verb == Verb::Watch || status.is_server_error() {
        return;
    }
    tracing::warn!(verb, path, code, ?took, audit_id = shown(audit_id), "a request was answered slowly");
}

/// Logs a write that was stored, at `-v 4`: the user, what was asked for, the key and the revision.
pub fn stored(info: &RequestInfo, user: &str, key: &str, revision: Revision) {
    let (verb, slash) = (info.verb.as_str(), if info.subresource.is_empty() { "" } else { "/" });
    tracing::debug!(
        target: target::WRITES,
        "{verb} of {}{slash}{} by {user}: {key} stored at revision {}",
        info.resource, info.subresource, revision.0
    );
}

/// Logs the body of a request at `-v 8`. Objects of ours carry no credentials.
pub fn received(body: &[u8]) {
    if tracing::enabled!(target: target::BODIES, tracing::Level::DEBUG) && !body.is_empty() {
        tracing::debug!(target: target::BODIES, "received {}", shown_body(body));
    }
}

fn shown(audit_id: &str) -> &str {
    // Header values that are read as text are ASCII.
    audit_id.get(..ID).unwrap_or(audit_id)
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
