//! Impersonation: the caller asks for it by headers, and must be allowed to act as each of the user, the groups
//! and the extras that the headers name (k8s.io/apiserver pkg/endpoints/filters/impersonation).

mod mode;
mod wanted;

use std::num::NonZeroUsize;
use std::sync::Arc;

use drydock_machinery::ApiError;
use http::HeaderMap;
use lru::LruCache;
use parking_lot::Mutex;

use crate::auth::authn::AUTHENTICATED;
use crate::auth::authz::{AuthorizationAttributes, Authorizer};
use crate::auth::caller::Caller;
use crate::request::user::{ANONYMOUS, UNAUTHENTICATED, User};
use mode::ImpersonationCheck;
pub use mode::ImpersonationMode;

/// Maximum groups and values of extras in one request. Kubernetes limits only the size of the headers.
const MAX_GROUPS_AND_EXTRAS: usize = 128;
/// Callers whose mode is remembered.
const CAPACITY: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// Decides who may act as whom. It remembers, by name, the mode in which each caller was last allowed to, and tries
/// that first: the modes before it would only cost reviews that are denied.
pub struct Impersonation {
    last: Mutex<LruCache<String, ImpersonationMode>>,
}

/// The user as whom a caller acts.
pub struct Impersonated {
    /// The user.
    pub user: Arc<User>,
    /// The mode in which that was allowed.
    pub mode: ImpersonationMode,
}

impl Impersonated {
    /// The verb that the caller was allowed; empty for the legacy mode, which has no constraint.
    pub fn constraint(&self) -> String {
        if self.mode == ImpersonationMode::Legacy { String::new() } else { self.mode.verb() }
    }
}

impl Default for Impersonation {
    fn default() -> Self {
        Self { last: Mutex::new(LruCache::new(CAPACITY)) }
    }
}

impl Impersonation {
    /// Returns the user as whom `caller` acts in a request for all of `requests`: one mode must be allowed for all of
    /// them. Returns `None` without headers that name a user.
    ///
    /// # Errors
    /// 400 for headers that do not fit together or name too many groups and extras, the first 403 if no mode is
    /// allowed, and the error of a review that failed.
    pub async fn act_as(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        requests: &[AuthorizationAttributes],
        authorizer: &Authorizer,
    ) -> Result<Option<Impersonated>, ApiError> {
        let Some(wanted) = wanted::read(headers)? else { return Ok(None) };
        check_number(&wanted)?;
        let mode = self.mode(caller, &wanted, requests, authorizer).await?;
        tracing::debug!(caller = caller.user.name, user = wanted.name, "impersonation");
        let user = Arc::new(with_everybody(mode.effective_user(wanted)));
        Ok(Some(Impersonated { user, mode }))
    }

    /// Whether `caller` may still act in this way as the user that the headers of an open request name.
    ///
    /// # Errors
    /// 403 if not.
    pub async fn may_still_act_as(
        &self,
        mode: ImpersonationMode,
        caller: &Caller,
        headers: &HeaderMap,
        request: &AuthorizationAttributes,
        authorizer: &Authorizer,
    ) -> Result<(), ApiError> {
        match wanted::read(headers)? {
            Some(wanted) => is_allowed(mode, caller, &wanted, request, authorizer).await,
            None => Ok(()),
        }
    }

    /// Removes the impersonation headers of a request.
    pub fn strip(&self, headers: &mut HeaderMap) {
        wanted::strip(headers);
    }

    /// The first mode that the host allows; the first refusal if it allows none.
    async fn mode(
        &self,
        caller: &Caller,
        wanted: &User,
        requests: &[AuthorizationAttributes],
        authorizer: &Authorizer,
    ) -> Result<ImpersonationMode, ApiError> {
        let last = self.last.lock().get(&caller.user.name).copied();
        let others = ImpersonationMode::ALL.into_iter().filter(|mode| Some(*mode) != last);
        let mut refusal = None;
        for mode in last.into_iter().chain(others).filter(|mode| mode.applies(&caller.user, wanted)) {
            match are_allowed(mode, caller, wanted, requests, authorizer).await {
                Ok(()) => {
                    self.last.lock().put(caller.user.name.clone(), mode);
                    return Ok(mode);
                }
                Err(error) if error.code() != 403 => return Err(error),
                Err(error) => refusal.get_or_insert(error),
            };
        }
        // The legacy mode applies to every caller: there is a refusal.
        Err(refusal.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
    }
}

/// Refuses a user with too many groups and values of extras: each of them is a review.
fn check_number(wanted: &User) -> Result<(), ApiError> {
    let number = wanted.groups.len() + wanted.extra.values().map(Vec::len).sum::<usize>();
    if number <= MAX_GROUPS_AND_EXTRAS {
        return Ok(());
    }
    let why = format!(
        "a request can impersonate at most {MAX_GROUPS_AND_EXTRAS} groups and values of extras, not {number}"
    );
    Err(ApiError::bad_request(why))
}

async fn are_allowed(
    mode: ImpersonationMode,
    caller: &Caller,
    wanted: &User,
    requests: &[AuthorizationAttributes],
    authorizer: &Authorizer,
) -> Result<(), ApiError> {
    for request in requests {
        is_allowed(mode, caller, wanted, request, authorizer).await?;
    }
    Ok(())
}

async fn is_allowed(
    mode: ImpersonationMode,
    caller: &Caller,
    wanted: &User,
    request: &AuthorizationAttributes,
    authorizer: &Authorizer,
) -> Result<(), ApiError> {
    for question in mode.questions(&caller.user, wanted, request) {
        let ImpersonationCheck { caller: asked, all_at_once, each } = question?;
        if let Some(all) = all_at_once
            && authorizer.authorize(caller, &asked, &all).await?.allowed
        {
            continue;
        }
        for one in each {
            authorizer.require(caller, &asked, &one).await?;
        }
    }
    Ok(())
}

/// Adds the group of all authenticated, or of all anonymous users.
fn with_everybody(mut user: User) -> User {
    let everybody = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !user.is_in(everybody) && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(everybody.to_owned());
    }
    user
}
