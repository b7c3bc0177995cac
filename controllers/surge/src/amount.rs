//! Numbers that may be percentages, as the host resolves them, and what a budget will allow.

use drydock_runtime::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number, or a percentage of `total` rounded up; none if it is neither
/// (k8s.io/apimachinery/pkg/util/intstr, GetScaledValueFromIntOrPercent).
pub fn resolve(amount: &IntOrString, total: i32) -> Option<i32> {
    match amount {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let hundredths = percent.checked_mul(total.into())?;
            i32::try_from(hundredths.div_euclid(100) + i64::from(hundredths.rem_euclid(100) > 0)).ok()
        }
    }
}

/// Whether the budget lets a pod go when it expects one pod more than now, and all are healthy. One that wants all pods,
/// however many there are, does not.
pub fn would_allow_with_one_more(budget: &PodDisruptionBudget) -> bool {
    let expected = budget.expected_pods.saturating_add(1);
    let desired = match (&budget.min_available, &budget.max_unavailable) {
        (_, Some(max)) => resolve(max, expected).map(|max| expected.saturating_sub(max)),
        (Some(min), None) => resolve(min, expected),
        (None, None) => None,
    };
    desired.is_some_and(|desired| expected > desired.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> IntOrString {
        IntOrString::String(text.to_owned())
    }

    #[test]
    fn a_percentage_is_rounded_up_and_other_texts_are_none() {
        assert_eq!(resolve(&percent("34%"), 3), Some(2));
        assert_eq!(resolve(&percent("100%"), 7), Some(7));
        assert_eq!(resolve(&IntOrString::Int(4), 1), Some(4));
        assert_eq!(resolve(&percent("4"), 10), None);
        assert_eq!(resolve(&percent("x%"), 10), None);
    }

    #[test]
    fn a_budget_that_wants_all_pods_is_not_helped_by_one_more() {
        let least = |min, expected_pods| {
            let budget =
                PodDisruptionBudget { min_available: Some(min), expected_pods, ..Default::default() };
            would_allow_with_one_more(&budget)
        };
        let most = |max, expected_pods| {
            let budget =
                PodDisruptionBudget { max_unavailable: Some(max), expected_pods, ..Default::default() };
            would_allow_with_one_more(&budget)
        };
        assert!(least(IntOrString::Int(1), 1));
        assert!(!least(IntOrString::Int(3), 1));
        assert!(!least(percent("100%"), 4));
        assert!(least(percent("80%"), 4));
        assert!(!most(IntOrString::Int(0), 4));
        assert!(most(IntOrString::Int(1), 4));
        assert!(most(percent("10%"), 4), "a tenth of five is one, rounded up");
        assert!(!would_allow_with_one_more(&PodDisruptionBudget::default()));
    }
}
