//! The text of an error.

use std::error::Error;

use kube::core::Status;

use crate::NoAnswer;

/// Returns an error with its causes in one line. A cause that the error's own text contains is not repeated. Of a
/// Status from an API server only the message is used, because kube adds Rust debug output.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    if let Some(status) = status_of(error) {
        return of_status(status);
    }
    let text = error.to_string();
    let Some(cause) = error.source() else { return text };
    let (shown, words) = (cause.to_string(), with_causes(cause));
    if !shown.is_empty() && text.contains(&shown) {
        text.replacen(&shown, &words, 1)
    } else if text.contains(&words) {
        text
    } else {
        format!("{text}: {words}")
    }
}

/// Whether the error means that no server was reached, which the client logs. A server that was reached and did not answer
/// ([`NoAnswer`]) is a matter of that one request.
pub fn is_unreachable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Service(_) | kube::Error::HyperError(_)) && NoAnswer::of(error).is_none()
}

fn status_of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Status> {
    if let Some(kube::Error::Api(status)) = error.downcast_ref() {
        return Some(status);
    }
    error.downcast_ref().or_else(|| error.downcast_ref::<Box<Status>>().map(|status| &**status))
}

fn of_status(status: &Status) -> String {
    match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("HTTP status {}", status.code),
        ("", reason) => format!("HTTP status {}, {reason}", status.code),
        (message, _) => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use kube::runtime::watcher;

    use super::*;

    #[derive(Debug)]
    struct Writing(kube::Error);

    impl fmt::Display for Writing {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "writing the status: {}", self.0)
        }
    }

    impl Error for Writing {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    fn forbidden() -> Box<Status> {
        Status::failure("nodes is forbidden: User \"u\" cannot list", "Forbidden").with_code(403).boxed()
    }

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::other("connection refused");
        let error = kube::Error::Service(Box::new(std::io::Error::other(inner)));
        assert_eq!(with_causes(&error), "ServiceError: connection refused");
    }

    /// Regression: each 403 in the log contained `Status { status: Some(Failure), code: 403, ... }`.
    #[test]
    fn what_an_api_server_answers_is_its_message_wherever_it_stands_in_the_chain() {
        let words = "nodes is forbidden: User \"u\" cannot list";
        assert_eq!(with_causes(&kube::Error::Api(forbidden())), words);
        let writing = Writing(kube::Error::Api(forbidden()));
        assert_eq!(with_causes(&writing), format!("writing the status: {words}"));
        let list = watcher::Error::InitialListFailed(kube::Error::Api(forbidden()));
        assert_eq!(with_causes(&list), format!("failed to perform initial object list: {words}"));
        let watch = watcher::Error::WatchError(forbidden());
        assert_eq!(with_causes(&watch), format!("error returned by apiserver during watch: {words}"));
    }

    #[test]
    fn an_answer_without_a_message_is_its_code_and_reason() {
        let of =
            |reason: &str| with_causes(&kube::Error::Api(Status::failure("", reason).with_code(503).boxed()));
        assert_eq!(of(""), "HTTP status 503");
        assert_eq!(of("ServiceUnavailable"), "HTTP status 503, ServiceUnavailable");
    }
}
