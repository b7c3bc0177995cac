//! Evictions side by side, each tried until the host accepts it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use kube::Client;
use serde_json::{Value, json};

use super::workload::{DrainedPod, NAMESPACE};

/// Evictions that are under way at a time.
const IN_FLIGHT: usize = 64;
/// How long one of them waits after a budget's refusal: tries that are refused cost the host, which then is slower.
const PAUSE: Duration = Duration::from_millis(250);

/// Tries to evict the pods until all are. One that is refused goes to the end of the queue: others, of other budgets, have
/// their turn first.
pub async fn evict_all(
    pods: &[DrainedPod],
    attempt: impl AsyncFn(&DrainedPod) -> Result<Evicted>,
) -> Result<()> {
    let queue = Mutex::new(pods.iter().collect::<VecDeque<_>>());
    let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
    let work = async || {
        loop {
            let Some(pod) = lock().pop_front() else { return anyhow::Ok(()) };
            let pause = match attempt(pod).await? {
                Evicted::Yes => continue,
                Evicted::TryAgain(pause) => pause,
            };
            lock().push_back(pod);
            tokio::time::sleep(pause).await;
        }
    };
    try_join_all((0..IN_FLIGHT).map(|_| work())).await.map(drop)
}

/// How an attempt ended.
pub enum Evicted {
    /// The pod is on its way, or gone.
    Yes,
    /// It is still there, and is tried again after this time.
    TryAgain(Duration),
}

/// Asks the host once to evict a pod.
pub async fn evict(client: &Client, pod: &DrainedPod) -> Result<Evicted> {
    let DrainedPod { name, uid } = pod;
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE},
        "deleteOptions": {"preconditions": {"uid": uid}},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&eviction)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(Evicted::Yes),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Evicted::Yes),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Evicted::TryAgain(PAUSE)),
        // The host lost its races for the budget's status: it has paused itself.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(Evicted::TryAgain(Duration::ZERO)),
        Err(error) => Err(error).with_context(|| format!("evicting {name}")),
    }
}
