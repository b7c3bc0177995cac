//! Front-proxy authentication: headers are trusted only from a client that shows the front proxy's certificate
//! (k8s.io/apiserver pkg/authentication/request/headerrequest).

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;

use super::HostConfig;
use crate::request::user::User;
use crate::tls::client_cert::subject;

/// Whether a certificate under the front proxies' CA is a front proxy's, by its common name.
pub(crate) fn is_front_proxy(config: &HostConfig, certificate: &CertificateDer<'static>) -> bool {
    let Some((common_name, _)) = subject(certificate) else { return false };
    config.allowed_names.is_empty() || config.allowed_names.contains(&common_name)
}

/// The user that a front proxy's headers name, if a name header is present.
pub(crate) fn user(config: &HostConfig, headers: &HeaderMap) -> Option<User> {
    let named = |names: &[String]| names.iter().find_map(|name| first(headers, name));
    Some(User {
        name: named(&config.username_headers)?,
        uid: named(&config.uid_headers).unwrap_or_default(),
        groups: config.group_headers.iter().flat_map(|h| all(headers, h)).collect(),
        extra: extra(headers, &config.extra_prefixes),
    })
}

/// Removes every header that a front proxy may set, trusted or not, so that no later step reads them.
pub(crate) fn strip(config: &HostConfig, headers: &mut HeaderMap) {
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

/// The first value of a header, unless it is empty.
pub fn first(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(text).filter(|value| !value.is_empty())
}

/// Every value of a header that is not empty.
pub fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().map(text).filter(|value| !value.is_empty()).collect()
}

/// The headers whose names begin with `prefix` in any case, with the key that the rest of the name stands for:
/// lower case, then percent-decoded.
pub(crate) fn keys_under(headers: &HeaderMap, prefix: &str) -> Vec<(HeaderName, String)> {
    let keyed = headers.keys().filter_map(|name| Some((name.clone(), unescaped(after(name, prefix)?))));
    keyed.collect()
}

fn after<'a>(name: &'a HeaderName, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.as_str().split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Malformed escapes leave the whole key as it is (Go: `url.PathUnescape`).
fn unescaped(key: &str) -> String {
    if crate::request::query::escapes_are_whole(key.as_bytes()) {
        percent_decode_str(key).decode_utf8_lossy().into_owned()
    } else {
        key.to_owned()
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
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
