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
use drydock_runtime::surge_record::{FoundRecord, RECORD, SurgeRecord};
use drydock_runtime::{
    Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, Requeue,
    after_failed_write, run_workers,
};
use futures::FutureExt;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tracing::info;

use crate::autoscaler::HorizontalPodAutoscaler;
use crate::decide::{SurgeDecision, SurgeTurn, SurgeWrite, decide, refuse};
use crate::deployment::Deployment;
use crate::turns::TurnTable;
use crate::workloads::{DeploymentOf, ScaleHolder, Workloads};

/// The field manager of our writes.
pub const FIELD_MANAGER: &str = "drydock-surge-interceptor";
/// Deployments decided at once.
const PARALLEL_WORKERS: usize = 8;
/// A write that met a conflict is tried again after this, unless the cache shows a newer version before.
pub const STALE_RETRY_AFTER: Duration = Duration::from_secs(1);

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
        let context = self.context.clone();
        self.subscribe(&queue);
        let work = move |key| {
            let controller = self.clone();
            async move { controller.reconcile(key).await }.boxed()
        };
        run_workers(&context, queue, PARALLEL_WORKERS, work).await;
    }

    fn subscribe(&self, queue: &WorkQueue<ObjectKey>) {
        let (changed, controller) = (queue.clone(), self.clone());
        self.workloads.deployments.subscribe(move |change: &ObjectChange<Deployment>| {
            let Some(key) = change.latest().map(|deployment| deployment.key()) else { return };
            if change.both().any(|d| d.record != FoundRecord::Absent) || controller.is_active(&key) {
                changed.add(key);
            }
        });
        let (scaled, controller) = (queue.clone(), self.clone());
        self.workloads.autoscalers.subscribe(move |change: &ObjectChange<HorizontalPodAutoscaler>| {
            let is_recorded = change.both().any(|autoscaler| autoscaler.record != FoundRecord::Absent);
            let targets = change.both().map(|autoscaler| autoscaler.target.clone());
            targets.filter(|key| is_recorded || controller.is_active(key)).for_each(|key| scaled.add(key));
        });
        let (left, controller) = (queue.clone(), self.clone());
        self.context.caches.pods.subscribe(move |change: &ObjectChange<Pod>| {
            let deployment = change.latest().map(|pod| controller.workloads.deployment_of(pod));
            let Some(DeploymentOf::Known(deployment)) = deployment else { return };
            if controller.is_active(&deployment.key()) {
                left.add(deployment.key());
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
            let surged = controller.workloads.surged(request.namespace());
            let is_for = |key: &ObjectKey| {
                let holders = controller.workloads.holders_of(key);
                records(&holders).any(|record| record.pods.contains(request.name()))
            };
            surged.into_iter().filter(is_for).for_each(|key| asked.add(key));
        });
    }

    /// The Deployments of a namespace that a change may concern: those with a surge or with open turns.
    fn active(&self, namespace: &str) -> BTreeSet<ObjectKey> {
        let surged = self.workloads.surged(namespace);
        surged.into_iter().chain(self.turns.deployments(namespace)).collect()
    }

    fn is_active(&self, key: &ObjectKey) -> bool {
        let is_recorded = |holder: ScaleHolder| *holder.record() != FoundRecord::Absent;
        !self.turns.of(key).is_empty() || self.workloads.holders_of(key).into_iter().any(is_recorded)
    }

    fn recorded_pods(&self, key: &ObjectKey) -> BTreeSet<String> {
        let holders = self.workloads.holders_of(key);
        records(&holders).flat_map(|record| record.pods.iter().cloned()).collect()
    }

    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let holders = self.workloads.holders_of(&key);
        holders.iter().for_each(|holder| self.report_broken(holder));
        let now = self.context.clock.now();
        let turns = self.live_turns(&key);
        let Some(deployment) = self.workloads.deployments.get(&key) else {
            return self.take_back(&holders).await;
        };
        let autoscalers = self.workloads.autoscalers_of(&key);
        let scaling: Vec<_> = autoscalers.iter().filter(|autoscaler| autoscaler.is_of_deployment).collect();
        let holder = match scaling.as_slice() {
            [] => ScaleHolder::Deployment(deployment.clone()),
            [one] => ScaleHolder::Autoscaler((*one).clone()),
            _ => {
                match self.take_back(&holders).await? {
                    Requeue::Never => {}
                    again => return Ok(again),
                }
                let why =
                    format!("more than one HorizontalPodAutoscaler scales Deployment {}", deployment.name);
                let decision = refuse(&deployment.scale(), &turns, &why);
                self.tell(&key, &decision);
                return Ok(Requeue::Never);
            }
        };
        let others: Vec<_> = holders.into_iter().filter(|other| !other.is_same(&holder)).collect();
        match self.take_back(&others).await? {
            Requeue::Never => {}
            again => return Ok(again),
        }
        let decision = decide(&deployment, &holder.scale(deployment.replicas), &turns, now);
        if let Some(write) = &decision.write
            && let Err(error) = self.write(&holder, write).await?
        {
            return after_failed_write("writing the surge", error, STALE_RETRY_AFTER);
        }
        self.tell(&key, &decision);
        let wait = decision.again_at.map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
        Ok(wait.map_or(Requeue::Never, Requeue::After))
    }

    /// Takes back what these have of a surge: they are not, or no longer, what a surge is added to.
    async fn take_back(&self, holders: &[ScaleHolder]) -> Result<Requeue, CallError> {
        for holder in holders {
            let decision = refuse(&holder.scale(0), &[], "");
            if let Some(write) = &decision.write
                && let Err(error) = self.write(holder, write).await?
            {
                return after_failed_write("taking a surge back", error, STALE_RETRY_AFTER);
            }
        }
        Ok(Requeue::Never)
    }

    /// Every pod of the Deployment with a live request that we serve, or that a record names.
    fn live_turns(&self, key: &ObjectKey) -> Vec<SurgeTurn> {
        let open = self.turns.of(key);
        let pods: BTreeSet<String> =
            self.recorded_pods(key).into_iter().chain(open.keys().cloned()).collect();
        let turn = |uid: String| {
            let pod = self.context.caches.pods.by_uid(&uid).filter(|pod| pod.namespace == *key.namespace)?;
            let is_of = match self.workloads.deployment_of(&pod) {
                DeploymentOf::Known(deployment) => deployment.key() == *key,
                DeploymentOf::None => false,
                DeploymentOf::NotCached => true,
            };
            let open = open.get(&uid);
            // A request that we serve may not be in the cache yet.
            let cached = self.context.caches.requests.find(&key.namespace, &uid);
            let request = cached.as_deref().or(open.map(|open| open.turn.request()))?;
            let is_live = is_of && gives_turns(request) && pod.is_staying();
            let budgets = Budgets::of(&pod, self.context.caches.budgets.in_namespace(&pod.namespace));
            is_live.then(|| SurgeTurn {
                began: open.map_or(Timestamp::MIN, |open| open.began),
                is_waiting: open.map_or_else(|| is_turn_of(request, SURGE), |open| open.is_waiting()),
                is_ready: pod.ready,
                budgets: budgets.covering,
                unknown_budget: budgets.unknown,
                pod: uid,
            })
        };
        pods.into_iter().filter_map(turn).collect()
    }

    /// One update: number and record are never written without each other.
    async fn write(
        &self,
        holder: &ScaleHolder,
        write: &SurgeWrite,
    ) -> Result<Result<(), kube::Error>, CallError> {
        self.context.check_lease()?;
        let written = match holder {
            ScaleHolder::Deployment(deployment) => self.patch(deployment.as_ref(), holder, write).await,
            ScaleHolder::Autoscaler(autoscaler) => self.patch(autoscaler.as_ref(), holder, write).await,
        };
        if written.is_ok() {
            self.report(holder, write);
        }
        Ok(written)
    }

    async fn patch<T: Cacheable>(
        &self,
        object: &T,
        holder: &ScaleHolder,
        write: &SurgeWrite,
    ) -> Result<(), kube::Error> {
        let record = write.record.as_ref().map(|record| record.annotation(object.uid()));
        let patch = json!({
            "metadata": {
                "uid": object.uid(), "resourceVersion": object.resource_version(),
                "annotations": { RECORD: record },
            },
            "spec": holder.spec(write.number),
        });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        api::<T>(&self.context.client, object.namespace())
            .patch(object.name(), &params, &Patch::Merge(patch))
            .await
            .map(drop)
    }

    fn report(&self, holder: &ScaleHolder, write: &SurgeWrite) {
        let scale = holder.scale(0);
        let (number, surged) = (write.number, write.record.as_ref().map_or(0, |record| record.surged()));
        info!(holder = scale.holder, field = scale.field, number, surged, "wrote the number of a surge");
        let (reason, text) = match surged {
            0 => ("SurgeEnded", format!("{}: {number}, without a surge", scale.field)),
            _ => (
                "SurgeStarted",
                format!("{}: {number}, for {surged} more until pods are evicted", scale.field),
            ),
        };
        self.publish(holder, Severity::Normal, reason, text);
    }

    fn report_broken(&self, holder: &ScaleHolder) {
        if let FoundRecord::Broken(why) = holder.record() {
            let field = holder.scale(0).field;
            let text = format!(
                "annotation {RECORD} cannot be read: {why}. Set {field} as you want it, and remove the annotation"
            );
            self.publish(holder, Severity::Warning, "InvalidSurgeRecord", text);
        }
    }

    fn publish(&self, holder: &ScaleHolder, severity: Severity, reason: &'static str, text: String) {
        let regarding = match holder {
            ScaleHolder::Deployment(deployment) => Regarding::of(deployment.as_ref()),
            ScaleHolder::Autoscaler(autoscaler) => Regarding::of(autoscaler.as_ref()),
        };
        self.context.recorder.publish(regarding, severity, reason, text);
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

/// The budgets of a namespace, as far as they concern a pod.
struct Budgets {
    covering: Vec<Arc<PodDisruptionBudget>>,
    /// Name of the first one of which only the host knows whether it covers the pod.
    unknown: Option<String>,
}

impl Budgets {
    fn of(pod: &Pod, all: Vec<Arc<PodDisruptionBudget>>) -> Self {
        let mut unknown = None;
        let mut covering = all;
        covering.retain(|budget| {
            let covers = budget.covers(pod);
            if covers.is_none() && unknown.is_none() {
                unknown = Some(budget.name.clone());
            }
            covers == Some(true)
        });
        Self { covering, unknown }
    }
}

/// The records that can be read.
fn records(holders: &[ScaleHolder]) -> impl Iterator<Item = &SurgeRecord> {
    holders.iter().filter_map(|holder| holder.record().valid())
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
