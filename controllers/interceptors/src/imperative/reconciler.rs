//! Reconciles one request: lets `machine` decide, reports, and puts the eviction into the pool.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::node_maintenance::PodType;
use drydock_runtime::queue::WorkQueue;
use drydock_runtime::{
    Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, Requeue,
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::budget_check::{BudgetCheck, check, covering, has_evicted, released_pods};
use super::budget_index::BudgetIndex;
use super::budget_waiters::BudgetWaiters;
use super::eviction_result::EvictionResult;
use super::machine::{self, EvictionEffects, EvictionEvent, OwnReport, PodAndBudgets, Sending};
use super::metrics::Metrics;
use super::pool::EvictionPool;
use super::{NAME, is_ours};
use crate::node_targets::TargetIndex;
use crate::report::{Audience, ProgressUpdate, REFUSED_REPORT_RETRY, Reporter, at, earliest, gone};
use crate::target_pod::target_of;

/// Least time between two reports about one request, except before the last one.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Locks: `waiters`, `pool` and `budgets` are never held together, nor across an await.
pub(super) struct ImperativeReconciler {
    pub(super) context: ControllerContext,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) pool: Mutex<EvictionPool>,
    /// Notified when a request was added to the pool, or a slot became free.
    pub(super) pool_changed: Notify,
    pub(super) metrics: Metrics,
    pub(super) waiters: Mutex<BudgetWaiters>,
    /// Which pods are being drained from which nodes, for the users whom an eviction names.
    pub(super) targets: TargetIndex,
    budgets: Arc<RwLock<BudgetIndex>>,
    reporter: Reporter,
}

impl ImperativeReconciler {
    pub(super) fn new(context: ControllerContext, queue: WorkQueue<ObjectKey>) -> Self {
        let metrics = Metrics::register(&context.metrics);
        let budgets = Arc::new(RwLock::new(BudgetIndex::default()));
        let targets = TargetIndex::of(PodType::Default);
        targets.follow(&context.caches.maintenances);
        let index = budgets.clone();
        context
            .caches
            .budgets
            .subscribe(move |change: &ObjectChange<PodDisruptionBudget>| index.write().update(change));
        Self {
            reporter: Reporter::new(context.clone(), NAME, REPORT_INTERVAL),
            context,
            queue,
            pool: Mutex::default(),
            pool_changed: Notify::new(),
            metrics,
            waiters: Mutex::default(),
            targets,
            budgets,
        }
    }

    pub(super) fn knows(&self, key: &ObjectKey) -> bool {
        self.waiters.lock().knows(key)
    }

    /// Takes in a change of a budget.
    pub(super) fn note_budget(&self, change: &ObjectChange<PodDisruptionBudget>) {
        let Some(budget) = change.latest() else { return };
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let (has_evicted, released_pods) = (has_evicted(old, new), released_pods(old, new));
        let event = EvictionEvent::BudgetChanged { has_evicted, released_pods, at: Instant::now() };
        self.step(&budget.key(), event);
    }

    /// The request with its pod and budgets; none if it is not in our turn.
    pub(super) fn fetch(&self, key: &ObjectKey) -> Option<(Arc<EvictionRequest>, PodAndBudgets)> {
        let request = self.context.caches.requests.get(key).filter(|r| is_ours(r))?;
        request.spec.target.pod.as_ref()?;
        let pod = target_of(&request, &self.context.caches.pods);
        let covering = |pod: &Pod| covering(pod, &self.budgets.read());
        let check = pod.as_ref().map_or(BudgetCheck::Allows(None), |pod| check(pod, &covering(pod)));
        Some((request, PodAndBudgets { pod, check }))
    }

    pub(super) async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, CallError> {
        let Some((request, seen)) = self.fetch(&key) else {
            self.step(&key, EvictionEvent::Left);
            let ended = self.context.caches.requests.get(&key).filter(|request| request.is_evicted());
            if let Some(request) = ended.filter(|_| self.reporter.knows(&key)) {
                self.reporter.publish_end(&request, self.context.clock.now());
            }
            self.reporter.forget(&key);
            return Ok(Requeue::Never);
        };
        let pod = Self::pod_of(&request).name;
        let owes_report = self.reporter.owes_report(&request);
        let (mut effects, now) = self.step(&key, EvictionEvent::Seen { seen: &seen, pod: &pod, owes_report });
        if let Some(lane) = &effects.submit {
            self.pool.lock().submit(lane, key.clone());
            self.pool_changed.notify_one();
        } else if effects.waits && self.fetch(&key).is_some_and(|(_, now)| now.check != seen.check) {
            self.queue.add(key);
        }
        if seen.pod.is_none() && owes_report {
            effects.report = Some(OwnReport { progress: gone(), words: None, last_eviction: None });
        } else if seen.pod.is_none() {
            self.reporter.publish_end(&request, now);
        }
        let mut wake = effects.wake;
        if let Some(OwnReport { progress, words, last_eviction }) = effects.report {
            let update = ProgressUpdate { progress, audience: Audience::Owner, words, last_eviction };
            let outcome = self.reporter.publish_and_report(&request, update, now).await?;
            wake = earliest(wake, outcome.wake);
            if outcome.is_refused {
                wake = earliest(wake, now.checked_add(REFUSED_REPORT_RETRY).ok());
            }
        }
        Ok(at(wake, now))
    }

    /// How the eviction of a request that leaves the pool is sent; none if it is not.
    pub(super) fn sending(&self, key: &ObjectKey, seen: Option<&PodAndBudgets>) -> Option<Sending> {
        self.step(key, EvictionEvent::Taken { seen, may_write: self.context.may_write() }).0.send
    }

    /// Takes back a request from the pool. `result` has the host's answer and the state of the budgets before
    /// it; none if no eviction was sent.
    pub(super) fn answered(&self, key: &ObjectKey, result: Option<(EvictionResult, BudgetCheck)>) {
        self.step(key, EvictionEvent::Answered { result });
    }

    /// Takes a step, keeps the metrics, and queues the requests that it wakes. Returns what else is to be done, and the
    /// time of the step.
    fn step(&self, key: &ObjectKey, event: EvictionEvent<'_>) -> (EvictionEffects, Timestamp) {
        let is_over = matches!(event, EvictionEvent::Left);
        let mut waiters = self.waiters.lock();
        // The time is read under the lock: a result that came after it would seem to be of before the clock was set back.
        let now = self.context.clock.now();
        let mut effects = machine::step(&mut waiters, key, event, now);
        // Both happen under the lock: otherwise the series of a request that is forgotten meanwhile would stay forever.
        if let Some(pod) = &effects.failed {
            self.metrics.failed_for(key, pod);
        }
        if is_over {
            self.metrics.forget(key);
        }
        drop(waiters);
        effects.queue.drain(..).for_each(|(key, delay)| self.queue.add_after(key, delay));
        (effects, now)
    }

    /// Key of the pod to evict.
    pub(super) fn pod_of(request: &EvictionRequest) -> ObjectKey {
        let pod = request.spec.target.pod.as_ref().map_or("", |p| p.name.as_str());
        ObjectKey::new(request.namespace(), pod)
    }
}

#[cfg(test)]
#[path = "reconciler_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "woken_tests.rs"]
mod woken_tests;
