//! What the audit log reads from headers: the id of a request, and where it comes from.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};

/// Addresses of proxies in an event: the last ones, as each proxy adds its client's at the end.
const MAX_ADDRESSES: usize = 32;

/// Where a request comes from (k8s.io/apimachinery pkg/util/net SourceIPs): what proxies say, which any client can
/// forge, and last the address of the connection, which none can. Addresses in `X-Forwarded-For`, then `X-Real-Ip`
/// unless it is among them, then the peer's unless it is the last.
pub fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut all: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|part| part.trim().parse().ok()).collect();
    all.drain(..all.len().saturating_sub(MAX_ADDRESSES));
    if let Some(real) = text("x-real-ip").parse().ok().filter(|ip| !all.contains(ip)) {
        all.push(real);
    }
    if let Some(peer) = peer.map(|ip| ip.to_canonical()).filter(|ip| all.last() != Some(ip)) {
        all.push(peer);
    }
    all.iter().map(ToString::to_string).collect()
}

/// The id of a request in the logs and in the answer: the client's if it sent one, a new one otherwise.
pub(crate) fn audit_id(headers: &HeaderMap) -> String {
    let sent = headers.get("audit-id").and_then(|value| value.to_str().ok()).filter(|id| !id.is_empty());
    sent.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// Sends the id to the client.
pub(crate) fn write_audit_id(headers: &mut HeaderMap, audit_id: &str) {
    if let Ok(mut value) = HeaderValue::from_str(audit_id) {
        // The id is new in every answer: it would only push repeated headers out of the connection's header table
        // (HPACK).
        value.set_sensitive(true);
        headers.insert("audit-id", value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_listed_after_those_for_whom_it_speaks() {
        let peer = Some(IpAddr::from([127, 0, 0, 1]));
        let of = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, http::HeaderValue::from_static(value));
            }
            addresses(&headers, peer)
        };
        assert_eq!(of(&[]), ["127.0.0.1"]);
        assert_eq!(of(&[("x-forwarded-for", "10.0.0.1, nobody, ::1")]), ["10.0.0.1", "::1", "127.0.0.1"]);
        assert_eq!(of(&[("x-forwarded-for", "10.0.0.1,127.0.0.1")]), ["10.0.0.1", "127.0.0.1"]);
        assert_eq!(
            of(&[("x-forwarded-for", "10.0.0.1"), ("x-real-ip", "10.0.0.1")]),
            ["10.0.0.1", "127.0.0.1"]
        );
        assert_eq!(of(&[("x-real-ip", "10.0.0.2")]), ["10.0.0.2", "127.0.0.1"]);
    }

    /// 20,000 addresses made an event that was longer than events may be, so that it was left out.
    #[test]
    fn a_client_lists_addresses_until_its_event_is_too_long() {
        let mut headers = HeaderMap::new();
        let forged = "::,".repeat(20_000) + "10.0.0.1";
        headers.insert(
            "x-forwarded-for",
            HeaderValue::from_str(&forged).unwrap_or(HeaderValue::from_static("")),
        );
        let all = addresses(&headers, Some(IpAddr::from([127, 0, 0, 1])));
        assert_eq!(
            (all.len(), &all[MAX_ADDRESSES - 1..]),
            (MAX_ADDRESSES + 1, &["10.0.0.1".to_owned(), "127.0.0.1".to_owned()][..])
        );
    }
}
