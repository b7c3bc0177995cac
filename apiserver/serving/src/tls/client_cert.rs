//! Client certificates: the handshake proves that the peer holds the key; whether the certificate is trusted is
//! decided after it, against the CA bundles of that moment, and again when they change
//! ([`crate::auth::authn::peer`]).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The part of a subject that is a user's uid (k8s.io/apimachinery pkg/apis/asn1).
const UID: &str = "1.3.6.1.4.1.57683.2";

/// Maximum certificates that a client may show: its own, and those between it and the CA. Finding a path through
/// certificates that all have the same name takes up to 16 verified signatures with four of them, 65 with five, and
/// with more as many as webpki allows (100).
const LONGEST_CHAIN: usize = 4;
/// Maximum bytes of them; they are kept for as long as the connection lasts.
const CHAIN_BYTES: usize = 16 << 10;

/// A CA bundle that client certificates are checked against.
#[derive(Clone, Debug)]
pub struct ClientCa {
    verifier: Arc<dyn ClientCertVerifier>,
    certificates: Arc<[CertificateDer<'static>]>,
}

impl ClientCa {
    /// Reads a PEM bundle. The error is one line for people.
    pub fn from_pem(pem: &[u8]) -> Result<Self, String> {
        let (mut roots, mut certificates) = (RootCertStore::empty(), Vec::new());
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|e| format!("malformed PEM: {e:?}"))?;
            roots.add(certificate.clone()).map_err(|e| format!("malformed CA certificate: {e}"))?;
            certificates.push(certificate);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| format!("no usable CA certificate: {e}"))?;
        Ok(Self { verifier, certificates: certificates.into() })
    }

    /// Whether this bundle is seen to trust what a CA of `other` issues: both have a CA of the same key, or a CA of this bundle
    /// has signed one of the other, or one of them cannot be parsed. A chain over a CA that is in neither is not seen.
    pub fn covers(&self, other: &Self) -> bool {
        let is_covered =
            |theirs: &CertificateDer<'_>| self.certificates.iter().any(|ours| vouches_for(ours, theirs));
        other.certificates.iter().any(is_covered)
    }

    /// Whether the chain leads to this CA now and may be used by a client.
    pub fn trusts(&self, chain: &[CertificateDer<'_>], now: SystemTime) -> Result<(), Error> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(Error::NoCertificatesPresented);
        };
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.verifier
            .verify_client_cert(leaf, intermediates, UnixTime::since_unix_epoch(since_epoch))
            .map(|_| ())
    }
}

/// Whether a CA has the key of another CA, or has signed its certificate. True if that cannot be known.
fn vouches_for(ca: &CertificateDer<'_>, other: &CertificateDer<'_>) -> bool {
    let (Ok((_, ca)), Ok((_, other))) = (X509Certificate::from_der(ca), X509Certificate::from_der(other))
    else {
        return true;
    };
    let key = ca.public_key();
    key.raw == other.public_key().raw || other.verify_signature(Some(key)).is_ok()
}

/// Common name and organizations of a certificate's subject: user and groups (Kubernetes: CommonNameUserConversion).
/// Of several common names the last counts, as in Go's `pkix.Name`; without one there is no user.
pub fn subject(certificate: &CertificateDer<'_>) -> Option<(String, Vec<String>)> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().last()?.as_str().ok()?.to_owned();
    if name.is_empty() {
        return None;
    }
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    Some((name, groups))
}

/// The uid that a certificate's subject names, if it names one (`AllowParsingUserUIDFromCertAuth`).
///
/// # Errors
/// It names several, or an empty one.
pub fn uid(certificate: &CertificateDer<'_>) -> Result<Option<String>, &'static str> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return Ok(None) };
    let subject = parsed.subject();
    let mut uids = subject.iter_attributes().filter(|attribute| attribute.attr_type().to_id_string() == UID);
    let Some(uid) = uids.next() else { return Ok(None) };
    match (uid.as_str(), uids.next()) {
        (Ok(uid), None) if !uid.is_empty() => Ok(Some(uid.to_owned())),
        (Ok(_), None) => Err("UID cannot be an empty string"),
        (Ok(_), Some(_)) => Err("expected 1 UID, but found multiple"),
        (Err(_), _) => Err("unable to parse UID into a string"),
    }
}

/// The moments at which a certificate becomes valid and stops being so; none for what is no certificate.
pub(crate) fn validity_bounds(certificate: &CertificateDer<'_>) -> [Option<SystemTime>; 2] {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return [None; 2] };
    let at =
        |second: i64| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(second).ok()?));
    let validity = parsed.validity();
    // It is still valid within its last second.
    [at(validity.not_before.timestamp()), at(validity.not_after.timestamp().saturating_add(1))]
}

/// The error for a chain of certificates that is not looked at because it is too long.
#[derive(Debug)]
struct ChainTooLong;

impl std::error::Error for ChainTooLong {}

impl fmt::Display for ChainTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the client certificate chain exceeds {LONGEST_CHAIN} certificates or {CHAIN_BYTES} bytes")
    }
}

/// Asks every client for a certificate and lets the handshake pass whatever it presents, once the client has proven
/// that it holds the private key. Only a chain that is too long ends the handshake: the cost of verifying it is bounded
/// before anything of it is verified.
#[derive(Debug)]
pub(crate) struct RequestClientCert {
    provider: Arc<CryptoProvider>,
}

impl RequestClientCert {
    /// Checks signatures with the provider's algorithms.
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self { provider }
    }
}

impl ClientCertVerifier for RequestClientCert {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let bytes = end_entity.len() + intermediates.iter().map(|between| between.len()).sum::<usize>();
        if intermediates.len() >= LONGEST_CHAIN || bytes > CHAIN_BYTES {
            return Err(CertificateError::Other(OtherError(Arc::new(ChainTooLong))).into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Subject: CN=system:admin, O=one, CN=last, O=two.
    const TWO_NAMES: &str = "-----BEGIN CERTIFICATE-----
MIIB2TCCAX+gAwIBAgIUNmVDJyJszRk55lY1zrRmPqLPjxUwCgYIKoZIzj0EAwIw
QjEVMBMGA1UEAwwMc3lzdGVtOmFkbWluMQwwCgYDVQQKDANvbmUxDTALBgNVBAMM
BGxhc3QxDDAKBgNVBAoMA3R3bzAeFw0yNjExMjExNjE2NTJaFw0zNjExMTgxNjE2
NTJaMEIxFTATBgNVBAMMDHN5c3RlbTphZG1pbjEMMAoGA1UECgwDb25lMQ0wCwYD
VQQDDARsYXN0MQwwCgYDVQQKDAN0d28wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAS4jHbyrJVssgtE9sYRO859mSvcFC03PT/aaLSkOZc/DDRw0ow5Q1JIwf/oRAGx
nnqZn7FARqser3cY5Ft82zTWo1MwUTAdBgNVHQ4EFgQU0SifH+jLIxJ2DThv0KS1
VN2jUa8wHwYDVR0jBBgwFoAU0SifH+jLIxJ2DThv0KS1VN2jUa8wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAuD48Vg+6mHdy2ek3ElmTIT3o17Qb
R9CAObqX0eW+m+kCIGsGJh0nh14kzkKtE6gAHFSEuCCJJXtXbJWn2s/U37Ie
-----END CERTIFICATE-----
";

    #[test]
    fn the_last_common_name_is_the_user_as_the_host_has_it() {
        let certificate = CertificateDer::from_pem_slice(TWO_NAMES.as_bytes()).unwrap();
        let groups = ["one", "two"].map(str::to_owned).to_vec();
        assert_eq!(subject(&certificate), Some(("last".to_owned(), groups)));
        assert_eq!(uid(&certificate), Ok(None));
    }

    #[test]
    fn a_uid_stands_in_the_subject_once() {
        let named = |uids: &[&str]| {
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            let oid = UID.split('.').map(|part| part.parse().unwrap()).collect();
            params.distinguished_name.push(rcgen::DnType::CommonName, "ann");
            for uid in uids {
                params.distinguished_name.push(rcgen::DnType::CustomDnType(Vec::clone(&oid)), *uid);
            }
            let key = rcgen::KeyPair::generate().unwrap();
            uid(&params.self_signed(&key).unwrap().der().clone())
        };
        assert_eq!(named(&["7"]), Ok(Some("7".to_owned())));
        assert!(named(&[""]).is_err());
    }
}
