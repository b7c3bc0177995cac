//! Front-proxy authentication: headers are believed only from a client that shows the front proxy's certificate
//! (k8s.io/apiserver pkg/authentication/request/headerrequest).

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;

use super::HostConfig;
use crate::tls::client_cert::subject;
use crate::user::User;

/// The user that the headers name, if the certificate is that of a front proxy and a name header is present.
pub fn authenticate(
    config: &HostConfig,
    headers: &HeaderMap,
    certificates: &[CertificateDer<'static>],
    now: SystemTime,
) -> Option<User> {
    let ca = config.requestheader_ca.as_ref()?;
    ca.trusts(certificates, now).ok()?;
    let (common_name, _) = subject(certificates.first()?)?;
    if !config.allowed_names.is_empty() && !config.allowed_names.contains(&common_name) {
        return None;
    }
    let name = first(headers, &config.username_headers)?;
    Some(User {
        name,
        uid: first(headers, &config.uid_headers).unwrap_or_default(),
        groups: config.group_headers.iter().flat_map(|h| all(headers, h)).collect(),
        extra: extra(headers, &config.extra_prefixes),
    })
}

/// Removes every header that a front proxy may set, believed or not, so that nothing behind reads them.
pub fn strip(config: &HostConfig, headers: &mut HeaderMap) {
    for name in config.username_headers.iter().chain(&config.uid_headers).chain(&config.group_headers) {
        headers.remove(name.as_str());
    }
    let extras: Vec<HeaderName> = headers
        .keys()
        .filter(|name| config.extra_prefixes.iter().any(|p| has_prefix(name, p)))
        .cloned()
        .collect();
    for name in extras {
        headers.remove(name);
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names.iter().flat_map(|name| all(headers, name)).find(|value| !value.is_empty())
}

fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).map(str::to_owned).collect()
}

fn extra(headers: &HeaderMap, prefixes: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in prefixes {
        for name in headers.keys().filter(|name| has_prefix(name, prefix)) {
            // Header names arrive in lower case; keys are percent-decoded after that.
            let key = percent_decode_str(&name.as_str()[prefix.len()..]).decode_utf8_lossy().into_owned();
            extra.entry(key).or_default().extend(all(headers, name.as_str()));
        }
    }
    extra
}

fn has_prefix(name: &HeaderName, prefix: &str) -> bool {
    name.as_str().len() >= prefix.len() && name.as_str()[..prefix.len()].eq_ignore_ascii_case(prefix)
}
