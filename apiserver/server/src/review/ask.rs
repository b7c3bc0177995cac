//! Questions to the host, asked again for a while when it cannot answer
//! (k8s.io/apiserver pkg/util/webhook, WithExponentialBackoff; pkg/server/options, DefaultAuthWebhookRetryBackoff).

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use kube::Api;
use kube::api::PostParams;
use kube::core::Request;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest time for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts at one review, and the pause before the second; each further pause is half as long again.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// What is read of an answer. It repeats the question, and says who asked it (metadata.managedFields): that is most of
/// it, and nobody looks at it.
#[derive(Deserialize)]
struct Answer<S> {
    status: Option<S>,
}

/// Whether the last review was answered, so that changes of that are logged, not each review.
#[derive(Debug, Default)]
pub(crate) struct Answering(AtomicBool);

/// The status of the host's answer, empty if it has none; `None` if there is no answer. The question is asked again only
/// while somebody waits for the answer.
pub(crate) async fn ask<K, S>(
    api: &Api<K>,
    question: &K,
    answering: &Answering,
    is_awaited: impl Fn() -> bool,
) -> Option<S>
where
    K: kube::Resource + Clone + Serialize,
    S: DeserializeOwned + Default,
{
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let answer = tokio::time::timeout(TIMEOUT, post(api, question)).await;
        match answer.map_err(|_| None).and_then(|answer| answer.map_err(Some)) {
            Ok(answer) => {
                answering.again(api.resource_url());
                return Some(answer.status.unwrap_or_default());
            }
            Err(error) => {
                let is_last = attempt == ATTEMPTS || !is_awaited();
                if is_last || error.as_ref().is_some_and(|error| !is_retryable(error)) {
                    answering.failed(error, api.resource_url());
                    return None;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = pause.mul_f32(1.5);
    }
    None
}

impl Answering {
    fn again(&self, url: &str) {
        if self.0.load(Relaxed) && self.0.swap(false, Relaxed) {
            tracing::info!(url, "the host answers reviews again");
        }
    }

    fn failed(&self, error: Option<kube::Error>, url: &str) {
        let error = error.map_or_else(|| "no answer in time".to_owned(), |error| error.to_string());
        if self.0.swap(true, Relaxed) {
            tracing::debug!(error, url, "the host did not answer a review");
        } else {
            tracing::warn!(
                error,
                url,
                "the host did not answer a review; the next line about it is when it does"
            );
        }
    }
}

async fn post<K, S>(api: &Api<K>, question: &K) -> kube::Result<Answer<S>>
where
    K: kube::Resource + Clone + Serialize,
    S: DeserializeOwned,
{
    let body = serde_json::to_vec(question).map_err(kube::Error::SerdeError)?;
    let request = Request::new(api.resource_url()).create(&PostParams::default(), body);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    // What the client's traces call it.
    request.extensions_mut().insert("create");
    api.clone().into_client().request(request).await
}

/// Whether the same question may be answered a moment later: the host is unreachable, overloaded, or failed.
fn is_retryable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}
