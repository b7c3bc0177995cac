//! What the host would answer to the eviction of a pod, guessed from the PodDisruptionBudgets in the cache. The host
//! decides.

use std::ops::ControlFlow;
use std::sync::Arc;

use drydock_runtime::cache::{Phase, UnhealthyPolicy};
use drydock_runtime::{Budget, Cacheable, ObjectKey, Pod, Store};

/// Comparisons of strings that a look at the budgets of one pod may cost: tenants make any number of budgets, with
/// selectors of up to a megabyte.
const MAX_COMPARISONS: usize = 10_000;

/// A guess at the host's answer. Two are equal when the budget that covers the pod has not changed in between, or when
/// the same two were found to cover it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// No budget is in the way; the one that covers the pod, if any.
    Open(Option<Covering>),
    /// This budget allows nothing, for this reason.
    Closed { budget: Covering, why: String },
    /// Several budgets cover the pod, these two among them; what they say does not matter while there is more than one.
    Many([ObjectKey; 2]),
}

/// The one budget that covers a pod, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Covering {
    /// Which.
    pub(crate) key: ObjectKey,
    /// Its resourceVersion.
    pub(crate) version: String,
}

impl Gate {
    /// The one budget that covers the pod.
    pub(crate) fn budget(&self) -> Option<&ObjectKey> {
        match self {
            Self::Open(budget) => budget.as_ref().map(|budget| &budget.key),
            Self::Closed { budget, .. } => Some(&budget.key),
            Self::Many(_) => None,
        }
    }

    /// Whether a budget is known to be in the way.
    pub(crate) fn is_closed(&self) -> bool {
        !matches!(self, Self::Open(_))
    }
}

/// The budgets that cover a pod, the first two by name: one more changes nothing. Budgets beyond [`MAX_COMPARISONS`] are
/// not looked at: a pod that one of them keeps is asked for again with backoff, and not when that budget changes.
pub(crate) fn covering(pod: &Pod, budgets: &Store<Budget>) -> Vec<Arc<Budget>> {
    let mut covering = Vec::new();
    // The host does not ask budgets about pods that have not started, have ended, or are going.
    if pod.is_terminal() || pod.is_terminating() || pod.phase == Phase::Pending {
        return covering;
    }
    let mut left = MAX_COMPARISONS;
    budgets.visit_namespace(&pod.namespace, |budget| {
        let Some(rest) = left.checked_sub(budget.comparisons()) else { return ControlFlow::Break(()) };
        left = rest;
        if budget.covers(&pod.labels) {
            covering.push(budget.clone());
        }
        if covering.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    covering
}

/// Guesses from the budgets that cover the pod.
pub(crate) fn gate(pod: &Pod, covering: &[Arc<Budget>]) -> Gate {
    let budget = match covering {
        [] => return Gate::Open(None),
        [budget] => budget,
        [first, second, ..] => return Gate::Many([first.key(), second.key()]),
    };
    let covering = Covering { key: budget.key(), version: budget.resource_version.clone() };
    match obstacle(budget, pod) {
        None => Gate::Open(Some(covering)),
        Some(why) => Gate::Closed { budget: covering, why },
    }
}

fn obstacle(budget: &Budget, pod: &Pod) -> Option<String> {
    let Budget { name, current_healthy, desired_healthy, disruptions_allowed, .. } = budget;
    if !pod.ready && budget.unhealthy_policy == UnhealthyPolicy::AlwaysAllow {
        return None;
    }
    let is_met = current_healthy >= desired_healthy && *desired_healthy > 0;
    if !pod.ready && is_met {
        return None;
    }
    if !budget.is_observed() {
        return Some(format!("PodDisruptionBudget {name} is still being processed"));
    }
    if *disruptions_allowed > 0 {
        return None;
    }
    let mut why = format!(
        "PodDisruptionBudget {name} allows {disruptions_allowed} disruptions \
         ({current_healthy} of {desired_healthy} needed pods are healthy, {} expected)",
        budget.expected_pods
    );
    if !pod.ready {
        // KEP-3017
        why.push_str(
            "; the pod itself is not ready, but unhealthyPodEvictionPolicy IfHealthyBudget keeps it \
             until the budget is met (AlwaysAllow would let it go)",
        );
    }
    Some(why)
}

/// Which pods a budget's change may let go that were kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relief {
    /// Any: the budget is gone, or no longer covers the same pods, or no longer keeps those that are not ready.
    Any,
    /// So many of those that it alone covers.
    Some(usize),
}

/// What a budget's change does for the pods that it kept.
pub(crate) fn relief(old: Option<&Budget>, new: Option<&Budget>) -> Option<Relief> {
    let (Some(old), Some(new)) = (old, new) else { return old.map(|_| Relief::Any) };
    let is_met = |budget: &Budget| budget.current_healthy >= budget.desired_healthy;
    let is_another = new.selector != old.selector || new.unhealthy_policy != old.unhealthy_policy;
    if is_another || (is_met(new) && !is_met(old)) {
        return Some(Relief::Any);
    }
    let allowed = usize::try_from(new.disruptions_allowed).unwrap_or_default();
    (allowed > 0).then_some(Relief::Some(allowed))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn budget(name: &str, allowed: i32) -> Arc<Budget> {
        Arc::new(Budget {
            name: name.into(),
            namespace: "ns".into(),
            resource_version: "5".into(),
            selector: Some(Default::default()),
            disruptions_allowed: allowed,
            current_healthy: 2,
            desired_healthy: 3,
            expected_pods: 4,
            ..Default::default()
        })
    }

    fn pod(ready: bool) -> Pod {
        Pod { name: "p".into(), namespace: "ns".into(), phase: Phase::Running, ready, ..Default::default() }
    }

    fn why(gate: Gate) -> String {
        match gate {
            Gate::Closed { why, .. } => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn budget_that_allows_nothing_closes_the_gate_and_says_why() {
        let covering = Covering { key: ObjectKey::new("ns", "b"), version: "5".into() };
        assert_eq!(gate(&pod(true), &[budget("b", 1)]), Gate::Open(Some(covering)));
        let why = why(gate(&pod(true), &[budget("b", 0)]));
        assert_eq!(
            why,
            "PodDisruptionBudget b allows 0 disruptions (2 of 3 needed pods are healthy, 4 expected)"
        );
    }

    #[test]
    fn unhealthy_pod_goes_by_the_policy_of_its_budget() {
        let kept = why(gate(&pod(false), &[budget("b", 0)]));
        assert!(kept.contains("IfHealthyBudget"));
        let always =
            Arc::new(Budget { unhealthy_policy: UnhealthyPolicy::AlwaysAllow, ..(*budget("b", 0)).clone() });
        assert!(matches!(gate(&pod(false), &[always]), Gate::Open(_)));
        let met = Arc::new(Budget { current_healthy: 3, ..(*budget("b", 0)).clone() });
        assert!(matches!(gate(&pod(false), &[met]), Gate::Open(_)));
    }

    fn store(budgets: impl IntoIterator<Item = Budget>) -> Store<Budget> {
        let store = Store::default();
        budgets.into_iter().for_each(|budget| store.apply(budget));
        store
    }

    fn names(covering: &[Arc<Budget>]) -> Vec<&str> {
        covering.iter().map(|budget| budget.name.as_str()).collect()
    }

    #[test]
    fn pending_pod_passes_every_budget() {
        let pending = Pod { phase: Phase::Pending, ..pod(false) };
        let budgets = store([(*budget("a", 0)).clone()]);
        assert_eq!(names(&covering(&pod(false), &budgets)), ["a"]);
        assert!(covering(&pending, &budgets).is_empty());
        assert_eq!(gate(&pending, &[]), Gate::Open(None));
    }

    #[test]
    fn of_several_budgets_the_first_two_by_name_are_enough() {
        let budgets = store(["c", "b", "a"].map(|name| (*budget(name, 1)).clone()));
        let gate = gate(&pod(true), &covering(&pod(true), &budgets));
        assert_eq!(gate, Gate::Many([ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b")]));
    }

    /// A selector may be as long as a megabyte, and there may be hundreds: each look at each pod went through them all.
    #[test]
    fn a_look_at_the_budgets_of_a_pod_costs_a_bounded_number_of_comparisons() {
        let selecting = |name: &str, operator: &str, values: usize| {
            let values: Vec<String> = (0..values).map(|value| value.to_string()).collect();
            let expression = serde_json::json!({ "key": "k", "operator": operator, "values": values });
            let selector = serde_json::json!({ "matchExpressions": [expression] });
            Budget { selector: serde_json::from_value(selector).unwrap(), ..(*budget(name, 1)).clone() }
        };
        let long =
            [selecting("a", "NotIn", 4_000), selecting("b", "NotIn", 10_000), selecting("c", "NotIn", 1)];
        assert_eq!(names(&covering(&pod(true), &store(long))), ["a"], "not the long one, nor what follows");
        let others = |count| (0..count).map(move |i| selecting(&format!("{i:05}"), "Exists", 0));
        let last = || [selecting("z", "NotIn", 1)];
        assert_eq!(names(&covering(&pod(true), &store(others(4_900).chain(last())))), ["z"]);
        assert!(covering(&pod(true), &store(others(5_000).chain(last()))).is_empty());
    }

    #[test]
    fn budget_that_is_not_observed_yet_closes_the_gate() {
        let fresh = Arc::new(Budget { generation: 2, observed_generation: 1, ..(*budget("b", 1)).clone() });
        assert!(why(gate(&pod(true), &[fresh])).contains("still being processed"));
    }

    #[test]
    fn only_changes_that_may_help_wake_those_who_wait() {
        let (none, one) = (budget("b", 0), budget("b", 1));
        assert_eq!(relief(Some(&none), Some(&one)), Some(Relief::Some(1)));
        assert_eq!(relief(Some(&one), Some(&none)), None);
        assert_eq!(relief(None, Some(&one)), None);
    }

    /// A budget that no longer covers its pods woke as many as a budget with room does: the others waited on.
    #[test]
    fn a_change_of_what_a_budget_keeps_is_for_all_of_its_pods() {
        let none = budget("b", 0);
        assert_eq!(relief(Some(&none), None), Some(Relief::Any));
        for changed in [
            Budget { selector: None, ..(*none).clone() },
            Budget { unhealthy_policy: UnhealthyPolicy::AlwaysAllow, ..(*none).clone() },
            Budget { current_healthy: 3, ..(*none).clone() },
        ] {
            assert_eq!(relief(Some(&none), Some(&changed)), Some(Relief::Any), "{changed:?}");
        }
    }
}
