//! Where a request comes from (k8s.io/apimachinery pkg/util/net SourceIPs): the proxies' words first, which anybody
//! may forge, and last the address of the connection, which nobody can.

use std::net::IpAddr;

use http::HeaderMap;

/// Addresses in `X-Forwarded-For`, then `X-Real-Ip` unless it is among them, then the peer's unless it is the last.
pub fn addresses(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut all: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|part| part.trim().parse().ok()).collect();
    if let Some(real) = text("x-real-ip").parse().ok().filter(|ip| !all.contains(ip)) {
        all.push(real);
    }
    if let Some(peer) = peer.map(|ip| ip.to_canonical()).filter(|ip| all.last() != Some(ip)) {
        all.push(peer);
    }
    all.iter().map(ToString::to_string).collect()
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
}
