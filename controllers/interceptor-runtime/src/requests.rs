//! Reads requests and writes entries, and learns the API server's clock from its answers.
//!
//! The API server accepts times that differ from its clock by 10 seconds at most. Each of its answers has a header
//! `Date`, so that an interceptor on a node with a wrong clock writes times that are accepted.

use std::time::Duration;

use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus, NAMES};
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{ApiResource, GetParams, Patch, PatchParams};
use kube::client::Body;
use kube::core::{GroupVersionKind, Request, Status};
use tokio::sync::watch;

use crate::entry::apply_body;

/// An answer that takes longer is taken for lost.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// A difference of clocks that is not corrected: `Date` has whole seconds, and an answer is under way for a while.
const TOLERATED_SKEW: SignedDuration = SignedDuration::from_secs(3);

/// Why a request was not read or an entry not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// There is no request of this name.
    #[error("the request is gone")]
    Gone,
    /// The API server does not accept the entry: the turn is over, the request is another, or a time is wrong.
    #[error("refused: {0}")]
    Refused(String),
    /// Any other error, which may pass.
    #[error("{0}")]
    Failed(String),
}

/// The API of requests, for one interceptor.
pub(crate) struct RequestClient {
    pub(crate) client: Client,
    /// Name of the interceptor.
    pub(crate) interceptor: String,
    clock: fn() -> Timestamp,
    /// The API server's clock minus ours.
    skew: watch::Sender<SignedDuration>,
}

impl RequestClient {
    pub(crate) fn new(client: Client, interceptor: String, clock: fn() -> Timestamp) -> Self {
        Self { client, interceptor, clock, skew: watch::Sender::new(SignedDuration::ZERO) }
    }

    /// The time by the API server's clock, as far as is known.
    pub(crate) fn now(&self) -> Timestamp {
        let (now, skew) = ((self.clock)(), *self.skew.borrow());
        now.checked_add(skew).unwrap_or(now)
    }

    pub(crate) async fn read(&self, namespace: &str, name: &str) -> Result<EvictionRequest, RequestError> {
        let request = Request::new(path(namespace)).get(name, &GetParams::default()).map_err(failed)?;
        self.send(request).await
    }

    /// Writes the interceptor's entry as a whole, by an apply that takes it over from the controller that made it.
    pub(crate) async fn write(
        &self,
        request: &EvictionRequest,
        entry: &InterceptorStatus,
    ) -> Result<EvictionRequest, RequestError> {
        let meta = &request.metadata;
        let params = PatchParams::apply(&self.interceptor).force();
        let body = Patch::Apply(apply_body(request, entry));
        let path = Request::new(path(&meta.namespace));
        self.send(path.patch_subresource("status", &meta.name, &params, &body).map_err(failed)?).await
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<EvictionRequest, RequestError> {
        let answer = async {
            let response = self.client.send(request.map(Body::from)).await?;
            self.learn_clock(response.headers());
            let status = response.status();
            Ok::<_, kube::Error>((status, response.into_body().collect_bytes().await?))
        };
        let answer = tokio::time::timeout(ANSWER_LIMIT, answer).await;
        let (status, body) = answer.map_err(|_| failed("no answer in time"))?.map_err(failed)?;
        if !status.is_success() {
            return Err(refusal(status.as_u16(), &body));
        }
        serde_json::from_slice(&body).map_err(failed)
    }

    fn learn_clock(&self, headers: &http::HeaderMap) {
        let date = headers.get(http::header::DATE).and_then(|date| date.to_str().ok());
        let Some(date) = date.and_then(|date| rfc2822::parse(date).ok()) else { return };
        let skew = date.timestamp().duration_since((self.clock)());
        let skew = if skew.abs() > TOLERATED_SKEW { skew } else { SignedDuration::ZERO };
        self.skew.send_replace(skew);
    }
}

/// The resource of requests, for kube's generic client.
pub(crate) fn resource() -> ApiResource {
    let kind = GroupVersionKind::gvk(NAMES.group, NAMES.version, NAMES.kind);
    ApiResource::from_gvk_with_plural(&kind, NAMES.plural)
}

fn path(namespace: &str) -> String {
    format!("/apis/{}/{}/namespaces/{namespace}/{}", NAMES.group, NAMES.version, NAMES.plural)
}

fn failed(error: impl ToString) -> RequestError {
    RequestError::Failed(error.to_string())
}

/// What an answer other than success means.
fn refusal(code: u16, body: &[u8]) -> RequestError {
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    let is_named = status.details.as_ref().is_some_and(|details| !details.name.is_empty());
    match code {
        // An aggregator that does not know the API yet answers 404 without a name.
        404 if is_named => RequestError::Gone,
        409 | 422 => RequestError::Refused(status.message),
        _ if status.message.is_empty() => failed(format_args!("HTTP status {code}")),
        _ => RequestError::Failed(status.message),
    }
}
