//! Questions to the host, asked again for a while when it cannot answer
//! (k8s.io/apiserver pkg/util/webhook, WithExponentialBackoff; pkg/server/options, DefaultAuthWebhookRetryBackoff).

use std::fmt::Debug;
use std::time::Duration;

use kube::Api;
use kube::api::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest time for one answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Attempts at one review, and the pause before the second; each further pause is half as long again.
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The host's answer; `None` if there is none, which has been logged.
pub async fn ask<K>(api: &Api<K>, question: &K) -> Option<K>
where
    K: kube::Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let mut pause = FIRST_PAUSE;
    for attempt in 1..=ATTEMPTS {
        let answer = tokio::time::timeout(TIMEOUT, api.create(&PostParams::default(), question)).await;
        let url = api.resource_url();
        match answer {
            Ok(Ok(answer)) => return Some(answer),
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

/// Whether the same question may be answered a moment later: the host is unreachable, overloaded, or failed.
fn is_retryable(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}
