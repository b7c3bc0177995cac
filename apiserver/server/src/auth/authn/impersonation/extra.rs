//! Extras that nobody may have who is not impersonated without constraint
//! (k8s.io/apiserver pkg/endpoints/filters/impersonation/mode.go, validateExtra).

use std::collections::BTreeMap;

use drydock_machinery::field::{Error, Path, aggregate};
use drydock_machinery::names;

/// Why not.
pub(super) fn check(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
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
