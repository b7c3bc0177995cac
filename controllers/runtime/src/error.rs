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

/// How long to wait at least before the same again, if the server asked for less: what it says, else a second. (A 429 of
/// the host's flow control names the time in a header alone, which does not get here.)
pub fn pace(error: &kube::Error) -> Option<Duration> {
    let second = Duration::from_secs(1);
    (classify(error) == Failure::Throttled).then(|| retry_after(error).unwrap_or(second).max(second))
}

/// An error with its causes in one line; what an error says of its cause itself is not repeated.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::other("connection refused");
        let error = kube::Error::Service(Box::new(std::io::Error::other(inner)));
        assert_eq!(with_causes(&error), "ServiceError: connection refused");
    }

    #[test]
    fn a_server_that_asks_for_less_sets_the_pace() {
        let status = |code: u16, seconds: u32| {
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
        };
        assert_eq!(pace(&status(429, 0)), Some(Duration::from_secs(1)));
        assert_eq!(pace(&status(429, 7)), Some(Duration::from_secs(7)));
        assert_eq!(pace(&status(503, 7)), None);
    }

    #[test]
    fn failures_are_sorted_by_code_and_reason() {
        let of = |code: u16, reason: &str| {
            let status = kube::core::Status::failure("m", reason).with_code(code);
            classify(&kube::Error::Api(status.boxed()))
        };
        assert_eq!(of(404, ""), Failure::NotFound);
        assert_eq!(of(409, "Conflict"), Failure::Conflict);
        assert_eq!(of(409, "AlreadyExists"), Failure::AlreadyExists);
        assert_eq!(of(403, ""), Failure::Forbidden);
        assert_eq!(of(422, ""), Failure::Invalid);
        assert_eq!(of(429, ""), Failure::Throttled);
        assert_eq!(of(503, ""), Failure::Unavailable);
        assert_eq!(classify(&kube::Error::Service("broken pipe".into())), Failure::Unavailable);
    }
}
