//! What the log tells of requests to the host: once that it cannot be reached and once that it can again, and where the log
//! asks for it (`-v`), each request, and the bodies that are sent. Headers are never told, nor bodies with credentials.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tower::{BoxError, Layer, Service};
use tracing::{debug, enabled, info, warn};

use crate::spans::MAX_BODY_SHOWN;

/// Resources whose bodies carry credentials.
const CREDENTIALS: [&str; 3] = ["tokenreviews", "secrets", "token"];

/// A host as the log names it, and whether it can be reached. Shared by all clients of it.
#[derive(Clone)]
pub(super) struct Observe(Arc<Host>);

struct Host {
    url: String,
    /// Which flag names it.
    from: String,
    is_away: AtomicBool,
}

impl Observe {
    pub(super) fn new(url: &http::Uri, from: String) -> Self {
        let url = url.to_string().trim_end_matches('/').to_owned();
        Self(Arc::new(Host { url, from, is_away: AtomicBool::new(false) }))
    }

    fn answered(&self, method: &Method, path: &str, status: StatusCode, begun: Instant) {
        if self.0.is_away.load(Relaxed) && self.0.is_away.swap(false, Relaxed) {
            info!("{} is reached again", self.0.url);
        }
        let took = Seconds(begun);
        debug!(target: "requests", "{method} {}{path} {} in {took}", self.0.url, status.as_u16());
    }

    fn failed(&self, method: &Method, path: &str, error: &(dyn Error + 'static), begun: Instant) {
        let Host { url, from, is_away } = &*self.0;
        let (why, took) = (cause(error), Seconds(begun));
        if !is_away.swap(true, Relaxed) {
            warn!("cannot reach {url} (from {from}): {why}; trying again");
        }
        debug!(target: "requests", "{method} {url}{path} failed after {took}: {why}");
    }
}

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed { inner, observe: self.clone() }
    }
}

/// A client's service whose requests are told.
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
        // The one that is ready is the one that is called.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let (observe, begun) = (self.observe.clone(), Instant::now());
        Box::pin(async move {
            let (method, uri) = (request.method().clone(), request.uri().clone());
            let path = uri.path_and_query().map_or("", |path| path.as_str());
            let request = tell_body(request, path).await?;
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

/// The request again, its body told if the log asks for that.
async fn tell_body(request: Request<Body>, path: &str) -> Result<Request<Body>, BoxError> {
    let has_credentials = path.split(['/', '?']).any(|part| CREDENTIALS.contains(&part));
    if !enabled!(target: "bodies", tracing::Level::DEBUG) || has_credentials {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await?.to_bytes();
    if !bytes.is_empty() {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BODY_SHOWN)]);
        debug!(target: "bodies", "{} {path} {shown}", parts.method);
    }
    Ok(Request::from_parts(parts, Body::from(bytes)))
}

/// The innermost cause of a failure, in the system's plain words where it is one of the system's.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    // An io::Error skips the error that it wraps.
    while let Some(next) = last.downcast_ref().and_then(wrapped).or_else(|| last.source()) {
        last = next;
    }
    match last.downcast_ref::<io::Error>().filter(|error| error.raw_os_error().is_some()) {
        Some(error) => error.kind().to_string(),
        None => last.to_string(),
    }
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
    use super::*;

    #[test]
    fn the_cause_is_the_innermost_in_plain_words() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(cause(&io::Error::other(refused)), "connection refused");
        assert_eq!(cause(&io::Error::other("no route")), "no route");
    }

    #[tokio::test]
    async fn a_body_is_sent_as_it_was() {
        let request = Request::new(Body::from(b"{}".to_vec()));
        let sent = tell_body(request, "/api/v1/pods").await.unwrap();
        assert_eq!(sent.into_body().collect().await.unwrap().to_bytes(), "{}");
    }
}
