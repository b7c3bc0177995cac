//! How long a request may take (k8s.io/apiserver pkg/endpoints/filters/request_deadline.go), and the error when it
//! takes longer.

use std::time::Duration;

use drydock_machinery::ApiError;
use drydock_machinery::quote::go_quote;
use drydock_serving::request::info::{RequestInfo, Verb};

/// Longest time of a change to one object (k8s.io/apiserver pkg/endpoints/handlers/rest.go,
/// requestTimeoutUpperBound). A deletecollection may take as long as any other request.
const MUTATION: Duration = Duration::from_secs(34);

/// Returns how long a request may take: at most `any`. `?timeout=` may shorten the time, never lengthen it. Fails
/// with 400 if its value is malformed.
pub fn of(info: &RequestInfo, any: Duration) -> Result<Duration, ApiError> {
    let longest = match info.verb {
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete => any.min(MUTATION),
        _ => any,
    };
    let Some(asked) = info.query.non_empty("timeout").filter(|text| *text != "0") else {
        return Ok(longest);
    };
    let asked: jiff::SignedDuration = asked.parse().map_err(|_| {
        let why = "invalid timeout specified in the request URL";
        ApiError::bad_request(format!("{why} - time: invalid duration {}", go_quote(asked)))
    })?;
    let asked = Duration::try_from(asked).ok().filter(|time| !time.is_zero());
    Ok(asked.unwrap_or(longest).min(longest))
}

/// The error of a request that has run out of time, in the words of Kubernetes' handlers for a change to a resource,
/// and of its timeout filter for any other request (k8s.io/apiserver pkg/endpoints/handlers/finisher,
/// pkg/server/filters/timeout.go).
pub fn missed(info: &RequestInfo) -> ApiError {
    let message = if info.is_resource && info.verb.is_mutating() {
        "request did not complete within requested timeout - context deadline exceeded"
    } else {
        "request did not complete within the allotted timeout"
    };
    ApiError::timeout(message, 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use http::Method;

    use super::*;

    #[test]
    fn a_client_may_shorten_its_time_and_never_lengthen_it() {
        let time = |method: Method, query: &str| {
            let uri = format!("/apis/g/v1/things/a{query}").parse().unwrap();
            let info = RequestInfo::parse(&method, &uri);
            of(&info, Duration::from_secs(60)).map_or_else(|error| error.code().into(), |time| time.as_secs())
        };
        assert_eq!([time(Method::GET, ""), time(Method::PUT, "")], [60, 34]);
        assert_eq!([time(Method::GET, "?timeout=5s"), time(Method::PUT, "?timeout=50s")], [5, 34]);
        assert_eq!([time(Method::GET, "?timeout=0"), time(Method::GET, "?timeout=soon")], [60, 400]);
    }
}
