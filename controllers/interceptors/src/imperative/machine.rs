//! The one step of imperative eviction: what follows from an event about a request or a budget. Pure.
//!
//! ```text
//! request, pod, budget change ─▶ Seen ─┬─▶ report, wake-up
//!              ▲                       └─▶ pool ─▶ Taken ─▶ eviction ─▶ Answered ─┐
//!              └──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`BudgetWaiters`] is the state. `next_step` decides for one request; this module adds which requests are in flight,
//! which wait for a budget, and who gets a disruption that another one leaves.

use std::sync::Arc;
use std::time::Duration;

use drydock_runtime::{ObjectKey, Pod};
use jiff::Timestamp;
use tokio::time::Instant;

use super::budget_check::{BudgetCheck, ReleasedPods};
use super::budget_waiters::BudgetWaiters;
use super::eviction_result::EvictionResult;
use super::next_step::{next_step, reported_from};
use super::pool::BudgetLane;
use crate::report::{ProgressReport, earliest};

/// Something that happens to a request, or to a budget.
#[derive(Debug)]
pub(super) enum EvictionEvent<'a> {
    /// A request in our turn is looked at.
    Seen {
        /// Its pod and budgets.
        seen: &'a PodAndBudgets,
        /// The name of its pod, which the metrics carry.
        pod: &'a str,
        /// Whether the request does not say yet what an event has told the pod's owner: then no report is held back.
        owes_report: bool,
    },
    /// A request is looked at that is not in our turn.
    Left,
    /// The eviction of a request leaves the pool. `seen` is none if the request is not in our turn any more.
    Taken { seen: Option<&'a PodAndBudgets>, may_write: bool },
    /// An eviction is over. `result` has the host's answer and the state of the budgets before it; none if no eviction was
    /// sent.
    Answered { result: Option<(EvictionResult, BudgetCheck)> },
    /// A budget has changed: it has allowed an eviction by any client, or may let these pods go.
    BudgetChanged { has_evicted: bool, released_pods: Option<ReleasedPods>, at: Instant },
}

/// The pod of a request, and the prediction from its budgets.
#[derive(Clone, Debug)]
pub(super) struct PodAndBudgets {
    /// None when the pod is gone or terminal.
    pub(super) pod: Option<Arc<Pod>>,
    pub(super) check: BudgetCheck,
}

/// What is to be done about an event; nothing by default.
#[derive(Debug, Default, PartialEq)]
pub(super) struct EvictionEffects {
    /// The request's eviction is put into this lane of the pool.
    pub(super) submit: Option<BudgetLane>,
    /// The request has begun to wait for its budgets: if they have changed since they were read, it is looked at again,
    /// because that change has not woken it.
    pub(super) waits: bool,
    /// What is reported about the request.
    pub(super) report: Option<OwnReport>,
    /// When the request is looked at again, if nothing changes before.
    pub(super) wake: Option<Timestamp>,
    /// How an eviction that left the pool is sent; none if it is not.
    pub(super) send: Option<Sending>,
    /// An eviction of the pod of this name has failed.
    pub(super) failed: Option<String>,
    /// Requests that are looked at, after a delay.
    pub(super) queue: Vec<(ObjectKey, Duration)>,
}

/// A report for the request's status and for the pod's owner.
#[derive(Debug, PartialEq)]
pub(super) struct OwnReport {
    pub(super) progress: ProgressReport,
    /// The words of the event about a refusal, if there was one.
    pub(super) words: Option<String>,
    /// When the budget that blocks last allowed an eviction.
    pub(super) last_eviction: Option<Timestamp>,
}

/// How an eviction is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// At once.
    Evict,
    /// Only if a live read does not show that the host has accepted an earlier one.
    LookFirst,
    /// Not now: the lease is not known to be valid. `is_unclear` says that the host may have accepted an earlier one.
    NotNow { is_unclear: bool },
}

/// Changes the state by an event about `key`, the request's or the budget's, and returns what is to be done.
pub(super) fn step(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    event: EvictionEvent<'_>,
    now: Timestamp,
) -> EvictionEffects {
    match event {
        EvictionEvent::Seen { seen, pod, owes_report } => {
            pod.clone_into(&mut waiters.track(key).pod);
            look(waiters, key, seen, owes_report, now)
        }
        EvictionEvent::Left => {
            EvictionEffects { queue: at_once(waiters.forget(key)), ..EvictionEffects::default() }
        }
        EvictionEvent::Taken { seen, may_write } => {
            let send = seen.and_then(|seen| sending(waiters, key, seen, may_write, now));
            EvictionEffects { send, ..EvictionEffects::default() }
        }
        EvictionEvent::Answered { result } => answered(waiters, key, result, now),
        EvictionEvent::BudgetChanged { has_evicted, released_pods, at } => {
            if has_evicted {
                waiters.last_evictions.note(key, now);
            }
            let queue = released_pods.map_or_else(Vec::new, |pods| waiters.wake(key, pods, at));
            EvictionEffects { queue, ..EvictionEffects::default() }
        }
    }
}

fn look(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    seen: &PodAndBudgets,
    owes_report: bool,
    now: Timestamp,
) -> EvictionEffects {
    let tracked = waiters.track(key);
    tracked.attempts.update(&seen.check);
    let next = next_step(seen.pod.as_deref(), &seen.check, &tracked.attempts, now);
    tracked.leaving_since = tracked.leaving_since.or(Some(now)).filter(|_| next.is_leaving);
    let since = tracked.leaving_since.filter(|_| !owes_report);
    let reported_from = since.and_then(|since| reported_from(since, now));
    let (waits, awaits_disruption) = (next.wake.is_some(), tracked.attempts.awaits_disruption());
    let is_kept = tracked.attempts.is_kept_by_budgets();
    let asks = next.ask && waiters.ask(key);
    let reserves = waiters.is_asking(key) || (waits && awaits_disruption);
    // Looked at before it stops waiting: it then takes the offer up, or waits without it.
    let passed_on = waiters.look_at(key, waits && seen.check.keeps_unhealthy());
    if waits && is_kept && !waiters.is_asking(key) {
        waiters.wait_for(key, &seen.check);
    } else {
        waiters.stop_waiting(key);
    }
    let left = waiters.reserve_disruption(key, seen.check.budget().filter(|_| reserves));
    let lane = || seen.check.budget().cloned().unwrap_or_else(|| ObjectKey::new(&key.namespace, ""));
    let progress = next.progress.filter(|_| reported_from.is_none());
    EvictionEffects {
        submit: asks.then(lane),
        waits: waits && !asks,
        report: progress.map(|progress| report(waiters, key, seen, progress)),
        wake: earliest(next.wake, reported_from),
        queue: at_once(passed_on.into_iter().chain(left)),
        ..EvictionEffects::default()
    }
}

fn report(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    seen: &PodAndBudgets,
    progress: ProgressReport,
) -> OwnReport {
    let last_eviction = waiters.last_evictions.last(&key.namespace, progress.blocked.as_ref());
    let is_terminating = seen.pod.as_ref().is_some_and(|pod| pod.is_terminating());
    let refused = waiters.get_mut(key).and_then(|tracked| tracked.attempts.refused.as_ref());
    let words = refused.filter(|_| !is_terminating).map(|refused| refused.cause(&seen.check));
    OwnReport { progress, words, last_eviction }
}

/// How the eviction of a request that waited in the pool is sent, if it is still due.
fn sending(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    seen: &PodAndBudgets,
    may_write: bool,
    now: Timestamp,
) -> Option<Sending> {
    let attempts = &waiters.get_mut(key)?.attempts;
    let is_due = next_step(seen.pod.as_deref(), &seen.check, attempts, now).ask;
    seen.pod.as_ref().filter(|pod| is_due && !pod.is_terminating())?;
    Some(match (may_write, attempts.may_be_accepted()) {
        (false, is_unclear) => Sending::NotNow { is_unclear },
        (true, true) => Sending::LookFirst,
        (true, false) => Sending::Evict,
    })
}

fn answered(
    waiters: &mut BudgetWaiters,
    key: &ObjectKey,
    result: Option<(EvictionResult, BudgetCheck)>,
    now: Timestamp,
) -> EvictionEffects {
    // A request whose eviction was not sent has not used its disruption either.
    let mut leaves_disruption = result.is_none();
    let mut failed = None;
    waiters.asked(key);
    if let Some((tracked, (result, check))) = waiters.get_mut(key).zip(result) {
        failed = result.blocks().then(|| tracked.pod.clone());
        leaves_disruption = result.leaves_disruption();
        let (is_taken, budget) = (result == EvictionResult::Accepted, check.budget().cloned());
        tracked.attempts.learn(result, check, now);
        if is_taken {
            waiters.take_disruption(key);
            budget.into_iter().for_each(|budget| waiters.last_evictions.note(&budget, now));
        }
    }
    let next = if leaves_disruption { waiters.reserve_disruption(key, None) } else { None };
    EvictionEffects {
        failed,
        queue: at_once(next.into_iter().chain([key.clone()])),
        ..EvictionEffects::default()
    }
}

fn at_once(keys: impl IntoIterator<Item = ObjectKey>) -> Vec<(ObjectKey, Duration)> {
    keys.into_iter().map(|key| (key, Duration::ZERO)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::pod;
    use super::*;

    /// An accepted eviction did not show in the cache for half a minute. The next one was held back because the lease was in
    /// doubt, which counted as a lost race: the one after it was sent without a live read, and evicted the pod twice.
    #[test]
    fn a_lease_in_doubt_does_not_hide_that_the_host_may_have_accepted_an_eviction() {
        let (key, allows) = (ObjectKey::new("ns", "p"), || BudgetCheck::Allows(None));
        let seen = PodAndBudgets { pod: Some(Arc::new(pod("p"))), check: allows() };
        let mut waiters = BudgetWaiters::default();
        let mut at = |second: u64, event| {
            step(&mut waiters, &key, event, Timestamp::UNIX_EPOCH + Duration::from_secs(second))
        };
        let taken = |may_write| EvictionEvent::Taken { seen: Some(&seen), may_write };
        at(0, EvictionEvent::Seen { seen: &seen, pod: "p", owes_report: false });
        assert_eq!(at(0, taken(false)).send, Some(Sending::NotNow { is_unclear: false }));
        at(0, EvictionEvent::Answered { result: Some((EvictionResult::Accepted, allows())) });
        assert_eq!(at(29, taken(true)).send, None, "it may show yet");
        assert_eq!(at(30, taken(false)).send, Some(Sending::NotNow { is_unclear: true }));
        at(30, EvictionEvent::Answered { result: Some((EvictionResult::Unclear, allows())) });
        assert_eq!(at(31, taken(true)).send, Some(Sending::LookFirst));
    }
}
