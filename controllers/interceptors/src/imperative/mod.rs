//! imperative-eviction.k8s.io: calls the eviction API for the pods of all requests in its turn, in parallel;
//! budgets are respected.
//!
//! ```text
//! request, pod, budget change ─▶ queue ─▶ reconciler: next step ─┬─▶ report (status, events)
//!              ▲                                                 └─▶ pool ─▶ eviction ─▶ result ─┐
//!              └─────────────────────────────────────────────────────────────────────────────────┘
//! ```

mod asking_users;
mod attempts;
mod budget_check;
mod budget_index;
mod budget_waiters;
mod evict;
pub(crate) mod eviction_result;
#[cfg(test)]
mod exploration_tests;
mod in_flight_limit;
mod last_evictions;
mod last_refusal;
mod machine;
mod metrics;
mod next_step;
mod pool;
mod reconciler;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_runtime::cache::Select;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{
    Cacheable, ControllerContext, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, run_workers,
};
use futures::FutureExt;

use reconciler::ImperativeReconciler;

/// Name of the interceptor.
pub const NAME: &str = IMPERATIVE_EVICTION;
/// The caches that are read.
pub const READS: Select = Select { nodes: false, ..Select::ALL };
/// Requests worked on at once; evictions have a limit of their own.
const PARALLEL_WORKERS: usize = 64;

/// Runs until shutdown. The caches of `READS` must be fed.
pub async fn run(context: ControllerContext) {
    let queue = WorkQueue::new("imperative_eviction", &context.metrics, ExponentialBackoff::WRITES);
    context.caches.wait_until_synced(READS).await;
    let reconciler = Arc::new(ImperativeReconciler::new(context.clone(), queue.clone()));
    subscribe(&context, &reconciler, &queue);
    let evictions = evict::dispatch(reconciler.clone());
    let work = move |key| {
        let reconciler = reconciler.clone();
        async move { reconciler.reconcile(key).await }.boxed()
    };
    // Both end at shutdown. A panic in the work on one request, or in one eviction, is caught where it happens. Any other
    // ends the task of both, and so the program.
    tokio::join!(run_workers(&context, queue, PARALLEL_WORKERS, work), evictions);
}

/// Whether the request is ours to act on.
fn is_ours(request: &EvictionRequest) -> bool {
    request.is_wanted() && request.active_interceptor() == Some(NAME)
}

fn subscribe(
    context: &ControllerContext,
    reconciler: &Arc<ImperativeReconciler>,
    queue: &WorkQueue<ObjectKey>,
) {
    context.caches.requests.subscribe({
        let (queue, reconciler) = (queue.clone(), reconciler.clone());
        move |change: &ObjectChange<EvictionRequest>| {
            let Some(request) = change.latest() else { return };
            if change.new.as_ref().is_some_and(|r| is_ours(r)) || reconciler.knows(&request.key()) {
                queue.add(request.key());
            }
        }
    });
    context.caches.pods.subscribe({
        let (queue, requests) = (queue.clone(), context.caches.requests.clone());
        move |change: &ObjectChange<Pod>| {
            for pod in change.both() {
                let key = ObjectKey::new(&pod.namespace, &pod.uid);
                if requests.get(&key).is_some_and(|request| is_ours(&request)) {
                    queue.add(key);
                }
            }
        }
    });
    context.caches.budgets.subscribe({
        let reconciler = reconciler.clone();
        move |change: &ObjectChange<PodDisruptionBudget>| reconciler.note_budget(change)
    });
}

#[cfg(test)]
mod tests {
    use drydock_api::eviction_request::Requester;

    use super::*;

    #[test]
    fn a_request_that_nobody_wants_any_more_is_left_alone_before_it_is_canceled() {
        let mut request = EvictionRequest::named("ns", "uid");
        request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
        request.status.active_interceptors = vec![NAME.into()];
        assert!(is_ours(&request));
        let withdrawn = EvictionRequest { spec: Default::default(), ..request.clone() };
        assert!(!is_ours(&withdrawn));
        request.metadata.deletion_timestamp = Some(Default::default());
        assert!(!is_ours(&request));
    }
}
