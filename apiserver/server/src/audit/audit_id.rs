//! The id of a request: it goes into the audit log, the server's own log, and the answer.

use http::{HeaderMap, HeaderValue};

/// The caller's id if it sent one, a new one otherwise.
pub(crate) fn of(headers: &HeaderMap) -> String {
    let sent = headers.get("audit-id").and_then(|value| value.to_str().ok()).filter(|id| !id.is_empty());
    sent.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// Tells the client.
pub(crate) fn write(headers: &mut HeaderMap, audit_id: &str) {
    if let Ok(mut value) = HeaderValue::from_str(audit_id) {
        // New with every answer: it would only push what repeats out of the connection's table of headers.
        value.set_sensitive(true);
        headers.insert("audit-id", value);
    }
}
