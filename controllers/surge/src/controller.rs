//! Decides about one Deployment after the other, and writes what was decided.
//!
//! ```text
//! Deployment, budget, request, pod, autoscaler, turn ─▶ queue of Deployments ─▶ decide ─▶ one update ─▶ turns end
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::SURGE;
use drydock_api::eviction_request::transitions::gives_turns;
use drydock_interceptor_runtime::entry::is_turn_of;
use drydock_runtime::cache::api;
use drydock_runtime::events::{Regarding, Severity};
use drydock_runtime::queue::WorkQueue;
use drydock_runtime::{
    Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, Requeue,
    after_failed_write, run_workers,
};
use futures::FutureExt;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tracing::info;

use crate::decide::{SurgeDecision, SurgeTurn, SurgeWrite, decide};
use crate::deployment::Deployment;
use crate::owners::HorizontalPodAutoscaler;
use crate::record::{FoundRecord, RECORD};
use crate::turns::TurnTable;
use crate::workloads::{DeploymentOf, Workloads, key_of};

/// The field manager of our writes.
pub const FIELD_MANAGER: &str = "drydock-surge-interceptor";
/// Deployments decided at once.
const PARALLEL_WORKERS: usize = 8;
/// A Deployment is decided again this long after a conflict, unless the cache shows a newer version before.
const STALE: Duration = Duration::from_secs(1);

/// What decisions are made from, and written with. Clones share it.
#[derive(Clone)]
pub struct SurgeController {
    /// Clients, caches, events, the lease.
    pub context: ControllerContext,
    /// Deployments and what leads to them.
    pub workloads: Workloads,
    /// The turns that wait for decisions.
    pub turns: TurnTable,
}

impl SurgeController {
    /// Works on the queue until shutdown. The caches are complete.
    pub async fn run(self, queue: WorkQueue<ObjectKey>) {
        let stop = self.context.shutdown.clone();
        self.subscribe(&queue);
        let work = move |key| {
            let controller = self.clone();
            async move { controller.reconcile(key).await }.boxed()
        };
        run_workers(queue, PARALLEL_WORKERS, stop, work).await;
    }

    fn subscribe(&self, queue: &WorkQueue<ObjectKey>) {
        let (changed, turns) = (queue.clone(), self.turns.clone());
        self.workloads.deployments.subscribe(move |change: &ObjectChange<Deployment>| {
            let Some(deployment) = change.latest() else { return };
            let is_recorded = change.both().any(|d| d.record != FoundRecord::Absent);
            if is_recorded || !turns.of(&key_of(deployment)).is_empty() {
                changed.add(key_of(deployment));
            }
        });
        let (scaled, controller) = (queue.clone(), self.clone());
        self.workloads.autoscalers.subscribe(move |change: &ObjectChange<HorizontalPodAutoscaler>| {
            let targets = change.both().filter_map(|autoscaler| autoscaler.deployment.clone());
            targets.filter(|key| controller.is_active(key)).for_each(|key| scaled.add(key));
        });
        let (left, controller) = (queue.clone(), self.clone());
        self.context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
            let deployment = change.latest().map(|pod| controller.workloads.deployment_of(pod));
            let Some(DeploymentOf::Known(deployment)) = deployment else { return };
            if controller.is_active(&key_of(&deployment)) {
                left.add(key_of(&deployment));
            }
        });
        let (allowed, controller) = (queue.clone(), self.clone());
        self.context.caches.budgets.subscribe(move |change: &ObjectChange<PodDisruptionBudget>| {
            let namespace = change.latest().map(|budget| budget.namespace.clone()).unwrap_or_default();
            controller.active(&namespace).into_iter().for_each(|key| allowed.add(key));
        });
        let (asked, controller) = (queue.clone(), self.clone());
        self.context.caches.requests.subscribe(move |change: &ObjectChange<EvictionRequest>| {
            let Some(request) = change.latest() else { return };
            let recorded = controller.workloads.recorded(Some(request.namespace()));
            let is_for = |key: &ObjectKey| controller.recorded_pods(key).contains(request.name());
            recorded.into_iter().filter(is_for).for_each(|key| asked.add(key));
        });
    }

    /// The Deployments of a namespace that a change may concern: those with a record or with open turns.
    fn active(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let recorded = self.workloads.recorded(Some(namespace));
        recorded.into_iter().chain(self.turns.deployments(namespace)).collect()
    }

    fn is_active(&self, key: &ObjectKey) -> bool {
        !self.turns.of(key).is_empty()
            || self.workloads.deployments.get(key).is_some_and(|d| d.record != FoundRecord::Absent)
    }

    fn recorded_pods(&self, key: &ObjectKey) -> BTreeSet<String> {
        let deployment = self.workloads.deployments.get(key);
        let record = deployment.as_ref().and_then(|deployment| deployment.record.valid());
        record.map(|record| record.pods.clone()).unwrap_or_default()
    }

    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let Some(deployment) = self.workloads.deployments.get(&key) else { return Ok(Requeue::Never) };
        if let FoundRecord::Broken(why) = &deployment.record {
            let text = format!(
                "annotation {RECORD} cannot be read: {why}. Set spec.replicas as you want them, and remove it"
            );
            self.publish(&deployment, Severity::Warning, "InvalidSurgeRecord", text);
        }
        let now = self.context.clock.now();
        let autoscaler = self.workloads.autoscaler_of(&key);
        let decision = decide(&deployment, autoscaler.as_deref(), &self.live_turns(&key), now);
        if let Some(write) = &decision.write {
            self.context.check_lease()?;
            if let Err(error) = self.write(&deployment, write).await {
                return after_failed_write("writing the Deployment", error, STALE);
            }
            self.report(&deployment, write);
        }
        self.tell(&key, &decision);
        let wait = decision.again_at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        Ok(wait.map_or(Requeue::Never, Requeue::After))
    }

    /// Every pod of the Deployment with a live request that we serve, or that its record names.
    fn live_turns(&self, key: &ObjectKey) -> Vec<SurgeTurn> {
        let open = self.turns.of(key);
        let pods: BTreeSet<String> =
            self.recorded_pods(key).into_iter().chain(open.keys().cloned()).collect();
        let budgets = self.context.caches.budgets.all();
        let turn = |uid: String| {
            let pod = self.context.caches.pods.by_uid(&uid)?;
            let open = open.get(&uid);
            // A request that we serve may not be in the cache yet.
            let cached = self.context.caches.requests.find(&key.namespace, &uid);
            let request = cached.as_deref().or(open.map(|open| open.turn.request()))?;
            let is_live = gives_turns(request) && !pod.is_terminating() && !pod.is_terminal();
            let covers =
                |b: &&Arc<PodDisruptionBudget>| b.namespace == pod.namespace && b.covers(&pod.labels);
            is_live.then(|| SurgeTurn {
                began: open.map_or(Timestamp::MIN, |open| open.began),
                is_waiting: open.map_or_else(|| is_turn_of(request, SURGE), |open| open.is_waiting()),
                is_ready: pod.ready,
                budgets: budgets.iter().filter(covers).cloned().collect(),
                pod: uid,
            })
        };
        pods.into_iter().filter_map(turn).collect()
    }

    /// One update: replicas and record are never written without each other.
    async fn write(&self, deployment: &Deployment, write: &SurgeWrite) -> Result<(), kube::Error> {
        let record = write.record.as_ref().map(|record| record.annotation());
        let patch = json!({
            "metadata": {
                "uid": deployment.uid, "resourceVersion": deployment.resource_version,
                "annotations": { RECORD: record },
            },
            "spec": { "replicas": write.replicas },
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let deployments = api::<Deployment>(&self.context.client, &deployment.namespace);
        deployments.patch(&deployment.name, &params, &Patch::Merge(patch)).await.map(drop)
    }

    fn report(&self, deployment: &Deployment, write: &SurgeWrite) {
        let (replicas, delta) = (write.replicas, write.record.as_ref().map_or(0, |record| record.delta));
        info!(deployment = %key_of(deployment), replicas, delta, "wrote the replicas of a Deployment");
        let (reason, text) = match delta {
            0 => ("SurgeEnded", format!("replicas: {replicas}, with none for evictions")),
            _ => {
                ("SurgeStarted", format!("replicas: {replicas}, {delta} of them until its pods are evicted"))
            }
        };
        self.publish(deployment, Severity::Normal, reason, text);
    }

    fn publish(&self, deployment: &Deployment, severity: Severity, reason: &'static str, text: String) {
        self.context.recorder.publish(Regarding::of(deployment), severity, reason, text);
    }

    /// Ends turns, and says in the others what they wait for.
    fn tell(&self, key: &ObjectKey, decision: &SurgeDecision) {
        let open = self.turns.of(key);
        for (pod, text) in &decision.waits {
            if let Some(entry) = open.get(pod) {
                entry.turn.set_message(text);
            }
        }
        for (pod, end) in &decision.ends {
            self.turns.end(key, pod, end.clone());
        }
    }
}
