//! Decides about one request after the other, deletes its pod or reports what that waits for.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::DAEMON_SET;
use drydock_api::node_maintenance::{NodeMaintenance, PodType};
use drydock_runtime::cache::Select;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{
    ApiErrorKind, Cacheable, CallError, ControllerContext, Node, ObjectChange, ObjectKey, Pod, Requeue,
    Store, classify, run_workers,
};
use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod as HostPod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use tracing::info;

use super::decide::{PodAction, decide, is_ours};
use super::deletions::DeletionTime;
use super::state::{DaemonSetState, PendingTaint};
use super::{progress, taint};
use crate::node_targets::changed_nodes;
use crate::report::Audience::{Owner, Readers};
use crate::report::{ProgressUpdate, ReportOutcome, Reporter, at, gone};
use crate::target_pod::target_of;

/// Name of the interceptor.
pub const NAME: &str = DAEMON_SET;
/// The caches that are read.
pub const READS: Select = Select { budgets: false, ..Select::ALL };
/// Requests worked on at once.
const PARALLEL_WORKERS: usize = 16;
/// The node of a pod that waits for the taint is queued after this.
const TAINT_LOOKED_AT_WITHIN: Duration = Duration::from_secs(1);

/// Runs the interceptor and its taint until shutdown. The caches of `READS` must be fed.
pub async fn run(context: ControllerContext) {
    let state = Arc::new(DaemonSetState::new(&context));
    state.targets.follow(&context.caches.maintenances);
    let queue = WorkQueue::new("daemonset_eviction", &context.metrics, ExponentialBackoff::WRITES);
    let (waiting, on_node) = (queue.clone(), context.caches.pods.clone());
    let blocked = move |node: &str| add_pods_of(node, &on_node, &waiting);
    let taints = taint::run(context.clone(), state.clone(), blocked);
    tokio::join!(taints, evict(context, state, queue));
}

async fn evict(context: ControllerContext, state: Arc<DaemonSetState>, queue: WorkQueue<ObjectKey>) {
    context.caches.wait_until_synced(READS).await;
    let reconciler = Arc::new(DaemonSetReconciler::new(context.clone(), state));
    reconciler.subscribe(&queue);
    let work = move |key| {
        let reconciler = reconciler.clone();
        async move { reconciler.reconcile(key).await }.boxed()
    };
    run_workers(&context, queue, PARALLEL_WORKERS, work).await;
}

struct DaemonSetReconciler {
    context: ControllerContext,
    state: Arc<DaemonSetState>,
    reporter: Reporter,
}

impl DaemonSetReconciler {
    fn new(context: ControllerContext, state: Arc<DaemonSetState>) -> Self {
        Self { reporter: Reporter::new(context.clone(), NAME, Duration::ZERO), context, state }
    }

    fn subscribe(self: &Arc<Self>, queue: &WorkQueue<ObjectKey>) {
        let caches = &self.context.caches;
        let (requests, reconciler) = (queue.clone(), self.clone());
        caches.requests.subscribe(move |change: &ObjectChange<EvictionRequest>| {
            let Some(request) = change.latest() else { return };
            let is_ours =
                |request| is_ours(request, target_of(request, &reconciler.context.caches.pods).as_deref());
            if change.new.as_deref().is_some_and(is_ours) || reconciler.reporter.knows(&request.key()) {
                requests.add(request.key());
            }
        });
        let (pods, reconciler) = (queue.clone(), self.clone());
        caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
            let ControllerContext { caches, .. } = &reconciler.context;
            // One whose DaemonSet is gone too: its turn with us ends.
            for pod in change.both().filter(|pod| pod.names_daemon_set()) {
                let key = ObjectKey::new(&pod.namespace, &pod.uid);
                if caches.requests.get(&key).is_some_and(|request| is_ours(&request, Some(pod))) {
                    pods.add(key);
                }
            }
            // Until the node has the taint, it depends on the pods there whether the others wait for it.
            let waits = |node: &&str| taint::may_be_pending(&reconciler.context, &reconciler.state, node);
            taint::nodes_of(change).filter(waits).for_each(|node| add_pods_of(node, &caches.pods, &pods));
        });
        let (covered, on_node) = (queue.clone(), caches.pods.clone());
        caches.maintenances.subscribe(move |change: &ObjectChange<NodeMaintenance>| {
            changed_nodes(change).iter().for_each(|node| add_pods_of(node, &on_node, &covered));
        });
        let (tainted, on_node) = (queue.clone(), caches.pods.clone());
        caches.nodes.subscribe(move |change: &ObjectChange<Node>| {
            let [old, new] =
                [&change.old, &change.new].map(|node| node.as_deref().is_some_and(taint::has_taint));
            if let Some(node) = change.latest().filter(|_| old != new) {
                add_pods_of(&node.name, &on_node, &tainted);
            }
        });
    }

    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let request = self.context.caches.requests.get(&key);
        let pod = request.as_deref().and_then(|request| target_of(request, &self.context.caches.pods));
        let Some(request) = request.filter(|request| is_ours(request, pod.as_deref())) else {
            self.reporter.forget(&key);
            return Ok(Requeue::Never);
        };
        let now = self.context.clock.now();
        let action = self.decide(&request, pod.as_deref(), now);
        let report = async |progress, audience| -> Result<Requeue, CallError> {
            let update = ProgressUpdate::of(progress, audience);
            Ok(outcome(self.reporter.publish_and_report(&request, update, now).await?, now))
        };
        match (action, pod) {
            (PodAction::Decline, _) => {
                let why = "The pod does not belong to a DaemonSet that exists and is not being deleted.";
                Ok(outcome(self.reporter.decline(&request, why, now).await?, now))
            }
            (PodAction::Gone, _) => report(gone(), Readers).await,
            (PodAction::Terminating, Some(pod)) => {
                let requeue = report(progress::terminating(&pod, &self.why(&pod), now), Owner).await?;
                let due = pod.overdue_at().filter(|due| *due > now);
                Ok(due.map_or(requeue, |due| sooner(requeue, due, now)))
            }
            (PodAction::AwaitTaint, Some(pod)) => {
                let pending = self.pending_taint(&pod.node_name, now);
                match pending.reported_at() {
                    due if due <= now => report(progress::awaits_taint(&pod, &pending), Readers).await,
                    later => Ok(at(Some(later), now)),
                }
            }
            (PodAction::Delete(DeletionTime::Now), Some(pod)) => {
                if let Err(error) = self.delete(&pod).await {
                    if let Some(progress) = error.call().and_then(progress::refused) {
                        report(progress, Owner).await?;
                    }
                    return Err(error);
                }
                self.state.deletions.lock().deleted(&pod, now);
                report(progress::terminating(&pod, &self.why(&pod), now), Owner).await
            }
            (PodAction::Delete(DeletionTime::Sent { until }), Some(_)) => Ok(at(Some(until), now)),
            (PodAction::Delete(DeletionTime::Later { until, times }), Some(pod)) => {
                match progress::returned(&pod, times) {
                    Some(progress) => Ok(sooner(report(progress, Readers).await?, until, now)),
                    None => Ok(at(Some(until), now)),
                }
            }
            _ => Ok(Requeue::Never),
        }
    }

    fn decide(&self, request: &EvictionRequest, pod: Option<&Pod>, now: Timestamp) -> PodAction {
        let node = pod.map_or("", |pod| pod.node_name.as_str());
        let awaits_taint = taint::is_pending(&self.context, &self.state, node);
        let on_node = self.state.targets.on(node);
        decide(request, pod, &on_node, awaits_taint, &self.state.deletions.lock(), now)
    }

    /// Why the node lacks its taint. Queues the node if that has not been decided since the node came to need it, which
    /// can happen without a change of the node.
    fn pending_taint(&self, node: &str, now: Timestamp) -> PendingTaint {
        self.state.pending_taint(node).unwrap_or_else(|| {
            self.state.queue.add_after(node.to_owned(), TAINT_LOOKED_AT_WITHIN);
            PendingTaint { since: now, refused: None, taken: None }
        })
    }

    /// Names and reasons of the maintenances that cover the pod.
    fn why(&self, pod: &Pod) -> String {
        let on_node = self.state.targets.on(&pod.node_name);
        let named = on_node.covering(pod).map(|m| match m.spec.reason.as_str() {
            "" => m.metadata.name.clone(),
            reason => format!("{}: {reason}", m.metadata.name),
        });
        named.collect::<Vec<_>>().join(", ")
    }

    async fn delete(&self, pod: &Pod) -> Result<(), CallError> {
        self.context.check_lease()?;
        let preconditions = Preconditions { uid: Some(pod.uid.clone()), resource_version: None };
        let params = DeleteParams::default().preconditions(preconditions);
        let api: Api<HostPod> = Api::namespaced(self.context.client.clone(), &pod.namespace);
        match api.delete(&pod.name, &params).await {
            Ok(_) => {
                let maintenance = self.state.targets.on(&pod.node_name).names();
                info!(pod = %pod.key(), node = pod.node_name, maintenance, "deleted a DaemonSet pod that the drain targets cover");
                Ok(())
            }
            // The pod is gone, or another one has its name.
            Err(error) if matches!(classify(&error), ApiErrorKind::NotFound | ApiErrorKind::Conflict) => {
                Ok(())
            }
            Err(error) => Err(CallError::of("deleting the pod")(error)),
        }
    }
}

/// Returns when to look again after a report; one that was refused is tried again with backoff.
fn outcome(reported: ReportOutcome, now: Timestamp) -> Requeue {
    if reported.is_refused { Requeue::WithBackoff } else { at(reported.wake, now) }
}

/// The earlier of an outcome's wake-up and `until`.
fn sooner(outcome: Requeue, until: Timestamp, now: Timestamp) -> Requeue {
    match (outcome, at(Some(until), now)) {
        (Requeue::After(a), Requeue::After(b)) => Requeue::After(a.min(b)),
        (Requeue::WithBackoff, _) => Requeue::WithBackoff,
        (_, wait) => wait,
    }
}

fn add_pods_of(node: &str, pods: &Store<Pod>, queue: &WorkQueue<ObjectKey>) {
    for pod in pods.on_node(node).iter().filter(|pod| pod.pod_type() == PodType::DaemonSet) {
        queue.add(ObjectKey::new(&pod.namespace, &pod.uid));
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
