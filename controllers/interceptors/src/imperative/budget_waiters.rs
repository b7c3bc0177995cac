//! The requests in the turn of imperative eviction, and the queues in which they wait for a budget. The
//! number of requests bounds both.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::ObjectKey;
use tokio::time::Instant;

use super::attempts::Attempts;
use super::budget_check::{BudgetCheck, ReleasedPods};
use super::last_evictions::LastEvictions;

/// How many of the requests that a budget no longer keeps are woken at once, whatever [`ALL_WOKEN_INTERVAL`] says: as
/// many as may be in flight.
const WOKEN_AT_ONCE: usize = 64;
/// All requests that wait for a budget are woken at most once in this time for each namespace: tenants may
/// change a selector as often as they like, and each pod's check of all budgets in the namespace costs time.
const ALL_WOKEN_INTERVAL: Duration = Duration::from_secs(1);

/// The attempts of one request, and what it waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedRequest {
    pub(crate) attempts: Attempts,
    /// Name of the pod, which the metrics carry.
    pub(crate) pod: String,
    /// Since when its pod has been leaving without anything that keeps it.
    pub(super) leaving_since: Option<jiff::Timestamp>,
    waiting: Option<WaitingFor>,
    /// The budget whose next disruption it waits for or tries to use.
    reserved: Option<ObjectKey>,
    /// Whether its budget keeps the pod for not being ready, until the budget is met.
    awaits_met: bool,
    /// Whether it was woken for a disruption, and has not been looked at since.
    is_offered: bool,
}

/// What a request waits for.
#[derive(Clone, Debug)]
enum WaitingFor {
    /// A disruption of this budget; with the place in its queue.
    Disruption(ObjectKey, u64),
    /// A change after which these two budgets no longer both cover its pod. Until then, other budgets make no
    /// difference.
    EitherChanges([ObjectKey; 2]),
}

#[cfg_attr(test, derive(Clone))]
#[derive(Default)]
pub(crate) struct BudgetWaiters {
    requests: HashMap<ObjectKey, TrackedRequest>,
    /// Requests that wait for a disruption of one budget, by that budget and in the order in which they came.
    behind_one: HashMap<ObjectKey, BTreeSet<(u64, ObjectKey)>>,
    /// Requests behind two budgets, by each of the two. They are not in `behind_one`: no disruption that one of the
    /// two allows helps them, and they would be woken in place of a request that it helps.
    behind_two: HashMap<ObjectKey, BTreeSet<ObjectKey>>,
    /// Requests whose eviction is queued or in flight, even if they are no longer tracked: the result for a
    /// request that was withdrawn may come after the request is wanted again.
    asking: HashSet<ObjectKey>,
    sequence: u64,
    /// When all waiting requests were last woken, by namespace; for [`ALL_WOKEN_INTERVAL`].
    all_woken: HashMap<Arc<str>, Instant>,
    pub(super) last_evictions: LastEvictions,
}

impl BudgetWaiters {
    /// Returns the record of a request, and begins to track the request if it is new.
    pub(crate) fn track(&mut self, key: &ObjectKey) -> &mut TrackedRequest {
        self.requests.entry(key.clone()).or_default()
    }

    pub(crate) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut TrackedRequest> {
        self.requests.get_mut(key)
    }

    pub(crate) fn knows(&self, key: &ObjectKey) -> bool {
        self.requests.contains_key(key)
    }

    /// Records that an eviction is queued for a request; returns false if one was already queued or in
    /// flight.
    pub(crate) fn ask(&mut self, key: &ObjectKey) -> bool {
        self.asking.insert(key.clone())
    }

    /// Whether an eviction is queued or in flight.
    pub(crate) fn is_asking(&self, key: &ObjectKey) -> bool {
        self.asking.contains(key)
    }

    /// Records that the eviction of a request is no longer queued or in flight.
    pub(crate) fn asked(&mut self, key: &ObjectKey) {
        self.asking.remove(key);
    }

    /// Forgets a request; returns the request that gets the disruption which was reserved for it. While its eviction is
    /// queued or in flight the record stays, for the result: the request may be wanted again before it comes.
    pub(crate) fn forget(&mut self, key: &ObjectKey) -> Option<ObjectKey> {
        let next = self.look_at(key, true);
        self.stop_waiting(key);
        let next = next.or_else(|| self.reserve_disruption(key, None));
        match self.requests.get_mut(key).filter(|_| self.asking.contains(key)) {
            Some(tracked) => tracked.leaving_since = None,
            None => drop(self.requests.remove(key)),
        }
        next
    }

    /// Records the budget whose disruption a request waits for or tries to use. If that was another budget
    /// before, the request has not used a disruption of that one: returns the request that has waited longest
    /// for it, because the budget may not change again to wake one.
    pub(crate) fn reserve_disruption(
        &mut self,
        key: &ObjectKey,
        budget: Option<&ObjectKey>,
    ) -> Option<ObjectKey> {
        let tracked = self.requests.get_mut(key).filter(|tracked| tracked.reserved.as_ref() != budget)?;
        let before = std::mem::replace(&mut tracked.reserved, budget.cloned())?;
        self.offer(&before, key)
    }

    /// Offers a disruption of a budget to the request that has waited longest for it, other than `key`, and has no offer
    /// yet. Returns that request.
    fn offer(&mut self, budget: &ObjectKey, key: &ObjectKey) -> Option<ObjectKey> {
        let Self { requests, behind_one, .. } = self;
        let mut waiting = behind_one.get(budget)?.iter().map(|(_, key)| key);
        let next =
            waiting.find(|next| *next != key && requests.get(*next).is_some_and(|it| !it.is_offered))?;
        requests.get_mut(next)?.is_offered = true;
        Some(next.clone())
    }

    /// Records that a request is looked at. Returns the request that gets the disruption that was offered to it, if it
    /// cannot use one: its budget keeps it (`is_kept`) for what it is, and not for want of disruptions.
    pub(crate) fn look_at(&mut self, key: &ObjectKey, is_kept: bool) -> Option<ObjectKey> {
        let tracked = self.requests.get_mut(key)?;
        let is_offered = std::mem::take(&mut tracked.is_offered);
        match tracked.waiting.clone() {
            Some(WaitingFor::Disruption(budget, _)) if is_offered && is_kept => self.offer(&budget, key),
            _ => None,
        }
    }

    /// Records that a request has used the disruption that was reserved for it, so that no other request gets
    /// it.
    pub(crate) fn take_disruption(&mut self, key: &ObjectKey) {
        if let Some(tracked) = self.requests.get_mut(key) {
            tracked.reserved = None;
        }
    }

    /// Lets a request wait for a change of the budgets that keep its pod; it keeps its place if it waits for
    /// them already. Where none is known to cover the pod, it waits for the one that the host has named.
    pub(crate) fn wait_for(&mut self, key: &ObjectKey, check: &BudgetCheck) {
        if let Some(tracked) = self.requests.get_mut(key) {
            tracked.awaits_met = check.keeps_unhealthy();
        }
        let named = match check {
            BudgetCheck::Allows(None) => self.named_by_host(key),
            _ => check.budget().cloned(),
        };
        match (self.requests.get(key).and_then(|m| m.waiting.as_ref()), check) {
            (Some(WaitingFor::Disruption(waited, _)), _) if named.as_ref() == Some(waited) => return,
            (Some(WaitingFor::EitherChanges(waited)), BudgetCheck::Several(budgets)) if waited == budgets => {
                return;
            }
            _ => self.stop_waiting(key),
        }
        let Some(tracked) = self.requests.get_mut(key) else { return };
        if let BudgetCheck::Several(budgets) = check {
            tracked.waiting = Some(WaitingFor::EitherChanges(budgets.clone()));
            for budget in budgets {
                self.behind_two.entry(budget.clone()).or_default().insert(key.clone());
            }
        } else if let Some(budget) = named {
            self.sequence += 1;
            tracked.waiting = Some(WaitingFor::Disruption(budget.clone(), self.sequence));
            self.behind_one.entry(budget).or_default().insert((self.sequence, key.clone()));
        }
    }

    /// The budget that the host named when it last refused the request's pod.
    fn named_by_host(&self, key: &ObjectKey) -> Option<ObjectKey> {
        let name = self.requests.get(key)?.attempts.named_budget()?;
        Some(ObjectKey::new(&key.namespace, name))
    }

    pub(crate) fn stop_waiting(&mut self, key: &ObjectKey) {
        match self.requests.get_mut(key).and_then(|m| m.waiting.take()) {
            Some(WaitingFor::Disruption(budget, place)) => {
                take_out(&mut self.behind_one, &budget, &(place, key.clone()))
            }
            Some(WaitingFor::EitherChanges(budgets)) => {
                budgets.iter().for_each(|budget| take_out(&mut self.behind_two, budget, key));
            }
            None => {}
        }
    }

    /// Returns the requests to wake when a budget's change may let pods go, each with a delay: as many as it allows
    /// disruptions, those that have waited longest; beside them those of pods that are not ready, if it is met now; or all
    /// if it may let any pod go. One that does not use its disruption wakes the next: see
    /// [`Self::reserve_disruption`].
    pub(crate) fn wake(
        &mut self,
        budget: &ObjectKey,
        released_pods: ReleasedPods,
        now: Instant,
    ) -> Vec<(ObjectKey, Duration)> {
        let waiting = || self.behind_one.get(budget).into_iter().flatten().map(|(_, key)| key);
        let at_once = |key: &ObjectKey| (key.clone(), Duration::ZERO);
        let awaits_met = |key: &&ObjectKey| self.requests.get(*key).is_some_and(|it| it.awaits_met);
        let (offered, others): (Vec<_>, Vec<_>) = match released_pods {
            ReleasedPods::Any => {
                let behind_two = self.behind_two.get(budget).into_iter().flatten();
                (Vec::new(), waiting().chain(behind_two).map(at_once).collect())
            }
            ReleasedPods::AtMost(allowed) => (waiting().take(allowed).map(at_once).collect(), Vec::new()),
            ReleasedPods::NotReadyAnd(allowed) => (
                waiting().filter(|key| !awaits_met(key)).take(allowed).map(at_once).collect(),
                waiting().filter(awaits_met).map(at_once).collect(),
            ),
        };
        for (key, is_offered) in
            offered.iter().map(|(key, _)| (key, true)).chain(others.iter().map(|(key, _)| (key, false)))
        {
            if let Some(tracked) = self.requests.get_mut(key) {
                tracked.is_offered |= is_offered;
                tracked.attempts.named_budget_changed();
            }
        }
        let others = self.paced(budget, others, now);
        offered.into_iter().chain(others).collect()
    }

    /// Delays the requests after the first [`WOKEN_AT_ONCE`] until [`ALL_WOKEN_INTERVAL`] has passed since all of the
    /// namespace were last woken.
    fn paced(
        &mut self,
        budget: &ObjectKey,
        mut all: Vec<(ObjectKey, Duration)>,
        now: Instant,
    ) -> Vec<(ObjectKey, Duration)> {
        self.all_woken.retain(|_, at| now.saturating_duration_since(*at) < ALL_WOKEN_INTERVAL);
        let Some(rest) = all.get_mut(WOKEN_AT_ONCE..).filter(|rest| !rest.is_empty()) else { return all };
        let at = *self.all_woken.entry(budget.namespace.clone()).or_insert(now);
        if at != now {
            let wait = ALL_WOKEN_INTERVAL.saturating_sub(now.saturating_duration_since(at));
            rest.iter_mut().for_each(|(_, delay)| *delay = wait);
        }
        all
    }
}

fn take_out<T: Ord>(queues: &mut HashMap<ObjectKey, BTreeSet<T>>, budget: &ObjectKey, waiting: &T) {
    let Some(queue) = queues.get_mut(budget) else { return };
    queue.remove(waiting);
    if queue.is_empty() {
        queues.remove(budget);
    }
}

#[cfg(test)]
#[path = "exploration_tests/canonical.rs"]
mod canonical;
#[cfg(test)]
#[path = "budget_waiters_tests.rs"]
mod tests;
