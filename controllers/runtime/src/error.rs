//! What a failed call means for the caller, worked out once.

use std::time::Duration;

/// Kinds of failure that a controller treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// 404: the object is not there.
    NotFound,
    /// 409 Conflict: the object changed meanwhile, or a precondition failed. Read again.
    Conflict,
    /// 409 AlreadyExists.
    AlreadyExists,
    /// 422, 400, 405, 406, 415: the request itself is wrong; the same again will not help soon.
    Invalid,
    /// 401, 403: not allowed, now.
    Forbidden,
    /// 429: asked to wait.
    Throttled,
    /// 5xx, timeouts, connections: try again.
    Unavailable,
}

/// Sorts an error.
pub fn classify(error: &kube::Error) -> Failure {
    let kube::Error::Api(status) = error else { return Failure::Unavailable };
    match status.code {
        404 => Failure::NotFound,
        409 if status.reason == "AlreadyExists" => Failure::AlreadyExists,
        409 => Failure::Conflict,
        401 | 403 => Failure::Forbidden,
        429 => Failure::Throttled,
        400..=499 => Failure::Invalid,
        _ => Failure::Unavailable,
    }
}

/// How long the server asked to wait, if it did.
pub fn retry_after(error: &kube::Error) -> Option<Duration> {
    let kube::Error::Api(status) = error else { return None };
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds).min(3600)))
}
