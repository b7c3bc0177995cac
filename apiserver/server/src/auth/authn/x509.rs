//! Client certificates: common name is the user, organizations are the groups
//! (k8s.io/apiserver pkg/authentication/request/x509).

use std::collections::BTreeMap;

use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use crate::request::user::User;
use crate::tls::client_cert::{subject, uid};

/// The extra that tells one credential of a user from another.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user that a certificate under the client CA names, if it names one.
pub fn user(certificate: &CertificateDer<'static>) -> Option<User> {
    let (name, groups) = subject(certificate)?;
    let uid = uid(certificate).ok()?.unwrap_or_default();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![fingerprint(certificate)])]);
    Some(User { name, uid, groups, extra })
}

/// `X509SHA256=` and the digest of the certificate.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let digest = Sha256::digest(certificate.as_ref());
    digest.iter().fold("X509SHA256=".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
