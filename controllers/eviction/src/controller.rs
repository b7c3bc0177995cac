//! The controller around the machine: it reads the caches, lets the machine decide, and writes.
//!
//! The status is written as a JSON merge patch on `/status` with the resourceVersion that the decision was
//! made on. It names only the controller's own fields, so that fields of later versions and of interceptors
//! stay; after the first turn it never names `interceptors`, whose entries belong to their interceptors (who
//! apply them with force, since the controller initialised them). A stale decision is refused by its
//! resourceVersion, and made again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::pod_labels::LABEL_SYNC;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStatus};
use drydock_runtime::cache::{Select, api};
use drydock_runtime::clock::Clock;
use drydock_runtime::queue::{ExponentialBackoff, WorkQueue};
use drydock_runtime::{
    ApiErrorKind, Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Pod, Requeue,
    after_failed_write, classify, find, ownership, patch, run_workers,
};
use futures::FutureExt;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tracing::debug;

use crate::STALE_RETRY_AFTER;
use crate::decision::{Config, RequestAction, RequestDecision, TargetPod, Warning};
use crate::deleted_pods::DeletedPods;
use crate::machine::step;
use crate::metrics::RequestMetrics;
use crate::past_turns::PastTurns;
use crate::removal::Removals;
use crate::request_events::{publish_skip, publish_start, publish_warnings, report};

/// Field manager of the status.
pub const FIELD_MANAGER: &str = "drydock-eviction-controller";
/// The caches that are read.
pub const READS: Select =
    Select { pods: true, daemon_sets: true, requests: true, maintenances: true, ..Select::NONE };

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings of the machine.
    pub config: Config,
    /// Requests worked on at once.
    pub parallel: usize,
    /// Whether metrics have one series for each namespace instead of one for each request.
    pub aggregate_metrics: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { config: Config::default(), parallel: 32, aggregate_metrics: false }
    }
}

/// Runs until shutdown. The caches of `READS` must be fed, and followed for `past_turns`.
pub async fn run(context: ControllerContext, options: Options, past_turns: PastTurns) {
    let queue = WorkQueue::new("evictionrequests", &context.metrics, ExponentialBackoff::WRITES);
    RequestMetrics::register(&context, options.aggregate_metrics);
    context.caches.wait_until_synced(READS).await;
    let removals = Removals::new(&context, &options.config, &queue);
    let deleted_pods = DeletedPods::default();
    subscribe(&context, &queue, &removals, &deleted_pods);
    let parallel = options.parallel;
    let reconciler = Arc::new(RequestReconciler {
        context: context.clone(),
        config: options.config,
        deleted_pods,
        past_turns,
        removals: removals.clone(),
    });
    let work = move |key| {
        let reconciler = reconciler.clone();
        async move { reconciler.reconcile(key).await }.boxed()
    };
    futures::future::join(run_workers(&context, queue, parallel, work), removals.run()).await;
}

/// Queues a request when it changes, and when its pod does: its name is the pod's UID.
fn subscribe(
    context: &ControllerContext,
    queue: &WorkQueue<ObjectKey>,
    removals: &Removals,
    deleted_pods: &DeletedPods,
) {
    let (requests, removals, events) = (queue.clone(), removals.clone(), context.clone());
    let deleted = deleted_pods.clone();
    context.caches.requests.subscribe(move |change: &ObjectChange<EvictionRequest>| {
        removals.note(change);
        deleted.forget_pod_of(change);
        publish_start(&events, change);
        publish_skip(&events, change);
        if let Some(request) = change.latest() {
            requests.add(request.key());
        }
    });
    let (pods, known, deleted) = (queue.clone(), context.caches.requests.clone(), deleted_pods.clone());
    context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
        for pod in change.both() {
            let key = ObjectKey::new(&pod.namespace, &pod.uid);
            if known.get(&key).is_some() {
                if change.is_deleted {
                    deleted.add(&key);
                    // The request may have left in between, and nobody would forget its pod.
                    if known.get(&key).is_none() {
                        deleted.forget(&key);
                    }
                }
                pods.add(key);
            }
        }
    });
}

struct RequestReconciler {
    context: ControllerContext,
    config: Config,
    deleted_pods: DeletedPods,
    past_turns: PastTurns,
    removals: Removals,
}

impl RequestReconciler {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let Some(request) = self.context.caches.requests.get(&key) else { return Ok(Requeue::Never) };
        let decision = self.decide(&request).await?;
        let wake = decision.wake;
        match decision.action() {
            RequestAction::Remove => {
                self.removals.add(key);
                Ok(Requeue::Never)
            }
            RequestAction::WriteStatus(status, warnings) => {
                self.context.check_lease()?;
                let written = self.write_status(&request, &status, warnings).await?;
                // An API server of an earlier version may drop all that was written: the watch shows no change then.
                Ok(if written == Requeue::Never { come_back(wake, self.context.clock) } else { written })
            }
            RequestAction::ChangeLabels(labels, wake) => {
                self.context.check_lease()?;
                self.change_labels(&request, &labels, wake).await
            }
            RequestAction::Wait(wake) => Ok(come_back(wake, self.context.clock)),
        }
    }

    /// Decides with the time after the pod was read: a live read may take long, and the API server refuses
    /// times that are not the present.
    async fn decide(&self, request: &EvictionRequest) -> Result<RequestDecision, CallError> {
        let Some(target) = request.spec.target.pod.as_ref() else { return Ok(RequestDecision::default()) };
        let with_turns = self.with_earlier_turns(request);
        let request = &*with_turns;
        let namespace = &request.metadata.namespace;
        let cached = self.context.caches.pods.find(namespace, &target.name);
        let is_deleted = self.deleted_pods.contains(&request.key());
        let seen = TargetPod::of_cache(cached.as_deref(), &target.uid, is_deleted);
        let decision = step(request, seen, self.context.clock.now(), &self.config);
        // A request that was taken up is never held back, nor one that a finalizer keeps: somebody waits for
        // its end.
        let may_end = decision.confirm || decision.ends;
        let is_awaited = request.is_taken_up() || request.is_being_deleted();
        if may_end && !is_awaited && self.removals.holds_back(&request.key()) {
            return Ok(RequestDecision::default());
        }
        if !decision.confirm {
            return Ok(decision);
        }
        let live = find(&api::<Pod>(&self.context.client, namespace), &target.name).await;
        let live = match live.map_err(CallError::of("reading the pod"))? {
            Some(wire) => Some(self.decided(wire.object).await?),
            None => None,
        };
        let seen = TargetPod::of_live_read(live.as_ref(), &target.uid);
        let found = matches!(seen, TargetPod::Present(_));
        debug!(request = %request.key(), found, "read a pod that is not cached from the host");
        Ok(step(request, seen, self.context.clock.now(), &self.config))
    }

    async fn decided(&self, pod: Pod) -> Result<Pod, CallError> {
        ownership::decided(&self.context, pod).await.map_err(CallError::of("reading the pod's DaemonSet"))
    }

    /// A request that has no interceptors yet, with the turns that those of its pod have had in earlier requests: the
    /// write of the first turn stores them.
    fn with_earlier_turns<'r>(&self, request: &'r EvictionRequest) -> Cow<'r, EvictionRequest> {
        let is_new = !request.is_taken_up() && request.status.earlier_turns.is_none();
        let past = || self.past_turns.of(&request.metadata.name, &self.context.caches);
        let Some(turns) = is_new.then(past).flatten() else { return Cow::Borrowed(request) };
        let status = EvictionRequestStatus { earlier_turns: Some(turns), ..request.status.clone() };
        Cow::Owned(EvictionRequest { status, ..request.clone() })
    }

    async fn write_status(
        &self,
        request: &EvictionRequest,
        status: &EvictionRequestStatus,
        warnings: Vec<Warning>,
    ) -> Result<Requeue, CallError> {
        let key = request.key();
        let patch = status_patch(request, status);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..Default::default() };
        let api = api::<EvictionRequest>(&self.context.client, &key.namespace);
        match api.patch_status(&key.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => {
                report(&key, &request.status, status);
                publish_warnings(&self.context, request, status, warnings);
                Ok(Requeue::Never)
            }
            Err(error) => {
                if classify(&error) == ApiErrorKind::Invalid {
                    self.context.report_skew(request).await;
                }
                after_failed_write("writing the status", error, STALE_RETRY_AFTER)
            }
        }
    }

    /// A merge patch, because an apply could not remove the labels that a requester applied.
    async fn change_labels(
        &self,
        request: &EvictionRequest,
        changes: &BTreeMap<String, Option<String>>,
        wake: Option<Timestamp>,
    ) -> Result<Requeue, CallError> {
        let (key, meta) = (request.key(), &request.metadata);
        let patch = json!({
            "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "labels": changes },
        });
        let params = PatchParams { field_manager: Some(LABEL_SYNC.to_owned()), ..Default::default() };
        let api = api::<EvictionRequest>(&self.context.client, &key.namespace);
        match api.patch(&key.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(come_back(wake, self.context.clock)),
            Err(error) => after_failed_write("changing labels", error, STALE_RETRY_AFTER),
        }
    }
}

fn come_back(wake: Option<Timestamp>, clock: Clock) -> Requeue {
    // A little too late is better than a little too early.
    wake.map_or(Requeue::Never, |at| Requeue::After(clock.until(at) + Duration::from_millis(20)))
}

/// Returns the patch of the controller's own fields that differ. The entries of interceptors belong to the
/// interceptors once they exist.
pub(crate) fn status_patch(request: &EvictionRequest, status: &EvictionRequestStatus) -> Value {
    let foreign: &[&str] = if request.status.interceptors.is_empty() { &[] } else { &["interceptors"] };
    patch::status(&request.metadata, &request.status, status, foreign)
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
