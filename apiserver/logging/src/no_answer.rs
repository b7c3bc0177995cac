//! The error of a request that a server took and did not answer.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A server took a request, over a connection that lives, and did not answer it in time. Whether it has done what the request
/// asks for is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    /// Method and path.
    pub request: String,
    /// How long the client waited.
    pub waited: Duration,
    /// Whether an answer has begun, of which the rest is missing.
    pub has_begun: bool,
}

impl NoAnswer {
    /// Returns the failure if `error` has it as itself or among its causes.
    pub fn of<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, waited, has_begun } = self;
        let missing = if *has_begun { "nothing more of the answer" } else { "no answer" };
        write!(f, "{request}: {missing} within {} s", waited.as_secs())
    }
}

impl Error for NoAnswer {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{is_unreachable, with_causes};

    fn failed(has_begun: bool) -> kube::Error {
        let request = "GET /api/v1/pods".to_owned();
        kube::Error::Service(Box::new(NoAnswer { request, waited: Duration::from_secs(75), has_begun }))
    }

    #[test]
    fn the_text_names_the_request_and_how_long_it_was_waited_for() {
        assert_eq!(with_causes(&failed(false)), "ServiceError: GET /api/v1/pods: no answer within 75 s");
        let stopped = "ServiceError: GET /api/v1/pods: nothing more of the answer within 75 s";
        assert_eq!(with_causes(&failed(true)), stopped);
    }

    /// One slow request was logged as a host that cannot be reached, and no controller said that its write had no answer.
    #[test]
    fn a_server_that_does_not_answer_one_request_is_not_unreachable() {
        assert!(NoAnswer::of(&failed(false)).is_some() && !is_unreachable(&failed(false)));
        let refused = kube::Error::Service("connection refused".into());
        assert!(NoAnswer::of(&refused).is_none() && is_unreachable(&refused));
    }
}
