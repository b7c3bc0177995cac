//! daemonset.apps.k8s.io: deletes a DaemonSet pod once the node's drain targets cover it, and not before.
//!
//! It stays responsible when its turn was passed over: imperative-eviction leaves these pods to it. While its turn lasts
//! and the pod is not covered, it says nothing, so that the turn passes: such a request is not to be encouraged (KEP-4212).
//! A DaemonSet that puts pods back as fast as they are deleted is slowed down to.

mod decide;
mod returns;
mod targets;

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::interceptors::DAEMON_SET;
use drydock_api::eviction_request::{EvictionRequest, InterceptorStatus};
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::queue::{Backoff, Queue};
use drydock_runtime::{
    Cacheable, Change, Context, Failure, ObjectKey, Outcome, Pod, WorkError, classify, clock, run_workers,
};
use futures::FutureExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod as HostPod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use parking_lot::Mutex;
use tracing::info;

use crate::report::{self, News, REFUSED, Sent};
use crate::taint::TAINT;
use decide::{Deed, decide, is_ours};
use returns::Returns;
pub use targets::covering;
pub(crate) use targets::{drained_nodes, has_drained};

/// Name of the interceptor.
pub const NAME: &str = DAEMON_SET;
/// Requests worked on at once.
const PARALLEL: usize = 16;

/// A failed write.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("deleting the pod: {0}")]
    Delete(#[source] kube::Error),
    #[error("reporting: {0}")]
    Report(#[source] kube::Error),
    #[error("the lease is not held")]
    NoLease,
}

impl WorkError for Error {
    fn call(&self) -> Option<&kube::Error> {
        match self {
            Self::Delete(error) | Self::Report(error) => Some(error),
            Self::NoLease => None,
        }
    }
}

/// Runs until shutdown. Pods, EvictionRequests and NodeMaintenances must be among the caches that are fed.
pub async fn run(context: Context) {
    let queue = Queue::new("daemonset_eviction", &context.metrics, Backoff::WRITES);
    context.caches.pods.wait_until_synced().await;
    context.caches.requests.wait_until_synced().await;
    context.caches.maintenances.wait_until_synced().await;
    subscribe(&context, &queue);
    let stop = context.shutdown.clone();
    let returns: Arc<Mutex<Returns>> = Arc::default();
    let work = move |key| {
        let (context, returns) = (context.clone(), returns.clone());
        async move { reconcile(&context, &returns, key).await }.boxed()
    };
    run_workers(queue, PARALLEL, stop, work).await;
}

fn subscribe(context: &Context, queue: &Queue<ObjectKey>) {
    let requests = queue.clone();
    context.caches.requests.subscribe(move |change: &Change<EvictionRequest>| {
        if let Some(request) = change.new.as_ref().filter(|r| is_ours(r)) {
            requests.add(request.key());
        }
    });
    let (pods, known) = (queue.clone(), context.caches.requests.clone());
    context.caches.pods.subscribe(move |change: &Change<Pod>| {
        if let Some(pod) = change.latest().filter(|pod| pod.is_daemon_set_pod()) {
            let key = ObjectKey::new(&pod.namespace, &pod.uid);
            if known.get(&key).is_some_and(|request| is_ours(&request)) {
                pods.add(key);
            }
        }
    });
    let (nodes, on_node) = (queue.clone(), context.caches.pods.clone());
    context.caches.maintenances.subscribe(move |change: &Change<NodeMaintenance>| {
        for node in targets::changed_nodes(change) {
            for pod in on_node.on_node(&node).iter().filter(|pod| pod.is_daemon_set_pod()) {
                nodes.add(ObjectKey::new(&pod.namespace, &pod.uid));
            }
        }
    });
}

async fn reconcile(context: &Context, returns: &Mutex<Returns>, key: ObjectKey) -> Result<Outcome, Error> {
    let Some(request) = context.caches.requests.get(&key).filter(|r| is_ours(r)) else {
        return Ok(Outcome::Done);
    };
    let now = clock::now();
    let pod = target(context, &request);
    let maintenances = context.caches.maintenances.all();
    let deed = decide(&request, pod.as_deref(), &maintenances, &returns.lock(), now);
    match (deed, pod) {
        (Deed::Decline, _) => decline(context, &request, now).await,
        (Deed::Gone, _) => {
            let done =
                News { message: "The pod has terminated.".to_owned(), completed: true, ..News::default() };
            tell(context, &request, &done, now).await
        }
        (Deed::Terminating, Some(pod)) => {
            tell(context, &request, &terminating(&pod, &why(context, &pod)), now).await
        }
        (Deed::Delete, Some(pod)) => {
            if !context.may_write() {
                return Err(Error::NoLease);
            }
            delete(context, &pod).await?;
            let daemon_set = pod.daemon_set().unwrap_or_default();
            returns.lock().deleted(&pod.node_name, &daemon_set, &pod.uid, now);
            tell(context, &request, &terminating(&pod, &why(context, &pod)), now).await
        }
        (Deed::Sent { until }, Some(_)) => Ok(at(Some(until), now)),
        (Deed::Wait { until, times }, Some(pod)) => {
            let told = tell(context, &request, &returned(&pod, times), now).await?;
            Ok(sooner(told, until, now))
        }
        _ => Ok(Outcome::Done),
    }
}

/// The target, unless it is gone or terminal.
fn target(context: &Context, request: &EvictionRequest) -> Option<Arc<Pod>> {
    let target = request.spec.target.pod.as_ref()?;
    let pod = context.caches.pods.find(request.namespace(), &target.name)?;
    (pod.uid == target.uid && !pod.is_terminal()).then_some(pod)
}

/// Name of the DaemonSet.
fn owner(pod: &Pod) -> &str {
    pod.controller.as_ref().map_or("", |owner| owner.name.as_str())
}

/// Names and reasons of the maintenances that cover the pod.
fn why(context: &Context, pod: &Pod) -> String {
    let maintenances = context.caches.maintenances.all();
    let named = covering(pod, &maintenances).into_iter().map(|m| match m.spec.reason.as_str() {
        "" => m.metadata.name.clone(),
        reason => format!("{}: {reason}", m.metadata.name),
    });
    named.collect::<Vec<_>>().join(", ")
}

/// The seed's words.
fn terminating(pod: &Pod, why: &str) -> News {
    let owner = owner(pod);
    let because = if why.is_empty() { String::new() } else { format!(" due to node maintenance ({why})") };
    News {
        message: format!("{owner} is terminating the pod{because}."),
        expected_finish: pod.deletion_timestamp,
        completed: false,
    }
}

/// The DaemonSet comes back as fast as its pods go.
fn returned(pod: &Pod, times: u32) -> News {
    let message = format!(
        "DaemonSet {} has put a new pod on the node after its pod was deleted, {times} times in a row: it tolerates the \
         taint {TAINT}. It is deleted again, later each time; a nodeAffinity or a narrower toleration of the DaemonSet \
         ends this.",
        owner(pod)
    );
    News { message, ..News::default() }
}

async fn delete(context: &Context, pod: &Pod) -> Result<(), Error> {
    let preconditions = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
    let params = DeleteParams::default().preconditions(preconditions);
    let api: Api<HostPod> = Api::namespaced(context.client.clone(), &pod.namespace);
    match api.delete(&pod.name, &params).await {
        Ok(_) => {
            info!(pod = %pod.key(), node = pod.node_name, "deleted a DaemonSet pod whose turn it is");
            Ok(())
        }
        // Gone, or another pod by now.
        Err(error) if matches!(classify(&error), Failure::NotFound | Failure::Conflict) => Ok(()),
        Err(error) => Err(Error::Delete(error)),
    }
}

/// Reports, if the turn is ours.
async fn tell(
    context: &Context,
    request: &EvictionRequest,
    news: &News,
    now: Timestamp,
) -> Result<Outcome, Error> {
    if request.active_interceptor() != Some(NAME) {
        return Ok(Outcome::Done);
    }
    let Some(old) = request.interceptor(NAME) else { return Ok(Outcome::Done) };
    let Some(entry) = report::entry(old, news, now) else {
        return Ok(at(report::next_heartbeat(old), now));
    };
    if !context.may_write() {
        return Err(Error::NoLease);
    }
    send(context, request, &entry, at(report::next_heartbeat(&entry), now)).await
}

/// Passes the turn on: the pod is none of ours.
async fn decline(context: &Context, request: &EvictionRequest, now: Timestamp) -> Result<Outcome, Error> {
    let turn = request.active_interceptor_status().filter(|active| active.name == NAME);
    let why = "The pod is not controlled by a DaemonSet.".to_owned();
    let Some(entry) = turn.and_then(|old| report::decline(old, why, now)) else { return Ok(Outcome::Done) };
    if !context.may_write() {
        return Err(Error::NoLease);
    }
    send(context, request, &entry, Outcome::Done).await
}

/// Reports; what comes then, if it was taken.
async fn send(
    context: &Context,
    request: &EvictionRequest,
    entry: &InterceptorStatus,
    then: Outcome,
) -> Result<Outcome, Error> {
    match report::send(context, request, entry).await.map_err(Error::Report)? {
        Sent::Written => Ok(then),
        Sent::NotOurs => Ok(Outcome::After(REFUSED)),
    }
}

fn at(wake: Option<Timestamp>, now: Timestamp) -> Outcome {
    let wait = |wake: Timestamp| wake.duration_since(now).max(SignedDuration::from_millis(10));
    wake.map_or(Outcome::Done, |wake| Outcome::After(Duration::try_from(wait(wake)).unwrap_or_default()))
}

/// The earlier of an outcome's wake-up and `until`.
fn sooner(outcome: Outcome, until: Timestamp, now: Timestamp) -> Outcome {
    match (outcome, at(Some(until), now)) {
        (Outcome::After(a), Outcome::After(b)) => Outcome::After(a.min(b)),
        (_, wait) => wait,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_runtime::testing::{context, failure};

    use super::*;

    /// An aggregator that has just started answers 404 to every path of an API that it does not know yet. Declined then,
    /// the turn was ours until its heartbeat deadline of twenty minutes.
    #[tokio::test]
    async fn a_turn_that_could_not_be_declined_is_declined_again() {
        let context = context(|_, _, _| failure(404, ""));
        let mut request = EvictionRequest::named("ns", "uid");
        request.status.active_interceptors = vec![NAME.into()];
        request.status.interceptors = vec![InterceptorStatus { name: NAME.into(), ..Default::default() }];
        let outcome = decline(&context, &request, clock::now()).await.unwrap();
        assert_eq!(outcome, Outcome::After(REFUSED));
    }
}
