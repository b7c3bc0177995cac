//! Whether a request may be answered: the steps that a request and a gRPC call take alike, in one order.
//!
//! authentication -> audit -> impersonation -> flow control -> authorization
//!
//! A call is authenticated before its message is read, which says what it asks for: so there are two functions.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use drydock_machinery::ApiError;
use http::{HeaderMap, StatusCode};

use super::Chain;
use crate::audit::AuditContext;
use crate::auth::authn::impersonation::{Impersonated, ImpersonationMode};
use crate::auth::authn::{Caller, Peer, ProvedBy};
use crate::auth::authz::{Attributes, Decision};
use crate::flow_control::{PriorityLevel, Seats, Work};
use crate::request::user::User;

/// A request that may be answered.
pub(crate) struct Admitted {
    /// As whom it is answered.
    pub(crate) user: Arc<User>,
    /// In which way the caller may act as that user; none as itself.
    pub(crate) mode: Option<ImpersonationMode>,
    pub(crate) level: PriorityLevel,
    /// The seats taken for the answer.
    pub(crate) seats: Seats,
}

/// Why a request may not be answered.
pub(crate) struct NotAdmitted {
    pub(crate) error: ApiError,
    /// Whether the user is anonymous and has no right to it: an authenticated one might.
    pub(crate) is_anonymous: bool,
}

impl From<ApiError> for NotAdmitted {
    fn from(error: ApiError) -> Self {
        Self { error, is_anonymous: false }
    }
}

impl Chain {
    /// Authenticates the sender of a request. Credentials are removed from the headers.
    ///
    /// # Errors
    /// 401 for wrong credentials, 503 while it cannot be known whose they are.
    pub(crate) async fn authenticate(
        &self,
        headers: &mut HeaderMap,
        peer: &Peer,
        by: Instant,
        authenticated: &OnceLock<Arc<User>>,
    ) -> Result<(Caller, ProvedBy), ApiError> {
        let (caller, proved_by) = self.authenticator.authenticate(headers, peer, by).await?;
        let _ = authenticated.set(caller.user.clone());
        Ok((caller, proved_by))
    }

    /// Admits a request of a caller that asks for all of `attributes`, or for what every authenticated user may have.
    /// Headers that name whom the caller acts as are taken off.
    ///
    /// # Errors
    /// 500 if it must be logged and cannot be, 403 if the caller may not act as the user or the user may not have one of
    /// them, 401 if an anonymous user asks for what every authenticated one may have, 429 if there are no seats.
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        headers: &mut HeaderMap,
        attributes: &[Attributes],
        work: Work<'_>,
        audit: &AuditContext,
        by: Instant,
    ) -> Result<Admitted, NotAdmitted> {
        audit.received(&caller.user, work.info).await?;
        let impersonated = self.act_as(caller, headers, attributes, audit).await?;
        let user = impersonated.as_ref().map_or(&caller.user, |impersonated| &impersonated.user).clone();
        let level = self.flow_control.level_of(&user);
        let seats = self.seats(level, &user, work, by).await?;
        self.authorize(caller, &user, attributes, audit).await?;
        Ok(Admitted { user, mode: impersonated.map(|impersonated| impersonated.mode), level, seats })
    }

    /// As whom the caller acts if not as itself, which must be allowed for each thing that is asked for.
    async fn act_as(
        &self,
        caller: &Caller,
        headers: &mut HeaderMap,
        attributes: &[Attributes],
        audit: &AuditContext,
    ) -> Result<Option<Impersonated>, ApiError> {
        let impersonation = self.authenticator.impersonation();
        let nothing = [Attributes::default()];
        let asked = if attributes.is_empty() { &nothing } else { attributes };
        let impersonated = impersonation.act_as(caller, headers, asked, &self.authorizer).await?;
        if let Some(impersonated) = &impersonated {
            audit.impersonated(&impersonated.user, &impersonated.constraint());
            impersonation.strip(headers);
        }
        Ok(impersonated)
    }

    /// 429 where too many wait already, or the request has waited for as long as it may.
    async fn seats(
        &self,
        level: PriorityLevel,
        user: &User,
        work: Work<'_>,
        by: Instant,
    ) -> Result<Seats, ApiError> {
        let left = by.saturating_duration_since(Instant::now());
        let listed_bytes = |listed: &_, enough| work.sum(|info| self.api.listed_bytes(info, listed, enough));
        self.flow_control.admit(level, user, work, left, listed_bytes).await.map_err(|_| {
            self.metrics.terminated(&self.countable(work.info), StatusCode::TOO_MANY_REQUESTS);
            ApiError::too_many_requests("Too many requests, please try again later.", 1)
        })
    }

    /// 403 with the host's wording unless the user may have all of it.
    async fn authorize(
        &self,
        caller: &Caller,
        user: &User,
        attributes: &[Attributes],
        audit: &AuditContext,
    ) -> Result<(), NotAdmitted> {
        let mut first: Option<Decision> = None;
        for asked in attributes {
            let decision = self.authorizer.authorize(caller, user, asked).await;
            if !decision.as_ref().is_ok_and(|decision| decision.allowed) {
                audit.authorized(&decision);
                let allowed = asked.allowed(user, &decision?);
                return allowed.map_err(|error| NotAdmitted { error, is_anonymous: user.is_anonymous() });
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
