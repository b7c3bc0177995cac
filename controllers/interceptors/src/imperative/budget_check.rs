//! Predicts from the PodDisruptionBudgets in the cache whether the host will allow the eviction of a pod. The host
//! decides.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use drydock_api::reasons::{KEEPS_UNHEALTHY, NEVER_ALLOWS, NOT_OBSERVED, SHORT_NOW};
use drydock_api::time::format_seconds;
use drydock_runtime::cache::{PodPhase, UnhealthyPolicy};
use drydock_runtime::refusal::budget_refusal;
use drydock_runtime::{Cacheable, ObjectKey, Pod, PodDisruptionBudget};

use super::budget_index::BudgetIndex;

/// Most string comparisons in one check of a pod's budgets: tenants can create any number of budgets that require a label
/// of the pod, with selectors of up to a megabyte.
const MAX_COMPARISONS: usize = 10_000;

/// A prediction of the host's answer. Two predictions are equal when one budget covers the pod and has not
/// changed in between, or when the same two were found to cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BudgetCheck {
    /// No budget is in the way. Holds the one that covers the pod, if any.
    Allows(Option<CoveringBudget>),
    /// This budget allows nothing. `state` is a state of `blocked`; `why` is for people, with the budget's
    /// numbers.
    Refuses { budget: CoveringBudget, state: &'static str, why: String },
    /// Several budgets cover the pod, these two among them. While there is more than one, their states do not
    /// matter.
    Several([ObjectKey; 2]),
}

/// The one budget that covers a pod, at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoveringBudget {
    /// Namespace and name.
    pub(crate) key: ObjectKey,
    /// Its resourceVersion.
    pub(crate) version: String,
}

impl BudgetCheck {
    /// The one budget that covers the pod.
    pub(crate) fn budget(&self) -> Option<&ObjectKey> {
        match self {
            Self::Allows(budget) => budget.as_ref().map(|budget| &budget.key),
            Self::Refuses { budget, .. } => Some(&budget.key),
            Self::Several(_) => None,
        }
    }

    /// Whether the budget keeps the pod because it is not ready, whatever it allows others.
    pub(crate) fn keeps_unhealthy(&self) -> bool {
        matches!(self, Self::Refuses { state, .. } if *state == KEEPS_UNHEALTHY)
    }

    /// Whether a budget is known to be in the way.
    pub(crate) fn refuses(&self) -> bool {
        !matches!(self, Self::Allows(_))
    }
}

/// The budgets that are known to cover a pod, at most the first two by name: a third makes no difference. Budgets beyond
/// [`MAX_COMPARISONS`] are not checked, nor are those whose selectors are too large to be kept, or depend on a label of the
/// pod that is not kept. There the host is asked: a pod that one of these keeps waits for the budget that the host names.
pub(crate) fn covering(pod: &Pod, budgets: &BudgetIndex) -> Vec<Arc<PodDisruptionBudget>> {
    let mut covering = Vec::new();
    // The host evicts pods that have not started, have ended or are terminating without regard to budgets.
    if pod.is_terminal() || pod.is_terminating() || pod.phase == PodPhase::Pending {
        return covering;
    }
    let mut left = MAX_COMPARISONS;
    budgets.visit(&pod.namespace, &pod.labels, |budget| {
        let Some(rest) = left.checked_sub(budget.comparisons()) else { return ControlFlow::Break(()) };
        left = rest;
        if budget.covers(pod) == Some(true) {
            covering.push(budget.clone());
        }
        if covering.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    covering
}

/// Predicts the host's answer from the budgets that cover the pod.
pub(crate) fn check(pod: &Pod, covering: &[Arc<PodDisruptionBudget>]) -> BudgetCheck {
    let budget = match covering {
        [] => return BudgetCheck::Allows(None),
        [budget] => budget,
        [first, second, ..] => return BudgetCheck::Several([first.key(), second.key()]),
    };
    let covering = CoveringBudget { key: budget.key(), version: budget.resource_version.clone() };
    match obstacle(budget, pod) {
        None => BudgetCheck::Allows(Some(covering)),
        Some((state, why)) => BudgetCheck::Refuses { budget: covering, state, why },
    }
}

fn obstacle(budget: &PodDisruptionBudget, pod: &Pod) -> Option<(&'static str, String)> {
    let PodDisruptionBudget { name, current_healthy, desired_healthy, disruptions_allowed, .. } = budget;
    if !pod.ready && budget.unhealthy_policy == UnhealthyPolicy::AlwaysAllow {
        return None;
    }
    if !pod.ready && budget.unhealthy_policy == UnhealthyPolicy::Unknown {
        let why =
            "has an unhealthyPodEvictionPolicy that this version does not know: pods that are not ready stay";
        return Some((KEEPS_UNHEALTHY, budget_refusal(name, why)));
    }
    if !pod.ready && is_met(budget) {
        return None;
    }
    if !budget.is_observed() {
        return Some((NOT_OBSERVED, budget_refusal(name, "is still being processed")));
    }
    if *disruptions_allowed > 0 {
        return None;
    }
    let mut why = format!(
        "allows {disruptions_allowed} disruptions \
         ({current_healthy} of {desired_healthy} needed pods are healthy, {} expected)",
        budget.expected_pods
    );
    if let Some(until) = budget.disrupted_until() {
        // An eviction that is broken off, as when its client is killed, leaves its pod there.
        let (pods, until) = (budget.disrupted_pods, format_seconds(until));
        let _ = write!(
            why,
            "; pods that were evicted count as disrupted until they terminate, or until {until} if their evictions were \
             broken off: {pods} now"
        );
    }
    if !pod.ready {
        // KEP-3017
        why.push_str(
            "; the pod itself is not ready, but unhealthyPodEvictionPolicy IfHealthyBudget keeps it \
             until the budget is met (AlwaysAllow would let it go)",
        );
        return Some((KEEPS_UNHEALTHY, budget_refusal(name, &why)));
    }
    let never = desired_healthy >= &budget.expected_pods && *desired_healthy > 0;
    Some((if never { NEVER_ALLOWS } else { SHORT_NOW }, budget_refusal(name, &why)))
}

/// Whether a budget has enough healthy pods, so that it lets pods go that are not ready.
fn is_met(budget: &PodDisruptionBudget) -> bool {
    budget.current_healthy >= budget.desired_healthy && budget.desired_healthy > 0
}

/// The pods that a budget may let go after it has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleasedPods {
    /// Any: the budget is gone, or its selector or its policy for unhealthy pods has changed.
    Any,
    /// Those that are not ready, as the budget is met now, and at most this many others.
    NotReadyAnd(usize),
    /// At most this many of the pods that only this budget covers.
    AtMost(usize),
}

/// Whether a budget has allowed an eviction between two versions, by any client: the host records the pod in
/// the budget's status, and forgets it when the pod is gone. False for a budget that is seen for the first
/// time, where that is not known.
pub(crate) fn has_evicted(old: Option<&PodDisruptionBudget>, new: Option<&PodDisruptionBudget>) -> bool {
    let both = old.zip(new).filter(|(old, new)| old.uid == new.uid);
    both.is_some_and(|(old, new)| new.last_disruption > old.last_disruption)
}

/// Returns which pods a budget may let go after this change; none if it lets no pod go.
pub(crate) fn released_pods(
    old: Option<&PodDisruptionBudget>,
    new: Option<&PodDisruptionBudget>,
) -> Option<ReleasedPods> {
    let (Some(old), Some(new)) = (old, new) else { return old.map(|_| ReleasedPods::Any) };
    let is_another = new.selector != old.selector || new.unhealthy_policy != old.unhealthy_policy;
    if is_another {
        return Some(ReleasedPods::Any);
    }
    let allowed = usize::try_from(new.disruptions_allowed).unwrap_or_default();
    if is_met(new) && !is_met(old) {
        return Some(ReleasedPods::NotReadyAnd(allowed));
    }
    (allowed > 0).then_some(ReleasedPods::AtMost(allowed))
}

#[cfg(test)]
#[path = "budget_check_tests.rs"]
mod tests;
