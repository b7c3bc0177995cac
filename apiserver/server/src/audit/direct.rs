//! What is logged of direct requests of which the policy logs nothing: writes, and what is refused. A request is direct if it
//! came through no front proxy, whose own log would have it.

use std::time::Duration;

use drydock_serving::auth::review::rate::{Rate, RateMeter};
use drydock_serving::clock;
use drydock_serving::request::info::RequestInfo;
use drydock_serving::request::user::User;
use http::StatusCode;
use parking_lot::Mutex;

use super::policy::{AuditStage, Level, RequestAuditConfig};

/// How many refused requests are logged: an event has about 1 KiB, and a container's log is kept up to 50 MiB by default.
const REFUSALS: Rate = Rate { burst: 1_000, every: Duration::from_millis(100) };

/// A direct request of which the policy logs nothing, and which is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectRequest {
    is_write: bool,
    /// Whether it was not authenticated at all: then only the beginning of its answer is logged.
    is_unauthenticated: bool,
    is_stranger: bool,
}

impl DirectRequest {
    /// A request of this user, who is `None` if it was not authenticated.
    pub fn new(user: Option<&User>, info: &RequestInfo) -> Self {
        Self {
            is_write: info.verb.is_mutating(),
            is_unauthenticated: user.is_none(),
            is_stranger: user.is_none_or(User::is_anonymous),
        }
    }

    /// What is logged of it now that `code` answers it; `None` is nothing. A user's write is logged unless it was refused. What
    /// was refused is logged if `budget` has room for it.
    pub fn config(self, code: StatusCode, budget: impl FnOnce(bool) -> bool) -> Option<RequestAuditConfig> {
        let is_refused = match self.is_write {
            true => self.is_stranger || code.is_client_error(),
            false => matches!(code, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN),
        };
        let is_logged = if is_refused { budget(self.is_stranger) } else { self.is_write };
        let mut omit_stages = vec![AuditStage::RequestReceived];
        omit_stages.extend((!self.is_unauthenticated).then_some(AuditStage::ResponseStarted));
        is_logged.then_some(RequestAuditConfig {
            level: Level::Metadata,
            omit_stages,
            omit_managed_fields: false,
        })
    }
}

/// Bounds how many refused requests are logged. Strangers have a share of their own, so that they cannot hide what is refused
/// to users.
#[derive(Debug, Default)]
pub(super) struct RefusalBudget([RefusalShare; 2]);

#[derive(Debug, Default)]
struct RefusalShare(Mutex<(RateMeter, bool)>);

impl RefusalBudget {
    /// Takes room for a refused request; returns whether there is room.
    pub fn take(&self, is_stranger: bool) -> bool {
        let (meter, is_exceeded) = &mut *self.0[usize::from(is_stranger)].0.lock();
        let now = clock::now();
        meter.forget(now);
        *is_exceeded &= !meter.is_empty();
        let has_room = meter.next(REFUSALS, now) <= now;
        match has_room {
            true => meter.start(REFUSALS, now),
            // A line for each would fill the program's own log in its place.
            false if !std::mem::replace(is_exceeded, true) => {
                tracing::warn!(
                    is_stranger,
                    "more direct requests are refused than the audit log takes: some are left out"
                );
            }
            false => {}
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{Method, Uri};

    use super::*;

    fn asked(method: &Method, user: Option<&str>) -> DirectRequest {
        let uri = Uri::from_static("/apis/test.io/v1/namespaces/ns/gadgets/x");
        let user = user.map(|name| User { name: name.to_owned(), ..User::default() });
        DirectRequest::new(user.as_ref(), &RequestInfo::parse(method, &uri))
    }

    /// Whether it is logged, and whether that took room for refusals.
    fn logged(request: DirectRequest, code: u16) -> (bool, bool) {
        let mut took = false;
        let code = StatusCode::from_u16(code).unwrap_or_default();
        let config = request.config(code, |_| {
            took = true;
            true
        });
        (config.is_some(), took)
    }

    /// A stranger's writes, each refused, filled the log without a bound.
    #[test]
    fn what_anybody_can_cause_is_bounded() {
        let jane = |method| asked(method, Some("jane"));
        for code in [200, 201, 500, 503] {
            assert_eq!(logged(jane(&Method::DELETE), code), (true, false), "{code}");
            assert_eq!(logged(jane(&Method::GET), code), (false, false), "{code}");
        }
        for code in [401, 403, 404, 409, 422, 429] {
            assert_eq!(logged(jane(&Method::POST), code), (true, true), "{code}");
        }
        for user in [None, Some("system:anonymous")] {
            for code in [200, 401, 403, 503] {
                assert_eq!(logged(asked(&Method::POST, user), code), (true, true), "{code}");
            }
            assert_eq!(logged(asked(&Method::GET, user), 403), (true, true));
            assert_eq!(logged(asked(&Method::GET, user), 404), (false, false));
        }
    }

    #[test]
    fn a_request_that_was_not_authenticated_has_no_event_but_that_of_its_beginning() {
        let stages = |user| {
            let config = asked(&Method::GET, user).config(StatusCode::UNAUTHORIZED, |_| true);
            config.map(|config| config.omit_stages).unwrap_or_default()
        };
        assert_eq!(stages(None), [AuditStage::RequestReceived]);
        assert_eq!(stages(Some("jane")), [AuditStage::RequestReceived, AuditStage::ResponseStarted]);
    }

    /// Strangers' refused requests hid those of users.
    #[test]
    fn strangers_use_up_the_room_of_users() {
        let budget = RefusalBudget::default();
        assert_eq!((0..5_000).filter(|_| budget.take(true)).count() / 100, 10);
        assert!(budget.take(false));
    }
}
