//! Questions to the host, asked again for a while when it cannot answer
//! (k8s.io/apiserver pkg/util/webhook, WithExponentialBackoff; pkg/server/options, DefaultAuthWebhookRetryBackoff).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use drydock_logging::with_causes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Api;
use kube::api::PostParams;
use kube::core::{Request, Status};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest time for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts at one review, and the pause before the second; each further pause is half as long again.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Maximum bytes of an answer, beside the question that it repeats. The host's reason for a denial names each
/// RoleBinding whose role does not exist, so it is as long as a tenant wants it to be (Kubernetes
/// plugin/pkg/auth/authorizer/rbac).
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Bytes of an answer for each byte of the question: JSON as Go writes it has six for some, and the names of extras come
/// again in metadata.managedFields.
const REPEATED: usize = 8;

/// What the host answers.
#[derive(Debug)]
pub(crate) enum HostAnswer<S> {
    /// The status of the review, empty if it has none.
    Status(S),
    /// The answer is longer than the bound up to which it is read.
    TooLong,
}

/// What is read of an answer. The rest of it repeats the question and names the asker (metadata.managedFields).
#[derive(Deserialize)]
struct Review<S> {
    status: Option<S>,
}

/// Whether the last review got no answer, so that a change of that is logged, and not each review.
#[derive(Debug, Default)]
pub(super) struct HostAnswers(AtomicBool);

/// The host's answer; `None` if it gives none. The question is asked again only while a request waits for the answer.
pub(super) async fn ask<K, S>(
    api: &Api<K>,
    question: &K,
    host: &HostAnswers,
    is_awaited: impl Fn() -> bool,
) -> Option<HostAnswer<S>>
where
    K: kube::Resource<DynamicType = ()> + Clone + Serialize,
    S: DeserializeOwned + Default,
{
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let answer = tokio::time::timeout(TIMEOUT, post(api, question)).await;
        match answer.map_err(|_| None).and_then(|answer| answer.map_err(Some)) {
            Ok(answer) => {
                host.answered(api.resource_url());
                return Some(answer);
            }
            Err(error) => {
                let is_last = attempt == ATTEMPTS || !is_awaited();
                if is_last || error.as_ref().is_some_and(|error| !is_retryable(error)) {
                    let error =
                        error.map_or_else(|| "no answer in time".to_owned(), |error| logged::<K>(&error));
                    host.failed(&error, api.resource_url());
                    return None;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = pause.mul_f32(1.5);
    }
    None
}

impl HostAnswers {
    fn answered(&self, url: &str) {
        if self.0.load(Relaxed) && self.0.swap(false, Relaxed) {
            tracing::info!(url, "the host answers reviews again");
        }
    }

    fn failed(&self, error: &str, url: &str) {
        if self.0.swap(true, Relaxed) {
            tracing::debug!(error, url, "a review request to the host failed");
        } else {
            tracing::warn!(
                error,
                url,
                "a review request to the host failed; the next log line follows when one succeeds"
            );
        }
    }
}

/// An error as the log shows it. The answer to a TokenReview may repeat the token, so nothing of its text is shown.
fn logged<K: kube::Resource<DynamicType = ()>>(error: &kube::Error) -> String {
    match error {
        _ if K::kind(&()) != "TokenReview" => with_causes(error),
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        kube::Error::SerdeError(_) => "the answer is not a TokenReview".to_owned(),
        _ => with_causes(error),
    }
}

async fn post<K, S>(api: &Api<K>, question: &K) -> kube::Result<HostAnswer<S>>
where
    K: kube::Resource + Clone + Serialize,
    S: DeserializeOwned + Default,
{
    let body = serde_json::to_vec(question).map_err(kube::Error::SerdeError)?;
    let most = MAX_ANSWER_BYTES + REPEATED * body.len();
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    // What the client's traces call it.
    request.extensions_mut().insert("create");
    let (head, body) = api.clone().into_client().send(request.map(Into::into)).await?.into_parts();
    match Limited::new(body, most).collect().await {
        Ok(body) if head.status.is_success() => {
            let review: Review<S> =
                serde_json::from_slice(&body.to_bytes()).map_err(kube::Error::SerdeError)?;
            Ok(HostAnswer::Status(review.status.unwrap_or_default()))
        }
        Ok(body) => Err(refused(head.status, &body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() && head.status.is_success() => Ok(HostAnswer::TooLong),
        Err(error) => Err(kube::Error::Service(error)),
    }
}

/// A refusal of the host, with its message if it sends a Status.
fn refused(code: StatusCode, body: &Bytes) -> kube::Error {
    let told = serde_json::from_slice::<Status>(body);
    let unknown = || Status::failure(&String::from_utf8_lossy(body), "Unknown");
    kube::Error::Api(told.unwrap_or_else(|_| unknown()).with_code(code.as_u16()).boxed())
}

/// Whether the same question may be answered a moment later: the host is unreachable, overloaded, or failed.
fn is_retryable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}
