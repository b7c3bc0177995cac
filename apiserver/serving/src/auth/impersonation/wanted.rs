//! The user that the impersonation headers of a request name.

use std::collections::BTreeMap;

use drydock_machinery::field::{Error, Path, aggregate};
use drydock_machinery::quote::go_quote;
use drydock_machinery::{ApiError, names};
use http::{HeaderMap, HeaderName};

use crate::auth::authn::request_header::{first, keys_under};
use crate::request::user::User;

const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");
const EXTRA: &str = "impersonate-extra-";

/// The user that the headers name; 400 if they name groups, a uid or extras without a user.
pub(super) fn read(headers: &HeaderMap) -> Result<Option<User>, ApiError> {
    let name = first(headers, USER.as_str());
    let groups = values(headers, &GROUP);
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, key) in keys_under(headers, EXTRA) {
        extra.entry(key).or_default().extend(values(headers, &header));
    }
    let uid = first(headers, UID.as_str()).unwrap_or_default();
    match name {
        Some(name) => Ok(Some(User { name, uid, groups, extra })),
        None if groups.is_empty() && extra.is_empty() && uid.is_empty() => Ok(None),
        None => {
            let who = shown(&User { name: String::new(), uid, groups, extra });
            Err(ApiError::bad_request(format!("requested {who} without impersonating a user name")))
        }
    }
}

/// Removes the impersonation headers.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in [USER, GROUP, UID] {
        headers.remove(name);
    }
    for (name, _) in keys_under(headers, EXTRA) {
        headers.remove(name);
    }
}

/// Returns every value of a header, empty ones too: the host is asked about them as well.
fn values(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
}

/// A user as Go's `%#v` shows one.
fn shown(user: &User) -> String {
    let list = |texts: &[String]| texts.iter().map(|text| go_quote(text)).collect::<Vec<_>>().join(", ");
    let groups = match user.groups.as_slice() {
        [] => "(nil)".to_owned(),
        groups => format!("{{{}}}", list(groups)),
    };
    let entry =
        |(key, values): (&String, &Vec<String>)| format!("{}:[]string{{{}}}", go_quote(key), list(values));
    let extra = match user.extra.len() {
        0 => "(nil)".to_owned(),
        _ => format!("{{{}}}", user.extra.iter().map(entry).collect::<Vec<_>>().join(", ")),
    };
    let (name, uid) = (go_quote(&user.name), go_quote(&user.uid));
    // The type name is the one that Kubernetes prints there.
    format!(
        "&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}"
    )
}

/// Returns why these extras may not be impersonated under a constraint (k8s.io/apiserver
/// pkg/endpoints/filters/impersonation/mode.go, validateExtra).
pub(super) fn check_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    let not_allowed = |what: &str| Err(format!("impersonating {what} in extra is not allowed"));
    for (key, values) in extra {
        if key.is_empty() {
            return not_allowed("the empty string key");
        }
        if let Some(why) = aggregate(&domain_prefixed(key)) {
            return Err(format!("impersonating an invalid key in extra is not allowed: {why}"));
        }
        if key.to_lowercase() != *key {
            return Err(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
        }
        if values.is_empty() {
            return not_allowed("empty values");
        }
        if values.iter().any(String::is_empty) {
            return not_allowed("the empty string value");
        }
    }
    Ok(())
}

/// `domain/path` (k8s.io/apimachinery pkg/util/validation, IsDomainPrefixedPath).
fn domain_prefixed(key: &str) -> Vec<Error> {
    let path = || Path::new("extra").child("key");
    let Some((domain, rest)) =
        key.split_once('/').filter(|(domain, rest)| !domain.is_empty() && !rest.is_empty())
    else {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return vec![Error::invalid(path(), key, detail)];
    };
    let mut errors: Vec<Error> =
        names::dns1123_subdomain(domain).into_iter().map(|why| Error::invalid(path(), domain, why)).collect();
    if !rest.bytes().all(is_path) {
        let detail = names::regex_error("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(Error::invalid(path(), rest, detail));
    }
    errors
}

fn is_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::HeaderValue;

    use super::*;

    fn named(pairs: &[(&'static str, &'static str)]) -> Result<Option<User>, ApiError> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        read(&headers)
    }

    #[test]
    fn groups_of_nobody_are_refused_and_no_headers_change_nothing() {
        for (name, value, shown) in [
            ("impersonate-group", "a", r#"UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)"#),
            ("impersonate-uid", "7", r#"UID:"7", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
            (
                "impersonate-extra-a%2fb",
                "c",
                r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"a/b":[]string{"c"}}"#,
            ),
        ] {
            let error = named(&[(name, value)]).unwrap_err();
            let expected = format!(
                "requested &user.DefaultInfo{{Name:\"\", {shown}}} without impersonating a user name"
            );
            assert_eq!((error.code(), error.to_string()), (400, expected));
        }
        assert_eq!(named(&[("accept", "*/*")]).unwrap(), None);
    }

    #[test]
    fn keys_of_extras_are_unescaped_and_in_lower_case() {
        let user = named(&[("impersonate-user", "jane"), ("impersonate-extra-example.com%2fscope", "read")]);
        assert_eq!(user.unwrap().unwrap().extra["example.com/scope"], ["read"]);
    }
}
