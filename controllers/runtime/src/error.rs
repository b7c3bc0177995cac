//! Classifies failed calls by what the caller has to do.

use std::fmt::Debug;
use std::time::Duration;

use drydock_api::REFUSED_TOKEN_REASON;
use kube::Api;
use kube::core::Status;
use serde::de::DeserializeOwned;

/// Why the work on a key of a queue failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No write may be sent.
    #[error("the lease is not held")]
    NoLease,
    /// A call failed.
    #[error("{}{source}", prefix(what))]
    Api {
        /// What the call was for; empty if the key says it.
        what: &'static str,
        /// The client's error.
        source: kube::Error,
    },
}

impl CallError {
    /// Returns a function that makes a [`CallError`] of the client's error.
    pub fn of(what: &'static str) -> impl Fn(kube::Error) -> Self {
        move |source| Self::Api { what, source }
    }

    /// The client's error, if a call failed.
    pub fn call(&self) -> Option<&kube::Error> {
        match self {
            Self::Api { source, .. } => Some(source),
            Self::NoLease => None,
        }
    }
}

fn prefix(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!("{what}: ") }
}

/// Kinds of failure that a controller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// 404 that names an object: it is not there.
    NotFound,
    /// 409 Conflict: the object changed meanwhile, or a precondition failed. Read again.
    Conflict,
    /// 409 AlreadyExists.
    AlreadyExists,
    /// 409 FencingTokenRefused: our API server takes no writes of this term of the lease. The elector ends it, or begins
    /// another one ([`crate::lease`]). In an answer to a write of the host's kinds these are somebody else's words: then
    /// [`LeaseHandle::refused_token`](crate::lease::LeaseHandle::refused_token) says nothing of it.
    RefusedToken,
    /// Any other 4xx, such as 400 or 422: the request itself is wrong; to repeat it will not help soon.
    Invalid,
    /// 401, 403: not allowed at present.
    Forbidden,
    /// 429: the server asks to wait.
    Throttled,
    /// 5xx, timeouts and failed connections: try again. A 404 that names no object counts here too: a server,
    /// or a proxy in front of it, does not know the API for a moment.
    Unavailable,
}

/// Sorts an error.
pub fn classify(error: &kube::Error) -> ApiErrorKind {
    let kube::Error::Api(status) = error else { return ApiErrorKind::Unavailable };
    match status.code {
        404 if names_an_object(status) => ApiErrorKind::NotFound,
        404 => ApiErrorKind::Unavailable,
        409 if status.reason == "AlreadyExists" => ApiErrorKind::AlreadyExists,
        409 if status.reason == REFUSED_TOKEN_REASON => ApiErrorKind::RefusedToken,
        409 => ApiErrorKind::Conflict,
        401 | 403 => ApiErrorKind::Forbidden,
        429 => ApiErrorKind::Throttled,
        400..=499 => ApiErrorKind::Invalid,
        _ => ApiErrorKind::Unavailable,
    }
}

fn names_an_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

/// The object as the server has it; none if the server says that there is no such object. (kube's `get_opt`
/// takes a 404 that names no object for that too.)
pub async fn find<T>(api: &Api<T>, name: &str) -> Result<Option<T>, kube::Error>
where
    T: Clone + Debug + DeserializeOwned,
{
    match api.get(name).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if classify(&error) == ApiErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Longest wait for which a server may ask: a webhook of anyone, whose answer the host passes on, must not hold up an object
/// for longer than a few ordinary retries.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);

/// How long the server asked to wait, if it did; 30 s at most.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)).min(LONGEST_RETRY_AFTER))
}

/// How long to wait at least before the same call is made again; none unless the server answered with a 429.
/// It is the time that the server names, and a second at least. (A 429 of the host's flow control names the
/// time only in a header, which the error does not contain.)
pub fn min_retry_delay(error: &kube::Error) -> Option<Duration> {
    let second = Duration::from_secs(1);
    (classify(error) == ApiErrorKind::Throttled).then(|| retry_after(error).unwrap_or(second).max(second))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// An answer that asks to wait for so long.
    fn waiting(code: u16, seconds: u32) -> kube::Error {
        let mut status = kube::core::Status::failure("m", "").with_code(code);
        status.details = Some(kube::core::response::StatusDetails {
            retry_after_seconds: seconds,
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
        });
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn a_server_that_asks_for_less_sets_the_pace() {
        assert_eq!(min_retry_delay(&waiting(429, 0)), Some(Duration::from_secs(1)));
        assert_eq!(min_retry_delay(&waiting(429, 7)), Some(Duration::from_secs(7)));
        assert_eq!(min_retry_delay(&waiting(503, 7)), None);
    }

    /// The answer of a webhook, which the host passes on, held up an object for an hour.
    #[test]
    fn no_answer_holds_up_an_object_for_longer_than_half_a_minute() {
        for seconds in [31, 3600, u32::MAX] {
            assert_eq!(retry_after(&waiting(429, seconds)), Some(Duration::from_secs(30)));
            assert_eq!(min_retry_delay(&waiting(429, seconds)), Some(Duration::from_secs(30)));
        }
    }

    /// Every 404 was read as "gone", and some work on the object was given up for good.
    #[test]
    fn a_404_that_names_no_object_does_not_mean_that_it_is_gone() {
        let of = |details: serde_json::Value| {
            let status = serde_json::json!({ "code": 404, "reason": "NotFound", "details": details });
            classify(&kube::Error::Api(serde_json::from_value(status).unwrap()))
        };
        assert_eq!(of(serde_json::json!({ "name": "p", "kind": "pods" })), ApiErrorKind::NotFound);
        assert_eq!(of(serde_json::json!({})), ApiErrorKind::Unavailable);
        assert_eq!(of(serde_json::Value::Null), ApiErrorKind::Unavailable);
    }

    #[test]
    fn failures_are_sorted_by_code_and_reason() {
        let of = |code: u16, reason: &str| {
            let status = kube::core::Status::failure("m", reason).with_code(code);
            classify(&kube::Error::Api(status.boxed()))
        };
        assert_eq!(of(409, "Conflict"), ApiErrorKind::Conflict);
        assert_eq!(of(409, "AlreadyExists"), ApiErrorKind::AlreadyExists);
        assert_eq!(of(409, "FencingTokenRefused"), ApiErrorKind::RefusedToken);
        assert_eq!(of(403, ""), ApiErrorKind::Forbidden);
        assert_eq!(of(422, ""), ApiErrorKind::Invalid);
        assert_eq!(of(429, ""), ApiErrorKind::Throttled);
        assert_eq!(of(503, ""), ApiErrorKind::Unavailable);
        assert_eq!(classify(&kube::Error::Service("broken pipe".into())), ApiErrorKind::Unavailable);
    }
}
