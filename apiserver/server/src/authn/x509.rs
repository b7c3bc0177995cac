//! Client certificates: common name is the user, organizations are the groups
//! (k8s.io/apiserver pkg/authentication/request/x509).

use std::collections::BTreeMap;
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;

use super::HostConfig;
use crate::tls::client_cert::subject;
use crate::user::User;

/// The user that the certificate names, if it leads to the client CA. An untrusted certificate is no credential: the
/// next authenticator is asked.
pub fn authenticate(
    config: &HostConfig,
    certificates: &[CertificateDer<'static>],
    now: SystemTime,
) -> Option<User> {
    config.client_ca.as_ref()?.trusts(certificates, now).ok()?;
    let (name, groups) = subject(certificates.first()?)?;
    Some(User { name, uid: String::new(), groups, extra: BTreeMap::new() })
}
