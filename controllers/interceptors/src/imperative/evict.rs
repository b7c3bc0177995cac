//! Takes requests out of the pool and sends their evictions.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::cache::api;
use drydock_runtime::{ControllerContext, ObjectKey, Pod, find, pass_on_panic};
use futures::FutureExt;
use k8s_openapi::api::core::v1::Pod as HostPod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::Api;
use kube::api::PostParams;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, error};

use super::asking_users::asking_users;
use super::budget_check::BudgetCheck;
use super::eviction_result::{EvictionResult, read};
use super::machine::Sending;
use super::reconciler::ImperativeReconciler;

/// How long to wait for the answer to an eviction. One that loses many races may take about half a minute
/// inside the host.
const ANSWERS_WITHIN: Duration = Duration::from_secs(45);

/// Sends evictions until shutdown, then waits for those in flight.
///
/// # Panics
/// The result of an eviction cannot be noted: its slot would stay taken.
pub(super) async fn dispatch(reconciler: Arc<ImperativeReconciler>) {
    let stop = reconciler.context.tasks.shutdown().clone();
    let mut evictions = JoinSet::new();
    loop {
        let now = Instant::now();
        while let Some(key) = take(&reconciler, now) {
            evictions.spawn(serve(reconciler.clone(), key));
        }
        let pause = reconciler.pool.lock().paused_until(now);
        tokio::select! {
            () = stop.cancelled() => break,
            () = reconciler.pool_changed.notified() => {}
            Some(ended) = evictions.join_next() => pass_on_panic(ended),
            () = tokio::time::sleep_until(pause.unwrap_or(now)), if pause.is_some() => {}
        }
    }
    while let Some(ended) = evictions.join_next().await {
        pass_on_panic(ended);
    }
}

fn take(reconciler: &ImperativeReconciler, now: Instant) -> Option<ObjectKey> {
    let mut pool = reconciler.pool.lock();
    let taken = pool.take(now);
    let (in_flight, waiting, limit) = pool.load();
    drop(pool);
    reconciler.metrics.in_flight.set(count(in_flight));
    reconciler.metrics.waiting.set(count(waiting));
    reconciler.metrics.limit.set(count(limit));
    taken
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

async fn serve(reconciler: Arc<ImperativeReconciler>, key: ObjectKey) {
    let began = Instant::now();
    // A panic is a bug. It must not keep the slot from other evictions, nor the pod from another attempt.
    let asked = AssertUnwindSafe(ask(&reconciler, &key)).catch_unwind().await.unwrap_or_else(|_| {
        error!(request = %key, "the eviction panicked; it is tried again");
        Some((EvictionResult::Unclear, BudgetCheck::Allows(None)))
    });
    let result = asked.as_ref().map(|(result, _)| result);
    {
        let mut pool = reconciler.pool.lock();
        let overload = result.is_some_and(EvictionResult::is_overload);
        pool.finish(&key, overload, began.elapsed(), Instant::now());
        if let Some(EvictionResult::Throttled(after)) = result {
            pool.pause(Instant::now() + after.unwrap_or(Duration::from_secs(1)));
        }
    }
    reconciler.answered(&key, asked);
    reconciler.pool_changed.notify_one();
}

/// Sends the eviction. Returns none if the request is no longer ours, the pod is already terminating, or the
/// eviction is not due any more.
async fn ask(reconciler: &ImperativeReconciler, key: &ObjectKey) -> Option<(EvictionResult, BudgetCheck)> {
    let fetched = reconciler.fetch(key);
    let sending = reconciler.sending(key, fetched.as_ref().map(|(_, seen)| seen))?;
    let (request, seen) = fetched?;
    let (target, pod) = (ImperativeReconciler::pod_of(&request), seen.pod.as_ref()?);
    let known = match sending {
        // Otherwise the next one would be sent without a live read.
        Sending::NotNow { is_unclear: true } => Some(EvictionResult::Unclear),
        Sending::NotNow { is_unclear: false } => Some(EvictionResult::TryAgain),
        Sending::LookFirst => look_live(&reconciler.context, &target, &pod.uid).await,
        Sending::Evict => None,
    };
    if let Some(result) = known {
        return Some((result, seen.check));
    }
    let users = asking_users(&request, pod, &reconciler.targets);
    let result = evict(&reconciler.context, &target, eviction(&target, &pod.uid, users)).await;
    debug!(request = %key, pod = %target, answer = result.kind(), "eviction");
    reconciler.metrics.answered(result.kind());
    Some((result, seen.check))
}

/// Reads the pod from the host, to find out about an eviction that the host may have accepted though the
/// cache does not show it: a second eviction would count as a second disruption of the budget. Returns none
/// if the pod is not terminating.
async fn look_live(context: &ControllerContext, pod: &ObjectKey, uid: &str) -> Option<EvictionResult> {
    match find(&api::<Pod>(&context.client, &pod.namespace), &pod.name).await {
        Ok(live) => match live.map(|wire| wire.object).filter(|live| live.uid == uid) {
            None => Some(EvictionResult::Gone),
            Some(live) => live.is_terminating().then_some(EvictionResult::Accepted),
        },
        Err(_) => Some(EvictionResult::Unclear),
    }
}

async fn evict(context: &ControllerContext, pod: &ObjectKey, body: Eviction) -> EvictionResult {
    let api: Api<HostPod> = Api::namespaced(context.evictions.clone(), &pod.namespace);
    let params = PostParams::default();
    let asked = api.create_subresource("eviction", &pod.name, &params, &body);
    match tokio::time::timeout(ANSWERS_WITHIN, asked).await {
        Ok(result) => read(result),
        Err(_) => EvictionResult::Unclear,
    }
}

/// The eviction of the pod with this UID, and not of a later one with its name. The users who ask for it are in its annotations.
///
/// `Api::evict` is not used: it sends the options as `delete_options`, a field that no host knows, so that
/// every host ignores the precondition (kube-core 5, subresource.rs).
fn eviction(pod: &ObjectKey, uid: &str, users: BTreeMap<String, String>) -> Eviction {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name.to_string()),
            namespace: Some(pod.namespace.to_string()),
            annotations: Some(users).filter(|users| !users.is_empty()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            preconditions: Some(preconditions),
            ..DeleteOptions::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::eviction_request::RequesterUser;
    use drydock_api::eviction_request::requester_users::USER_ANNOTATION;
    use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
    use drydock_runtime::testing::{context, failure, unknown_path};
    use serde_json::json;

    use super::super::testing::{accepted, pod, request};
    use super::*;

    /// The answer to an eviction was lost, and the controller concluded that the pod was gone: it did not
    /// send the eviction again for half a minute.
    #[tokio::test]
    async fn a_404_that_names_no_pod_does_not_mean_that_the_pod_is_gone() {
        let key = ObjectKey::new("ns", "db-0");
        let unknown = context(|_, _, _| unknown_path());
        assert_eq!(look_live(&unknown, &key, "u-1").await, Some(EvictionResult::Unclear));
        let gone = context(|_, _, _| failure(404, "NotFound"));
        assert_eq!(look_live(&gone, &key, "u-1").await, Some(EvictionResult::Gone));
    }

    #[test]
    fn an_eviction_is_bound_to_the_uid_in_the_field_that_the_host_reads() {
        let sent = eviction(&ObjectKey::new("ns", "db-0"), "u-1", BTreeMap::new());
        let sent = serde_json::to_value(sent).unwrap();
        assert_eq!(sent["deleteOptions"], json!({ "preconditions": { "uid": "u-1" } }));
        assert_eq!(sent["metadata"], json!({ "name": "db-0", "namespace": "ns" }));
        assert_eq!((&sent["apiVersion"], &sent["kind"]), (&json!("policy/v1"), &json!("Eviction")));
    }

    /// Policies of the host that judge by the user saw the account of the controllers alone.
    #[tokio::test(start_paused = true)]
    async fn the_eviction_that_is_sent_names_the_users_who_ask_for_it() {
        let (tell, mut sent) = tokio::sync::mpsc::channel(1);
        let context = context(move |_, path, body| {
            if path.contains("/eviction?") || path.ends_with("/eviction") {
                let _ = tell.try_send(body);
                return accepted();
            }
            (200, serde_json::to_value(request("p")).unwrap())
        });
        let queue = WorkQueue::new("q", &context.metrics, ExponentialBackoff::WRITES);
        let reconciler = ImperativeReconciler::new(context.clone(), queue);
        context.caches.pods.apply(pod("p"));
        let mut request = request("p");
        request.spec.requester_users =
            vec![RequesterUser { requester: "r.example.com".into(), username: "bob".into() }];
        context.caches.requests.apply(request);
        let key = ObjectKey::new("ns", "p");
        reconciler.reconcile(key.clone()).await.unwrap();
        ask(&reconciler, &key).await;
        let sent = sent.recv().await.unwrap();
        assert_eq!(sent["metadata"]["annotations"], json!({ (format!("{USER_ANNOTATION}0")): "bob" }));
    }
}
