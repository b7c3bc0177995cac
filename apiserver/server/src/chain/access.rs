//! Grants access to requests: the steps that requests and gRPC calls have in common, in this order.
//!
//! authentication -> audit -> impersonation -> flow control -> authorization
//!
//! A gRPC call is authenticated before its message is read, and only the message says what it asks for: so there are
//! two functions.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use drydock_machinery::ApiError;
use drydock_serving::auth::authn::{AuthenticationError, Peer};
use drydock_serving::auth::authz::{AuthorizationAttributes, Decision};
use drydock_serving::auth::impersonation::{Impersonated, ImpersonationMode};
use drydock_serving::auth::{Caller, ProvedBy};
use drydock_serving::clock;
use drydock_serving::request::user::User;
use http::{HeaderMap, StatusCode};

use super::Chain;
use crate::audit::AuditContext;
use crate::flow_control::{PriorityLevel, RequestWork, Seats};

/// A request that may be answered.
pub(crate) struct GrantedAccess {
    /// As whom it is answered.
    pub(crate) user: Arc<User>,
    /// The way in which the caller may impersonate that user; `None` without impersonation.
    pub(crate) mode: Option<ImpersonationMode>,
    pub(crate) level: PriorityLevel,
    /// The seats taken for the answer.
    pub(crate) seats: Seats,
}

/// Why a request may not be answered.
pub(crate) struct AccessDenied {
    pub(crate) error: ApiError,
    /// Whether the user is anonymous and has no right to it; an authenticated user might have.
    pub(crate) is_anonymous: bool,
}

impl From<ApiError> for AccessDenied {
    fn from(error: ApiError) -> Self {
        Self { error, is_anonymous: false }
    }
}

impl Chain {
    /// Authenticates the sender of a request. Credentials are removed from the headers.
    ///
    /// # Errors
    /// Those of [`Authenticator::authenticate`](drydock_serving::auth::authn::Authenticator::authenticate).
    pub(crate) async fn authenticate(
        &self,
        headers: &mut HeaderMap,
        peer: &Peer,
        by: Instant,
        authenticated: &OnceLock<Arc<User>>,
        audit: &AuditContext,
    ) -> Result<(Caller, ProvedBy), AuthenticationError> {
        let (caller, proved_by) = self.authenticator.authenticate(headers, peer, by).await?;
        let _ = authenticated.set(caller.user.clone());
        if proved_by == ProvedBy::FrontProxy {
            audit.came_through_front_proxy();
        }
        Ok((caller, proved_by))
    }

    /// Grants a caller access to all of `attributes`; without any, to what every authenticated user may have. Removes
    /// the impersonation headers.
    ///
    /// # Errors
    /// 500 if the audit event must be logged and cannot be, or if the host cannot be asked; 403 if the caller may not
    /// impersonate the user, or the user may not have one of the attributes; 401 for an anonymous user without
    /// attributes; 429 if no seats become free in time.
    pub(crate) async fn grant_access(
        &self,
        caller: &Caller,
        headers: &mut HeaderMap,
        attributes: &[AuthorizationAttributes],
        work: RequestWork<'_>,
        audit: &AuditContext,
        by: Instant,
    ) -> Result<GrantedAccess, AccessDenied> {
        audit.received(&caller.user, work.info).await?;
        let impersonated = self.act_as(caller, headers, attributes, audit).await?;
        let user = impersonated.as_ref().map_or(&caller.user, |impersonated| &impersonated.user).clone();
        let level = self.flow_control.level_of(&user);
        let seats = self.seats(level, &user, work, by).await?;
        self.authorize(caller, &user, attributes, audit).await?;
        Ok(GrantedAccess { user, mode: impersonated.map(|impersonated| impersonated.mode), level, seats })
    }

    /// Returns the impersonated user, `None` without impersonation headers.
    ///
    /// # Errors
    /// 403 unless one way of impersonation is allowed for all of `attributes`.
    async fn act_as(
        &self,
        caller: &Caller,
        headers: &mut HeaderMap,
        attributes: &[AuthorizationAttributes],
        audit: &AuditContext,
    ) -> Result<Option<Impersonated>, ApiError> {
        let nothing = [AuthorizationAttributes::default()];
        let asked = if attributes.is_empty() { &nothing } else { attributes };
        let impersonated = self.impersonation.act_as(caller, headers, asked, &self.authorizer).await?;
        if let Some(impersonated) = &impersonated {
            audit.impersonated(&impersonated.user, &impersonated.constraint());
            self.impersonation.strip(headers);
        }
        Ok(impersonated)
    }

    /// Waits for seats. Returns 429 if too many requests wait already, or if none become free before the deadline.
    async fn seats(
        &self,
        level: PriorityLevel,
        user: &User,
        work: RequestWork<'_>,
        by: Instant,
    ) -> Result<Seats, ApiError> {
        let left = by.saturating_duration_since(clock::now());
        let listed_bytes = |listed: &_, enough| work.sum(|info| self.api.listed_bytes(info, listed, enough));
        self.flow_control.acquire(level, user, work, left, listed_bytes).await.map_err(|_| {
            self.metrics.terminated(&self.metrics_info(work.info), StatusCode::TOO_MANY_REQUESTS);
            ApiError::too_many_requests("Too many requests, please try again later.", 1)
        })
    }

    /// Returns 403 in the host's words unless the user may have all of `attributes`, and 401 for an anonymous user
    /// without attributes.
    async fn authorize(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &[AuthorizationAttributes],
        audit: &AuditContext,
    ) -> Result<(), AccessDenied> {
        let mut first: Option<Decision> = None;
        for asked in attributes {
            let decision = self.authorizer.authorize(caller, user, asked).await;
            if !decision.as_ref().is_ok_and(|decision| decision.allowed) {
                audit.authorized(&decision);
                let allowed = asked.allowed(user, &decision?);
                return allowed.map_err(|error| AccessDenied { error, is_anonymous: user.is_anonymous() });
            }
            first = first.or(decision.ok());
        }
        match first {
            Some(decision) => audit.authorized(&Ok(decision)),
            None if user.is_anonymous() => return Err(ApiError::unauthorized().into()),
            None => {}
        }
        Ok(())
    }
}
