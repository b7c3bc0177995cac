//! What makes a request take the aggregator, and which requests may be sent a second time. Pure.

use std::fmt;

use drydock_logging::NoAnswer;
use drydock_serving::host::ConnectFailure;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::Value;

use super::api_service::NoServer;

/// The media type of server-side apply.
const APPLY: &str = "application/apply-patch";

/// Why the API server could not be used at its Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DirectFailure {
    /// The request was not sent.
    NotSent(ConnectFailure),
    /// It was answered with 503.
    Unavailable,
    /// It was taken, and not answered.
    NoAnswer(NoAnswer),
    /// No client could be made: the APIService's bundle or the token cannot be read.
    NoClient(String),
}

impl DirectFailure {
    /// Returns the failure that a result is. Any other error, and any other answer, is the request's own: the server
    /// has judged it, or the connection was lost after it was sent, and the next request makes a new one.
    pub(super) fn of<B>(result: &kube::Result<Response<B>>) -> Option<Self> {
        match result {
            Ok(answer) => (answer.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(Self::Unavailable),
            Err(error) => {
                let silent = NoAnswer::of(error).cloned().map(Self::NoAnswer);
                silent.or_else(|| ConnectFailure::of(error).map(Self::NotSent))
            }
        }
    }

    /// The name in metrics, label `reason`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::NotSent(ConnectFailure::Connect(_)) => "connect",
            Self::NotSent(ConnectFailure::Tls(_)) => "tls",
            Self::Unavailable => "unavailable",
            Self::NoAnswer(_) => "no_answer",
            Self::NoClient(_) => NoServer::NAME,
        }
    }

    /// Whether a request that failed so may be sent again. With a 503 the server says that it has done nothing, but one
    /// that ends may have done it, and one that does not answer too: a write is repeated if it does no harm to be made twice.
    pub(super) fn may_repeat(&self, request: &Parts, body: &[u8]) -> bool {
        match self {
            Self::NotSent(_) | Self::NoClient(_) => true,
            Self::Unavailable | Self::NoAnswer(_) => {
                request.method == Method::GET || is_harmless_when_repeated(request, body)
            }
        }
    }
}

impl fmt::Display for DirectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(ConnectFailure::Connect(why)) => write!(f, "no connection: {why}"),
            Self::NotSent(ConnectFailure::Tls(why)) => write!(f, "no TLS connection: {why}"),
            Self::Unavailable => f.write_str("answered 503"),
            Self::NoAnswer(silent) => write!(f, "{silent}"),
            Self::NoClient(why) => f.write_str(why),
        }
    }
}

/// Whether the write does no harm when it was made before, also if others have written in between: a create with a name,
/// an update of one resourceVersion, a delete of one UID, and an apply to one UID. The controllers apply by force what is
/// theirs: their own entries and requesters, which they apply again whenever others change them.
fn is_harmless_when_repeated(request: &Parts, body: &[u8]) -> bool {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let has = |path: &str| body.pointer(path).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let is_apply = || {
        request.headers.get(CONTENT_TYPE).is_some_and(|type_| type_.as_bytes().starts_with(APPLY.as_bytes()))
    };
    match request.method {
        Method::POST => has("/metadata/name"),
        Method::PATCH | Method::PUT => {
            has("/metadata/resourceVersion") || (has("/metadata/uid") && is_apply())
        }
        Method::DELETE => has("/preconditions/uid"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use http::Request;

    use super::*;

    fn answer(code: u16) -> kube::Result<Response<()>> {
        Ok(Response::builder().status(code).body(()).unwrap())
    }

    fn request(method: &Method, type_: &str) -> Parts {
        let request = Request::builder().method(method).header(CONTENT_TYPE, format!("application/{type_}"));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_503_is_a_failure_among_the_answers() {
        for code in [200, 201, 400, 401, 403, 404, 409, 410, 422, 429, 500, 504, 507] {
            assert_eq!(DirectFailure::of(&answer(code)), None, "{code}");
        }
        assert_eq!(DirectFailure::of(&answer(503)), Some(DirectFailure::Unavailable));
    }

    fn unanswered() -> kube::Error {
        let (request, waited) = ("GET /a".to_owned(), Duration::from_secs(75));
        kube::Error::Service(Box::new(NoAnswer { request, waited, has_begun: false }))
    }

    /// A server that took every request and answered none was neither left nor reported.
    #[test]
    fn a_request_without_an_answer_is_a_failure() {
        let failure = DirectFailure::of::<()>(&Err(unanswered())).unwrap();
        assert_eq!(failure.name(), "no_answer");
        assert_eq!(failure.to_string(), "GET /a: no answer within 75 s");
    }

    /// The server may have done what a request asks for whose answer is lost.
    #[test]
    fn an_error_after_the_request_was_sent_is_the_requests_own() {
        let lost: kube::Result<Response<()>> = Err(kube::Error::Service("connection reset".into()));
        assert_eq!(DirectFailure::of(&lost), None);
    }

    #[test]
    fn a_write_that_may_have_been_made_is_sent_again_only_if_the_second_changes_nothing() {
        let silent = DirectFailure::of::<()>(&Err(unanswered())).unwrap();
        let may = |method: &Method, body: &str| {
            let request = request(method, "merge-patch+json");
            let [after_503, unanswered] =
                [&DirectFailure::Unavailable, &silent].map(|it| it.may_repeat(&request, body.as_bytes()));
            assert_eq!(after_503, unanswered, "{method} {body}");
            after_503
        };
        assert!(may(&Method::GET, ""));
        assert!(may(&Method::POST, r#"{"metadata": {"name": "a"}}"#));
        assert!(!may(&Method::POST, r#"{"metadata": {"generateName": "a-"}}"#));
        assert!(may(&Method::PATCH, r#"{"metadata": {"resourceVersion": "7"}, "status": {}}"#));
        // Another write in between would be undone.
        assert!(!may(&Method::PATCH, r#"{"metadata": {"uid": "u"}, "spec": {}}"#));
        let apply = request(&Method::PATCH, "apply-patch+yaml");
        assert!(DirectFailure::Unavailable.may_repeat(&apply, br#"{"metadata": {"uid": "u"}, "spec": {}}"#));
        assert!(!DirectFailure::Unavailable.may_repeat(&apply, br#"{"spec": {}}"#));
        assert!(!may(&Method::PATCH, r#"{"spec": {}}"#));
        assert!(!may(&Method::PATCH, r#"[{"op": "add", "path": "/spec/requesters/-", "value": {}}]"#));
        assert!(may(&Method::DELETE, r#"{"preconditions": {"uid": "u"}}"#));
        assert!(!may(&Method::DELETE, ""));
    }

    #[test]
    fn a_request_that_was_not_sent_may_always_be_sent() {
        let failure = DirectFailure::NotSent(ConnectFailure::Connect("refused".to_owned()));
        assert!(failure.may_repeat(&request(&Method::DELETE, "json"), b""));
    }
}
