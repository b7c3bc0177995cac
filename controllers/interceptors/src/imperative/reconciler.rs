//! Reconciles one request: decides the next step, reports it, and puts the eviction into the pool.

use std::sync::Arc;
use std::time::Duration;

use drydock_api::eviction_request::EvictionRequest;
use drydock_runtime::queue::WorkQueue;
use drydock_runtime::{
    Cacheable, CallError, ControllerContext, ObjectChange, ObjectKey, Pod, PodDisruptionBudget, Requeue,
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::attempts::Attempts;
use super::budget_check::{BudgetCheck, ReleasedPods, check, covering};
use super::budget_index::BudgetIndex;
use super::budget_waiters::BudgetWaiters;
use super::eviction_result::EvictionResult;
use super::metrics::Metrics;
use super::next_step::{NextStep, first_report_at, next_step};
use super::pool::{BudgetLane, EvictionPool};
use super::{NAME, is_ours};
use crate::report::{Audience, ProgressReport, ProgressUpdate, REFUSED_REPORT_RETRY, Reporter, at, earliest};
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
    budgets: Arc<RwLock<BudgetIndex>>,
    reporter: Reporter,
}

/// The pod of a request, and the prediction from its budgets.
pub(super) struct PodAndBudgets {
    pub(super) pod: Option<Arc<Pod>>,
    pub(super) check: BudgetCheck,
}

impl ImperativeReconciler {
    pub(super) fn new(context: ControllerContext, queue: WorkQueue<ObjectKey>) -> Self {
        let metrics = Metrics::register(&context.metrics);
        let budgets = Arc::new(RwLock::new(BudgetIndex::default()));
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
            budgets,
        }
    }

    pub(super) fn knows(&self, key: &ObjectKey) -> bool {
        self.waiters.lock().knows(key)
    }

    /// Wakes requests that wait for a budget whose change may let pods go.
    pub(super) fn wake(&self, budget: &ObjectKey, released_pods: ReleasedPods) {
        let woken = self.waiters.lock().wake(budget, released_pods, Instant::now());
        woken.into_iter().for_each(|(key, delay)| self.queue.add_after(key, delay));
    }

    /// Records that a budget has allowed an eviction, by any client.
    pub(super) fn note_eviction(&self, budget: &ObjectKey) {
        self.waiters.lock().last_evictions.note(budget, self.context.clock.now());
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
            self.forget(&key);
            return Ok(Requeue::Never);
        };
        let now = self.context.clock.now();
        let next_step = self.next_step(&key, &request, &seen, now);
        let lane = seen.check.budget().cloned().unwrap_or_else(|| ObjectKey::new(&key.namespace, ""));
        if next_step.ask {
            self.submit(&key, &lane);
        } else if next_step.wake.is_some() && self.fetch(&key).is_some_and(|(_, now)| now.check != seen.check)
        {
            // The budget changed before this request began to wait for it, and has not woken it.
            self.queue.add(key.clone());
        }
        let mut wake = next_step.wake;
        let first_report_at = self.first_report_at(&key, &request, next_step.is_leaving, now);
        if first_report_at.is_some() {
            wake = earliest(wake, first_report_at);
        } else if let Some(progress) = next_step.progress {
            let (words, last_eviction) = self.about(&key, &seen, &progress);
            let update = ProgressUpdate { progress, audience: Audience::Owner, words, last_eviction };
            let outcome = self.reporter.publish_and_report(&request, update, now).await?;
            wake = earliest(wake, outcome.wake);
            if outcome.is_refused {
                wake = earliest(wake, now.checked_add(REFUSED_REPORT_RETRY).ok());
            }
        }
        Ok(at(wake, now))
    }

    /// The words of the event about a refusal, if there was one; and when the budget that blocks last allowed
    /// an eviction.
    fn about(
        &self,
        key: &ObjectKey,
        seen: &PodAndBudgets,
        progress: &ProgressReport,
    ) -> (Option<String>, Option<Timestamp>) {
        let mut waiters = self.waiters.lock();
        let last_eviction = waiters.last_evictions.last(&key.namespace, progress.blocked.as_ref());
        let is_terminating = seen.pod.as_ref().is_some_and(|pod| pod.is_terminating());
        let refused = waiters.get_mut(key).and_then(|tracked| tracked.attempts.refused.as_ref());
        (refused.filter(|_| !is_terminating).map(|refused| refused.cause(&seen.check)), last_eviction)
    }

    fn next_step(
        &self,
        key: &ObjectKey,
        request: &EvictionRequest,
        seen: &PodAndBudgets,
        now: Timestamp,
    ) -> NextStep {
        let mut waiters = self.waiters.lock();
        let tracked = waiters.track(key);
        tracked.attempts.update(&seen.check);
        let mut next_step = next_step(seen.pod.as_deref(), &seen.check, &tracked.attempts, now);
        tracked.pod = request.spec.target.pod.as_ref().map(|p| p.name.clone()).unwrap_or_default();
        let (waits, awaits_disruption) = (next_step.wake.is_some(), tracked.attempts.awaits_disruption());
        let is_kept = tracked.attempts.is_kept_by_budgets();
        next_step.ask = next_step.ask && waiters.ask(key);
        let reserves = waiters.is_asking(key) || (waits && awaits_disruption);
        // Looked at before it stops waiting: it then takes the offer up, or waits without it.
        let passed_on = waiters.look_at(key, waits && seen.check.keeps_unhealthy());
        if waits && is_kept && !waiters.is_asking(key) {
            waiters.wait_for(key, &seen.check);
        } else {
            waiters.stop_waiting(key);
        }
        let next = waiters.reserve_disruption(key, seen.check.budget().filter(|_| reserves));
        drop(waiters);
        self.wake_next(passed_on);
        self.wake_next(next);
        next_step
    }

    /// When the first report is due on a request whose pod is leaving; none if a report need not wait.
    fn first_report_at(
        &self,
        key: &ObjectKey,
        request: &EvictionRequest,
        is_leaving: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let has_reported = self.reporter.has_reported(request);
        let mut waiters = self.waiters.lock();
        let leaving_since = &mut waiters.track(key).leaving_since;
        *leaving_since = leaving_since.or(Some(now)).filter(|_| is_leaving);
        leaving_since.filter(|_| !has_reported).and_then(|since| first_report_at(since, now))
    }

    /// The attempts for a request that waited in the pool, if its eviction is still due.
    pub(super) fn still_asks(&self, key: &ObjectKey, seen: &PodAndBudgets) -> Option<Attempts> {
        let mut waiters = self.waiters.lock();
        let attempts = &waiters.get_mut(key)?.attempts;
        next_step(seen.pod.as_deref(), &seen.check, attempts, self.context.clock.now())
            .ask
            .then(|| attempts.clone())
    }

    fn submit(&self, key: &ObjectKey, lane: &BudgetLane) {
        self.pool.lock().submit(lane, key.clone());
        self.pool_changed.notify_one();
    }

    /// Takes back a request from the pool. `result` has the host's answer and the state of the budgets before
    /// it; none if no eviction was sent.
    pub(super) fn answered(&self, key: &ObjectKey, result: Option<(EvictionResult, BudgetCheck)>) {
        let mut waiters = self.waiters.lock();
        // A request whose eviction was not sent has not used its disruption either.
        let mut leaves_disruption = result.is_none();
        waiters.asked(key);
        if let Some((tracked, (result, check))) = waiters.get_mut(key).zip(result) {
            if result.blocks() {
                // This happens under the lock: otherwise the series of a request that is forgotten meanwhile
                // would stay forever.
                self.metrics.failed_for(key, &tracked.pod);
            }
            leaves_disruption = result.leaves_disruption();
            let (is_taken, budget, now) =
                (result == EvictionResult::Accepted, check.budget().cloned(), self.context.clock.now());
            tracked.attempts.learn(result, check, now);
            if is_taken {
                waiters.take_disruption(key);
                budget.into_iter().for_each(|budget| waiters.last_evictions.note(&budget, now));
            }
        }
        let next = if leaves_disruption { waiters.reserve_disruption(key, None) } else { None };
        drop(waiters);
        self.wake_next(next);
        self.queue.add(key.clone());
    }

    fn forget(&self, key: &ObjectKey) {
        let mut waiters = self.waiters.lock();
        let next = waiters.forget(key);
        self.metrics.forget(key);
        drop(waiters);
        self.reporter.forget(key);
        self.wake_next(next);
    }

    fn wake_next(&self, next: Option<ObjectKey>) {
        next.into_iter().for_each(|next| self.queue.add(next));
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
