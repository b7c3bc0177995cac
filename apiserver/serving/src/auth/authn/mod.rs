//! Who asks: front-proxy headers, then a client certificate, then a bearer token, then the anonymous user
//! (k8s.io/apiserver pkg/authentication/request/union, in the order of DelegatingAuthenticatorConfig).

pub mod host_config;
pub mod peer;
pub mod request_header;
pub mod token;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use drydock_machinery::ApiError;
use http::HeaderMap;

use crate::auth::caller::{Caller, Origin, ProvedBy};
use crate::clock;
use crate::request::user::{ANONYMOUS, UNAUTHENTICATED, User};
pub use host_config::{HostConfig, HostConfigSource};
use peer::CertificateVerdict;
pub use peer::{Certificates, Credential, Peer, Proof};
pub use token::TokenReviewer;

/// Group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// Why the sender of a request is not known.
#[derive(Debug)]
pub enum AuthenticationError {
    /// The request is refused, with 401 for wrong credentials.
    Refused(ApiError),
    /// The host gave no answer to the TokenReview, so nothing is known of the token.
    NoAnswer,
}

impl AuthenticationError {
    /// The code of its HTTP answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(error) => error.code(),
            Self::NoAnswer => ApiError::unauthorized().code(),
        }
    }

    /// After how many seconds the client may try again, if the answer says so.
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Refused(error) => error.retry_after(),
            Self::NoAnswer => None,
        }
    }
}

impl From<ApiError> for AuthenticationError {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<AuthenticationError> for ApiError {
    /// The answer over HTTP. Without an answer of the host it is 401 too (k8s.io/apiserver pkg/endpoints/filters,
    /// WithAuthentication).
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Refused(error) => error,
            AuthenticationError::NoAnswer => ApiError::unauthorized(),
        }
    }
}

/// Authenticates requests.
pub struct Authenticator {
    config: HostConfigSource,
    tokens: Option<TokenReviewer>,
    anonymous: bool,
}

impl Authenticator {
    /// `config` says which CAs are trusted; `tokens` asks the host about bearer tokens.
    pub fn new(config: HostConfigSource, tokens: Option<TokenReviewer>, anonymous: bool) -> Self {
        Self { config, tokens, anonymous }
    }

    /// Returns the user behind a request and what proves it, and removes the credentials from the headers. A request
    /// with a token may wait for the host's review for a part of the time before `deadline`.
    ///
    /// # Errors
    /// 401 for wrong credentials, even where anonymous requests are allowed; 429 if too many tokens of the same origin
    /// wait for reviews; 503 for a certificate while the CAs have not been read; or that the host gave no answer.
    pub async fn authenticate(
        &self,
        headers: &mut HeaderMap,
        peer: &Peer,
        deadline: Instant,
    ) -> Result<(Caller, ProvedBy), AuthenticationError> {
        let (config, origin) = (self.config.current(), peer.origin(deadline));
        let verdict = peer.verdict(&config, SystemTime::now());
        let user = self.identify(headers, peer, &origin, (&config, &verdict)).await;
        match &user {
            _ if verdict.is_front_proxy => peer.proves(Proof::FrontProxy),
            Ok((user, _)) if !user.is_anonymous() => peer.proves(Proof::User(user)),
            Ok(_) => peer.proves(Proof::Nobody),
            Err(error) => refused(error, peer),
        }
        let (user, proved_by) = user?;
        Ok((Caller::new(user, origin), proved_by))
    }

    /// Verifies the certificates of a new connection. Returns whether they are a front proxy's; `None` if they may be,
    /// because the host has not said yet which CAs to trust.
    pub fn is_front_proxy(&self, peer: &Peer) -> Option<bool> {
        let verdict = peer.verdict(&self.config.current(), SystemTime::now());
        match &verdict.user {
            _ if verdict.is_front_proxy => peer.proves(Proof::FrontProxy),
            Some(user) => peer.proves(Proof::User(user)),
            None => {}
        }
        let may_be = peer.shows_certificates() && !self.config.knows_its_cas();
        if verdict.is_front_proxy || !may_be { Some(verdict.is_front_proxy) } else { None }
    }

    async fn identify(
        &self,
        headers: &mut HeaderMap,
        peer: &Peer,
        origin: &Origin,
        (config, verdict): (&HostConfig, &CertificateVerdict),
    ) -> Result<(Arc<User>, ProvedBy), AuthenticationError> {
        let proxied = verdict.is_front_proxy.then(|| request_header::user(config, headers)).flatten();
        request_header::strip(config, headers);
        let (user, proved_by) = match (proxied, &verdict.user) {
            (Some(user), _) => (Some(with_authenticated_group(user)), ProvedBy::FrontProxy),
            (None, Some(user)) => (Some(user.clone()), ProvedBy::Certificates),
            (None, None) => (self.by_token(headers, origin).await?, ProvedBy::Token),
        };
        headers.remove(http::header::AUTHORIZATION);
        match user {
            Some(user) => Ok((user, proved_by)),
            None if peer.shows_certificates() && !self.config.knows_its_cas() => {
                Err(cas_are_unknown().into())
            }
            None if verdict.is_unknown => Err(ApiError::unauthorized().into()),
            None if self.anonymous => Ok((Arc::new(anonymous()), ProvedBy::Nothing)),
            None => Err(ApiError::unauthorized().into()),
        }
    }

    /// Whether certificates still prove that the sender is this user, or a front proxy that speaks for the user. `None` while
    /// the host has not said whose certificates are trusted.
    pub fn certifies(&self, certificates: &Certificates, user: &User) -> Option<bool> {
        if !self.config.knows_its_cas() {
            return None;
        }
        let verdict = certificates.verdict(&self.config.current(), SystemTime::now());
        Some(verdict.is_front_proxy || verdict.user.as_ref().is_some_and(|owner| owner.is_same(user)))
    }

    /// The user of a token, `None` if the host knows of none.
    ///
    /// # Errors
    /// The host gave no answer, or 429 if too many tokens of the same origin wait for reviews.
    pub async fn owner(
        &self,
        token: &str,
        origin: &Origin,
    ) -> Result<Option<Arc<User>>, AuthenticationError> {
        match &self.tokens {
            Some(reviewer) => reviewer.owner(token, origin).await,
            None => Ok(None),
        }
    }

    /// Until when the user of a token is remembered.
    pub fn known_until(&self, token: &str) -> Instant {
        self.tokens.as_ref().map_or_else(clock::now, |reviewer| reviewer.known_until(token))
    }

    async fn by_token(
        &self,
        headers: &HeaderMap,
        origin: &Origin,
    ) -> Result<Option<Arc<User>>, AuthenticationError> {
        let Some(token) = token::bearer(headers) else { return Ok(None) };
        let Some(reviewer) = &self.tokens else { return Err(ApiError::unauthorized().into()) };
        reviewer.review(token, origin).await.map(Some)
    }
}

/// Reports that a request was refused. Where the host gave no answer, or was not asked, it is not known whether the
/// request proves a user, and nothing is reported.
pub(super) fn refused(error: &AuthenticationError, peer: &Peer) {
    if matches!(error, AuthenticationError::Refused(error) if error.code() == 401) {
        peer.proves(Proof::Nobody);
    }
}

/// The refusal of a client with a certificate while the host has not said which CAs to trust: clients would read a
/// 401 or 403 as the host's decision.
fn cas_are_unknown() -> ApiError {
    let unread = "the server has not yet read the trusted client CAs from the host; try again";
    ApiError::service_unavailable(unread).with_retry_after(1)
}

fn anonymous() -> User {
    User { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..User::default() }
}

/// Adds `system:authenticated` unless the user is anonymous or already in it
/// (k8s.io/apiserver pkg/authentication/group).
fn with_authenticated_group(mut user: User) -> Arc<User> {
    let known = user.groups.iter().any(|g| g == AUTHENTICATED || g == UNAUTHENTICATED);
    if user.name != ANONYMOUS && !known {
        user.groups.push(AUTHENTICATED.into());
    }
    Arc::new(user)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustls::pki_types::pem::PemObject;

    use rustls::pki_types::CertificateDer;

    use super::*;
    use crate::tls::{ClientCa, self_signed};

    /// A CA, and a certificate by it.
    fn issued() -> (ClientCa, Vec<CertificateDer<'static>>) {
        let dir = tempfile::tempdir().unwrap();
        let files = self_signed::ensure(dir.path(), &["localhost".to_owned()]).unwrap();
        let ca = ClientCa::from_pem(&std::fs::read(dir.path().join("ca.crt")).unwrap()).unwrap();
        (ca, vec![CertificateDer::from_pem_file(files.certificate).unwrap()])
    }

    /// Kubernetes answers 401 (x509.go: verifying certificate failed). This server used to treat such a caller as
    /// anonymous: a client with an outdated certificate got 403 and not 401.
    #[tokio::test]
    async fn a_certificate_of_an_unknown_ca_is_not_anonymous() {
        let (ca, _) = issued();
        let (_, stranger) = issued();
        let asked = async |config: HostConfig, certificates: &[CertificateDer<'static>]| {
            let authenticator = Authenticator::new(HostConfigSource::ready_with(config), None, true);
            authenticator
                .authenticate(&mut HeaderMap::new(), &Peer::new(certificates.to_vec()), Instant::now())
                .await
        };
        let client_ca = || HostConfig { client_ca: Some(ca.clone()), ..HostConfig::default() };
        assert_eq!(asked(client_ca(), &stranger).await.unwrap_err().code(), 401);
        let proxy_ca = HostConfig { requestheader_ca: Some(ca.clone()), ..HostConfig::default() };
        assert_eq!(asked(proxy_ca, &stranger).await.unwrap_err().code(), 401);
        assert_eq!(asked(client_ca(), &[]).await.unwrap().0.user.name, ANONYMOUS);
    }

    /// For a moment after each start the aggregator's requests were answered 403, as anonymous ones.
    #[tokio::test]
    async fn a_certificate_is_not_judged_before_the_host_has_said_which_ca_is_its_own() {
        let (ca, _) = issued();
        let (_, stranger) = issued();
        let flags = HostConfig { client_ca: Some(ca), ..HostConfig::default() };
        let authenticator = Authenticator::new(HostConfigSource::new(flags), None, true);
        let asked = async |certificates: &[CertificateDer<'static>]| {
            authenticator
                .authenticate(&mut HeaderMap::new(), &Peer::new(certificates.to_vec()), Instant::now())
                .await
        };
        let refused = asked(&stranger).await.unwrap_err();
        assert_eq!((refused.code(), refused.retry_after()), (503, Some(1)));
        assert_eq!(asked(&[]).await.unwrap().0.user.name, ANONYMOUS);
    }
}
