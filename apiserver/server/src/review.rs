//! Questions to the host, asked again for a while when it cannot answer
//! (k8s.io/apiserver pkg/util/webhook, WithExponentialBackoff; pkg/server/options, DefaultAuthWebhookRetryBackoff).

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

/// The status of the host's answer, empty if it has none; `None` if there is no answer, which has been logged.
pub async fn ask<K, S>(api: &Api<K>, question: &K) -> Option<S>
where
    K: kube::Resource + Clone + Serialize,
    S: DeserializeOwned + Default,
{
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let answer = tokio::time::timeout(TIMEOUT, post(api, question)).await;
        let url = api.resource_url();
        match answer {
            Ok(Ok(answer)) => return Some(answer.status.unwrap_or_default()),
            Ok(Err(error)) if !is_retryable(&error) || attempt == ATTEMPTS => {
                tracing::warn!(%error, url, "the host did not answer a review");
                return None;
            }
            Err(_) if attempt == ATTEMPTS => {
                tracing::warn!(url, "the host did not answer a review in time");
                return None;
            }
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = pause.mul_f32(1.5);
    }
    None
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
