//! Front-proxy authentication: headers are believed only from a client that shows the front proxy's certificate
//! (k8s.io/apiserver pkg/authentication/request/headerrequest).

use std::collections::BTreeMap;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;

use super::HostConfig;
use super::headers::{all, first, keys_under};
use crate::request::user::User;
use crate::tls::client_cert::subject;

/// Whether a certificate under the front proxies' CA is a front proxy's, by its common name.
pub fn is_front_proxy(config: &HostConfig, certificate: &CertificateDer<'static>) -> bool {
    let Some((common_name, _)) = subject(certificate) else { return false };
    config.allowed_names.is_empty() || config.allowed_names.contains(&common_name)
}

/// The user that a front proxy's headers name, if a name header is present.
pub fn user(config: &HostConfig, headers: &HeaderMap) -> Option<User> {
    let named = |names: &[String]| names.iter().find_map(|name| first(headers, name));
    Some(User {
        name: named(&config.username_headers)?,
        uid: named(&config.uid_headers).unwrap_or_default(),
        groups: config.group_headers.iter().flat_map(|h| all(headers, h)).collect(),
        extra: extra(headers, &config.extra_prefixes),
    })
}

/// Removes every header that a front proxy may set, believed or not, so that nothing behind reads them.
pub fn strip(config: &HostConfig, headers: &mut HeaderMap) {
    for name in config.username_headers.iter().chain(&config.uid_headers).chain(&config.group_headers) {
        headers.remove(name.as_str());
    }
    for prefix in &config.extra_prefixes {
        for (name, _) in keys_under(headers, prefix) {
            headers.remove(name);
        }
    }
}

fn extra(headers: &HeaderMap, prefixes: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in prefixes {
        for (name, key) in keys_under(headers, prefix) {
            extra.entry(key).or_default().extend(all(headers, name.as_str()));
        }
    }
    extra
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn config() -> HostConfig {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        HostConfig {
            username_headers: names(&["X-Remote-User", "X-User"]),
            uid_headers: names(&["X-Remote-Uid"]),
            group_headers: names(&["X-Remote-Group"]),
            extra_prefixes: names(&["X-Remote-Extra-", "ü"]),
            ..HostConfig::default()
        }
    }

    fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn the_first_name_header_that_says_something_counts() {
        let user = user(&config(), &headers(&[("x-remote-user", b""), ("x-user", b"second")])).unwrap();
        assert_eq!(user.name, "second");
        assert_eq!(super::user(&config(), &headers(&[("x-remote-group", b"g")])), None);
    }

    #[test]
    fn a_name_beyond_ascii_is_a_name() {
        let sent = headers(&[("x-remote-user", "jürgen".as_bytes()), ("x-remote-group", "Köln".as_bytes())]);
        let user = user(&config(), &sent).unwrap();
        assert_eq!((user.name.as_str(), user.groups), ("jürgen", vec!["Köln".to_owned()]));
    }

    #[test]
    fn groups_are_those_of_every_header_that_says_something() {
        let sent = headers(&[
            ("x-remote-user", b"a"),
            ("x-remote-group", b"one"),
            ("x-remote-group", b""),
            ("x-remote-group", b"two, not three"),
        ]);
        assert_eq!(user(&config(), &sent).unwrap().groups, ["one", "two, not three"]);
    }

    #[test]
    fn keys_of_extras_are_decoded_whole_or_not_at_all() {
        let sent = headers(&[
            ("x-remote-user", b"a"),
            ("x-remote-extra-example.com%2fScope", b"read"),
            ("X-Remote-Extra-a%zz%41", b"kept"),
        ]);
        let extra = user(&config(), &sent).unwrap().extra;
        assert_eq!(extra.keys().collect::<Vec<_>>(), ["a%zz%41", "example.com/scope"]);
    }

    #[test]
    fn nothing_behind_sees_what_only_a_proxy_may_set() {
        let mut sent = headers(&[
            ("x-remote-user", b"a"),
            ("x-user", b"b"),
            ("x-remote-uid", b"u"),
            ("x-remote-group", b"g"),
            ("x-remote-group", b"h"),
            ("x-remote-extra-scope", b"s"),
            ("accept", b"*/*"),
        ]);
        strip(&config(), &mut sent);
        assert_eq!(sent.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
