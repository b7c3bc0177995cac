//! Who asks: front-proxy headers, then a client certificate, then a bearer token, then nobody
//! (k8s.io/apiserver pkg/authentication/request/union, in the order of DelegatingAuthenticatorConfig).

mod headers;
pub mod host_config;
pub mod impersonation;
pub mod request_header;
pub mod token;
pub mod x509;

use std::time::SystemTime;

use drydock_machinery::ApiError;
use http::HeaderMap;
use rustls::pki_types::CertificateDer;

use crate::user::User;
pub use host_config::{HostConfig, HostConfigSource};
pub use token::TokenReviewer;

/// Group of everyone who was authenticated.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Name of whoever shows no credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Group of whoever shows no credentials.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Decides who asks.
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

    /// The user behind a request, and the headers without what only the authenticator may see.
    /// Credentials that are shown and wrong are 401 `Unauthorized`, also where anonymous requests are let in.
    pub async fn authenticate(
        &self,
        headers: &mut HeaderMap,
        certificates: &[CertificateDer<'static>],
    ) -> Result<User, ApiError> {
        let config = self.config.current();
        let now = SystemTime::now();
        let proxied = request_header::authenticate(&config, headers, certificates, now);
        request_header::strip(&config, headers);
        let user = match proxied {
            Some(user) => Some(user),
            None => match x509::authenticate(&config, certificates, now) {
                Some(user) => Some(user),
                None => self.by_token(headers).await?,
            },
        };
        headers.remove(http::header::AUTHORIZATION);
        match user {
            Some(user) => Ok(with_authenticated_group(user)),
            None if self.anonymous => Ok(anonymous()),
            None => Err(ApiError::unauthorized()),
        }
    }

    async fn by_token(&self, headers: &HeaderMap) -> Result<Option<User>, ApiError> {
        let Some(token) = token::bearer(headers) else { return Ok(None) };
        let Some(reviewer) = &self.tokens else { return Err(ApiError::unauthorized()) };
        reviewer.review(token).await.map(Some)
    }
}

fn anonymous() -> User {
    User { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..User::default() }
}

/// Adds `system:authenticated` unless the user is anonymous or already in it
/// (k8s.io/apiserver pkg/authentication/group).
fn with_authenticated_group(mut user: User) -> User {
    let known = user.groups.iter().any(|g| g == AUTHENTICATED || g == UNAUTHENTICATED);
    if user.name != ANONYMOUS && !known {
        user.groups.push(AUTHENTICATED.into());
    }
    user
}
