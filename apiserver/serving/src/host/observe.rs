//! What the log says of requests to the host: once that it cannot be reached and once that it can again, and at higher
//! verbosity (`-v`) each request, and the bodies that are sent. Headers and bodies with credentials are never logged.

use std::collections::HashMap;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Weak};
use std::task::{Context, Poll};
use std::time::Instant;
use std::{fmt, io};

use drydock_logging::NoAnswer;
use drydock_logging::target::{self, shown_body};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Layer, Service};
use tracing::{debug, enabled, info, warn};

/// Groups, and the resources in them whose bodies may be shown; an empty list stands for all. Those of others may carry
/// credentials, as secrets and tokenreviews do.
const SHOWN: [(&str, &[&str]); 4] = [
    ("", &["events", "nodes", "pods"]),
    ("authorization.k8s.io", &["subjectaccessreviews"]),
    ("coordination.k8s.io", &[]),
    ("policy", &["poddisruptionbudgets"]),
];

/// The hosts that this process has clients of, by URL and by which flag names it.
static HOSTS: LazyLock<Mutex<HashMap<Name, Weak<ObservedHost>>>> = LazyLock::new(Mutex::default);

/// URL of a host, and which flag names it.
type Name = (String, String);

/// A host as the log names it, and whether it can be reached. Shared by all clients that a process makes by one flag:
/// each has a connection of its own, and what they have in common is logged once.
#[derive(Clone)]
pub(super) struct Observe(Arc<ObservedHost>);

struct ObservedHost {
    url: String,
    /// The path of the URL, without a slash at its end: paths of requests begin with it.
    base: String,
    /// Which flag names it; none if its user tells that it is away.
    from: Option<String>,
    is_away: AtomicBool,
}

impl Observe {
    /// Returns the host of this URL that `from` names. All clients share it while one of them lives.
    pub(super) fn of(url: &http::Uri, from: String) -> Self {
        let mut hosts = HOSTS.lock();
        let key = (without_slash(&url.to_string()), from.clone());
        if let Some(host) = hosts.get(&key).and_then(Weak::upgrade) {
            return Self(host);
        }
        hosts.retain(|_, host| host.strong_count() > 0);
        let host = ObservedHost::new(url, Some(from));
        hosts.insert(key, Arc::downgrade(&host));
        Self(host)
    }

    /// Returns a server of which only requests are logged: whoever uses its client tells when it is away.
    pub(super) fn requests_of(url: &http::Uri) -> Self {
        Self(ObservedHost::new(url, None))
    }

    fn answered(&self, method: &Method, path: &str, status: StatusCode, begun: Instant) {
        if self.0.is_away.load(Relaxed) && self.0.is_away.swap(false, Relaxed) {
            info!("{} is reached again", self.0.url);
        }
        let took = Seconds(begun);
        debug!(target: target::REQUESTS, "{method} {}{path} {} in {took}", self.0.url, status.as_u16());
    }

    fn failed(&self, method: &Method, path: &str, error: &(dyn Error + 'static), begun: Instant) {
        let ObservedHost { url, from, is_away, .. } = &*self.0;
        let (why, took) = (cause(error), Seconds(begun));
        // A host that does not answer one request may answer all others. Who has made it tells of it.
        let is_reached = NoAnswer::of(error).is_some();
        if let Some(from) = from.as_ref().filter(|_| !is_reached && !is_away.swap(true, Relaxed)) {
            warn!("cannot reach {url} (from {from}): {why}; trying again");
        }
        debug!(target: target::REQUESTS, "{method} {url}{path} failed after {took}: {why}");
    }
}

impl ObservedHost {
    fn new(url: &http::Uri, from: Option<String>) -> Arc<Self> {
        let (url, base) = (without_slash(&url.to_string()), without_slash(url.path()));
        Arc::new(Self { url, base, from, is_away: AtomicBool::new(false) })
    }
}

fn without_slash(text: &str) -> String {
    text.trim_end_matches('/').to_owned()
}

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed { inner, observe: self.clone() }
    }
}

/// A client's service whose requests are logged.
#[derive(Clone)]
pub(super) struct Observed<S> {
    inner: S,
    observe: Observe,
}

impl<S, B> Service<Request<Body>> for Observed<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The service that was polled until it was ready must be the one that is called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let (observe, begun) = (self.observe.clone(), Instant::now());
        Box::pin(async move {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let path = uri.path_and_query().map_or("", |path| path.as_str());
            let path = path.strip_prefix(&observe.0.base).unwrap_or(path);
            let request = log_body(request, path).await?;
            match inner.call(request).await {
                Ok(response) => {
                    observe.answered(&method, path, response.status(), begun);
                    Ok(response)
                }
                Err(error) => {
                    let error = error.into();
                    observe.failed(&method, path, &*error, begun);
                    Err(error)
                }
            }
        })
    }
}

/// Logs the body of a request at `-v 8`, and returns the request.
async fn log_body(request: Request<Body>, path: &str) -> Result<Request<Body>, BoxError> {
    if !enabled!(target: target::BODIES, tracing::Level::DEBUG) || !may_be_shown(path) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    if !bytes.is_empty() {
        debug!(target: target::BODIES, "{} {path} {}", parts.method, shown_body(&bytes));
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// Whether the log may show the body of a request to this path: that of a resource that carries no credentials.
fn may_be_shown(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, within) = match parts.as_slice() {
        ["api", _, within @ ..] => ("", within),
        ["apis", group, _, within @ ..] => (*group, within),
        _ => return false,
    };
    let (["namespaces", _, resource, ..] | [resource, ..]) = within else { return false };
    SHOWN.iter().any(|(of, shown)| *of == group && (shown.is_empty() || shown.contains(resource)))
}

/// The innermost cause of a failure; the kind of an error of the operating system.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    let last = causes(error).last().unwrap_or(error);
    match last.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some()) {
        Some(error) => error.kind().to_string(),
        None => last.to_string(),
    }
}

/// The error and its causes, the innermost last.
pub(super) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    // An io::Error skips the error that it wraps.
    std::iter::successors(Some(error), |&error| {
        error.downcast_ref().and_then(wrapped).or_else(|| error.source())
    })
}

fn wrapped(error: &io::Error) -> Option<&(dyn Error + 'static)> {
    Some(error.get_ref()?)
}

/// Time since an instant.
struct Seconds(Instant);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.0.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use drydock_logging::testing;

    use super::*;

    #[test]
    fn the_cause_is_the_innermost_in_plain_words() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(cause(&io::Error::other(refused)), "connection refused");
        assert_eq!(cause(&io::Error::other("no route")), "no route");
    }

    #[test]
    fn bodies_are_shown_of_known_resources_alone() {
        for path in [
            "/api/v1/nodes/n/status",
            "/api/v1/namespaces/ns/pods/p/status",
            "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l?fieldManager=m",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        ] {
            assert!(may_be_shown(path), "{path}");
        }
        for path in [
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/api/v1/namespaces/ns/secrets/pods",
            "/api/v1/namespaces/pods/secrets",
            "/api/v1/namespaces/ns/serviceaccounts/sa/token",
            "/apis/example.com/v1/namespaces/ns/credentials/nodes",
            "/apis/example.com/v1/pods",
            "/elsewhere/nodes",
            "/api/v1",
        ] {
            assert!(!may_be_shown(path), "{path}");
        }
    }

    /// Each of the manager's four clients once logged that the same host could not be reached.
    #[test]
    fn clients_of_a_host_by_one_flag_share_whether_it_is_away() {
        let url: http::Uri = "https://observe.example.com:6443/".parse().unwrap();
        let observe = |from: &str| Observe::of(&url, from.to_owned());
        let (one, two, other) = (observe("--kubeconfig a"), observe("--kubeconfig a"), observe("--other b"));
        assert!(Arc::ptr_eq(&one.0, &two.0) && !Arc::ptr_eq(&one.0, &other.0));
        let was = Arc::downgrade(&one.0);
        drop((one, two));
        assert!(was.upgrade().is_none(), "it is kept no longer than its clients");
    }

    #[tokio::test]
    async fn requests_to_the_host_are_told_from_6_on_and_their_bodies_from_8_on() {
        let answers = tower::service_fn(|_: Request<Body>| async { Ok::<_, io::Error>(Response::new(())) });
        let observe = Observe::of(&"https://levels.example.com/base".parse().unwrap(), "a flag".to_owned());
        for (level, told, body) in [(5, false, false), (6, true, false), (7, true, false), (8, true, true)] {
            let (log, _guard) = testing::log(&target::directives(level));
            let request =
                Request::post("/base/api/v1/nodes").body(Body::from(b"{\"a\": 1}".to_vec())).unwrap();
            observe.layer(answers).call(request).await.unwrap();
            let line = "POST https://levels.example.com/base/api/v1/nodes 200 in";
            let text = log.lines().concat();
            assert_eq!(text.contains(line), told, "-v {level}: {text}");
            assert_eq!(text.contains("POST /api/v1/nodes {\"a\": 1}"), body, "-v {level}: {text}");
        }
    }

    /// One slow request was logged as a host that cannot be reached, and the next renewal of the Lease as one that is again.
    #[tokio::test]
    async fn a_host_that_does_not_answer_one_request_is_not_away() {
        let observe = Observe::of(&"https://slow.example.com".parse().unwrap(), "a flag".to_owned());
        let (log, _guard) = testing::log(&target::directives(5));
        let silent = tower::service_fn(|_: Request<Body>| async {
            let (request, waited) = ("GET /".to_owned(), Duration::from_secs(75));
            Err::<Response<()>, _>(NoAnswer { request, waited, has_begun: false })
        });
        let answers = tower::service_fn(|_: Request<Body>| async { Ok::<_, io::Error>(Response::new(())) });
        observe.layer(silent).call(Request::new(Body::empty())).await.unwrap_err();
        observe.layer(answers).call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(log.lines(), Vec::<String>::new());
        let refused = tower::service_fn(|_: Request<Body>| async {
            Err::<Response<()>, _>(io::Error::from_raw_os_error(111))
        });
        observe.layer(refused).call(Request::new(Body::empty())).await.unwrap_err();
        observe.layer(answers).call(Request::new(Body::empty())).await.unwrap();
        assert_eq!(log.lines().len(), 2, "{:?}", log.lines());
    }

    #[tokio::test]
    async fn a_body_is_sent_as_it_was() {
        let request = Request::new(Body::from(b"{}".to_vec()));
        let sent = log_body(request, "/api/v1/pods").await.unwrap();
        assert_eq!(sent.into_body().collect().await.unwrap().to_bytes(), "{}");
    }
}
