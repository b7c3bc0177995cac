//! The client at the other end of a connection: the certificates of its handshake, and what they prove.
//!
//! Certificates do not change while a connection lasts, so they are verified once, not with each request; again when
//! the trusted CAs change, and when one of the certificates becomes valid or expires.
//!
//! An `Observer` gets what its requests prove. By that the port decides whose share the connection counts for, and
//! whether it stays open.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use super::{HostConfig, request_header, token};
use crate::auth::caller::{Origin, ProvedBy};
use crate::connection::Connection;
use crate::request::user::User;
use crate::tls::ClientCa;
use crate::tls::client_cert::{subject, uid, validity_bounds};

/// What a request proves about the client of its connection.
#[derive(Clone, Copy, Debug)]
pub enum Proof<'a> {
    /// A verified front proxy sent it, for any user.
    FrontProxy,
    /// The client is this user, by a certificate or a token.
    User(&'a User),
    /// Nothing: it was anonymous, or its credentials were refused.
    Nobody,
    /// Nothing: it was answered without authentication.
    Unasked,
}

/// Receives what each request of a connection proves, before the request is answered.
pub(crate) trait Observer: Send + Sync {
    /// Records a proof. Must not block.
    fn observe(&self, proof: Proof<'_>);
}

/// The client of one connection.
#[derive(Default)]
pub struct Peer {
    id: u64,
    address: Option<IpAddr>,
    observer: Option<Arc<dyn Observer>>,
    certificates: Arc<Certificates>,
    connection: Arc<Connection>,
}

/// The certificates of a connection, the client's own first, and what they proved last.
#[derive(Default)]
pub struct Certificates {
    shown: Vec<CertificateDer<'static>>,
    verdict: ArcSwapOption<CertificateVerdict>,
}

/// What the certificates prove, under one configuration.
pub(super) struct CertificateVerdict {
    config: Arc<HostConfig>,
    from: SystemTime,
    /// When the next of the certificates becomes valid or expires.
    until: Option<SystemTime>,
    /// Whether the client is a front proxy, whose headers are trusted.
    pub(super) is_front_proxy: bool,
    /// Whether a client whose certificates prove no user is refused, and not treated as anonymous. True if there is
    /// a CA against which the certificates were verified.
    pub(super) is_unknown: bool,
    /// The user that the certificate names.
    pub(super) user: Option<Arc<User>>,
}

impl Peer {
    /// A client that showed these certificates, and proved that it holds the first one's key.
    pub(crate) fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
        let id = CONNECTIONS.fetch_add(1, Relaxed);
        let certificates = Arc::new(Certificates { shown: certificates, ..Certificates::default() });
        Self { id, certificates, ..Self::default() }
    }

    /// Reports to `observer` what its requests prove.
    #[must_use]
    pub(crate) fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Reports what a request of this client proves.
    pub fn proves(&self, proof: Proof<'_>) {
        if let Proof::FrontProxy = proof {
            self.connection.share();
        }
        if let Some(observer) = &self.observer {
            observer.observe(proof);
        }
    }

    /// Sets the address that it connected from.
    #[must_use]
    pub fn at(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Where it connected from, if that is known.
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Returns the origin of a request of this client that must be answered by `deadline`.
    pub fn origin(&self, deadline: Instant) -> Origin {
        Origin { address: self.address, connection: self.id, deadline }
    }

    /// Its connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Whether it showed certificates.
    pub(crate) fn shows_certificates(&self) -> bool {
        !self.certificates.shown.is_empty()
    }

    /// Its certificates.
    pub(super) fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// When the first of its certificates expires that is valid at `now`.
    pub(super) fn certificates_end(&self, now: SystemTime) -> Option<SystemTime> {
        let ends = self.certificates.shown.iter().filter_map(|certificate| validity_bounds(certificate)[1]);
        ends.filter(|end| *end > now).min()
    }

    /// What its certificates prove now.
    pub(super) fn verdict(&self, config: &Arc<HostConfig>, now: SystemTime) -> Arc<CertificateVerdict> {
        self.certificates.verdict(config, now)
    }
}

impl Certificates {
    /// What they prove now.
    pub(super) fn verdict(&self, config: &Arc<HostConfig>, now: SystemTime) -> Arc<CertificateVerdict> {
        match &*self.verdict.load() {
            Some(known) if known.holds(config, now) => known.clone(),
            _ => {
                let verdict = Arc::new(CertificateVerdict::new(config, &self.shown, now));
                self.verdict.store(Some(verdict.clone()));
                verdict
            }
        }
    }

    /// The certificates in DER, the client's own first.
    pub fn der(&self) -> impl Iterator<Item = &[u8]> {
        self.shown.iter().map(|certificate| &**certificate)
    }
}

impl CertificateVerdict {
    /// Verifies the certificates, once for each CA.
    fn new(config: &Arc<HostConfig>, certificates: &[CertificateDer<'static>], now: SystemTime) -> Self {
        let trusts =
            |ca: &Option<ClientCa>| ca.as_ref().is_some_and(|ca| ca.trusts(certificates, now).is_ok());
        let (proxied, known) = match certificates.is_empty() {
            true => (false, false),
            false => (trusts(&config.requestheader_ca), trusts(&config.client_ca)),
        };
        let leaf = certificates.first();
        let is_judged = config.client_ca.is_some() || (config.requestheader_ca.is_some() && !proxied);
        let user = leaf.filter(|_| known).and_then(x509_user);
        // Where any name is allowed, a user is no front proxy, though the CAs vouch for each other.
        let may_be_proxy = proxied && !(known && config.allowed_names.is_empty());
        Self {
            config: config.clone(),
            from: now,
            until: certificates.iter().flat_map(validity_bounds).flatten().filter(|at| *at > now).min(),
            is_front_proxy: may_be_proxy
                && leaf.is_some_and(|leaf| request_header::is_front_proxy(config, leaf)),
            is_unknown: !certificates.is_empty() && is_judged,
            user: user.map(super::with_authenticated_group),
        }
    }

    fn holds(&self, config: &Arc<HostConfig>, now: SystemTime) -> bool {
        Arc::ptr_eq(&self.config, config) && self.from <= now && self.until.is_none_or(|until| now < until)
    }
}

/// The extra that identifies the credential of a user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// The user that a certificate under the client CA names, if it names one.
fn x509_user(certificate: &CertificateDer<'static>) -> Option<User> {
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

/// What has to stay valid for as long as a request is open. It stays in memory for so long, and is shown nowhere.
pub enum Credential {
    /// Nothing: the sender is anonymous.
    None,
    /// A bearer token.
    Token(String),
    /// The certificates of the connection.
    Certificates {
        /// The certificates.
        certificates: Arc<Certificates>,
        /// When the first of them expires.
        end: Option<SystemTime>,
    },
}

impl Credential {
    /// Returns the token in these headers. To be called before authentication, which removes it.
    pub fn shown(headers: &HeaderMap) -> Option<String> {
        token::bearer(headers).map(str::to_owned)
    }

    /// Returns the credential that proved who sends a request on the connection of `peer`.
    pub fn of(proved_by: ProvedBy, token: Option<String>, peer: &Peer) -> Self {
        match (proved_by, token) {
            (ProvedBy::Token, Some(token)) => Self::Token(token),
            (ProvedBy::Certificates | ProvedBy::FrontProxy, _) => Self::Certificates {
                certificates: peer.certificates().clone(),
                end: peer.certificates_end(SystemTime::now()),
            },
            (ProvedBy::Token | ProvedBy::Nothing, _) => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };

    use super::*;

    /// A CA that is trusted for users, and a certificate of `ann` by it, good for an hour from the epoch's second day.
    fn ann() -> (Arc<HostConfig>, Peer) {
        let (ca_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = ca.self_signed(&ca_key).unwrap().pem();
        let mut leaf = CertificateParams::new(Vec::new()).unwrap();
        leaf.distinguished_name.push(DnType::CommonName, "ann");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        leaf.not_before = at(0).into();
        leaf.not_after = at(3600).into();
        let leaf = leaf.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
        let client_ca = Some(ClientCa::from_pem(pem.as_bytes()).unwrap());
        let config = HostConfig { client_ca, ..HostConfig::default() };
        (Arc::new(config), Peer::new(vec![leaf.der().clone()]))
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 + second)
    }

    fn user(verdict: &CertificateVerdict) -> Option<&str> {
        verdict.user.as_ref().map(|user| user.name.as_str())
    }

    #[test]
    fn a_certificate_is_verified_once_for_many_requests() {
        let (config, peer) = ann();
        let first = peer.verdict(&config, at(10));
        assert_eq!(user(&first), Some("ann"));
        let credential =
            first.user.as_ref().unwrap().extra["authentication.kubernetes.io/credential-id"].clone();
        assert!(credential.len() == 1 && credential[0].starts_with("X509SHA256="), "{credential:?}");
        assert!(Arc::ptr_eq(&first, &peer.verdict(&config, at(20))));
        assert!(Arc::ptr_eq(&first, &peer.verdict(&config, at(3600))), "until it expires");
    }

    #[test]
    fn a_certificate_that_expires_on_an_open_connection_is_no_longer_believed() {
        let (config, peer) = ann();
        assert_eq!(user(&peer.verdict(&config, at(3595))), Some("ann"));
        assert_eq!(user(&peer.verdict(&config, at(3601))), None);
    }

    #[test]
    fn a_ca_that_is_no_longer_trusted_ends_what_was_believed() {
        let (config, peer) = ann();
        assert_eq!(user(&peer.verdict(&config, at(10))), Some("ann"));
        assert_eq!(user(&peer.verdict(&Arc::default(), at(11))), None);
    }

    #[test]
    fn a_certificate_that_becomes_valid_on_an_open_connection_is_believed() {
        let (config, peer) = ann();
        assert_eq!(user(&peer.verdict(&config, at(0) - Duration::from_secs(30))), None);
        assert_eq!(user(&peer.verdict(&config, at(31))), Some("ann"));
    }

    /// The CA of front proxies had signed a CA above that of users, which neither bundle holds: users showed it.
    #[test]
    fn a_user_of_a_cross_signed_ca_is_no_front_proxy() {
        let authority = |name: &str, by: Option<&Issuer<'static, KeyPair>>| {
            let (key, mut params) =
                (KeyPair::generate().unwrap(), CertificateParams::new(Vec::new()).unwrap());
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let certificate =
                by.map_or_else(|| params.self_signed(&key), |by| params.signed_by(&key, by)).unwrap();
            (certificate, Issuer::new(params, key))
        };
        let (proxies, by_proxies) = authority("proxies", None);
        let (between, by_between) = authority("between", Some(&by_proxies));
        let (users, by_users) = authority("users", Some(&by_between));
        let mut leaf = CertificateParams::new(Vec::new()).unwrap();
        leaf.distinguished_name.push(DnType::CommonName, "ann");
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &by_users).unwrap();
        let shown = [&leaf, &users, &between].map(|certificate| certificate.der().clone()).to_vec();
        let ca = |certificate: &rcgen::Certificate| ClientCa::from_pem(certificate.pem().as_bytes()).unwrap();
        let config = |names: &[&str]| {
            let allowed_names = names.iter().map(|name| (*name).to_owned()).collect();
            let (client_ca, requestheader_ca) = (Some(ca(&users)), Some(ca(&proxies)));
            Arc::new(HostConfig { client_ca, requestheader_ca, allowed_names, ..HostConfig::default() })
        };
        let verdict = |names: &[&str]| Peer::new(shown.clone()).verdict(&config(names), SystemTime::now());
        assert!(!verdict(&[]).is_front_proxy);
        assert_eq!(user(&verdict(&[])), Some("ann"));
        assert!(verdict(&["ann"]).is_front_proxy);
    }
}
