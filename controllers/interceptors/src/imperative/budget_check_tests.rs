//! Which budgets refuse an eviction, which allow it, and which requests are woken then.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use drydock_runtime::ObjectChange;

use super::*;

fn budget(name: &str, allowed: i32) -> Arc<PodDisruptionBudget> {
    Arc::new(PodDisruptionBudget {
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
    Pod { name: "p".into(), namespace: "ns".into(), phase: PodPhase::Running, ready, ..Default::default() }
}

fn why(check: BudgetCheck) -> String {
    match check {
        BudgetCheck::Refuses { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn budget_that_allows_nothing_closes_the_gate_and_says_why() {
    let covering = CoveringBudget { key: ObjectKey::new("ns", "b"), version: "5".into() };
    assert_eq!(check(&pod(true), &[budget("b", 1)]), BudgetCheck::Allows(Some(covering)));
    let why = why(check(&pod(true), &[budget("b", 0)]));
    assert_eq!(
        why,
        "PodDisruptionBudget \"b\" allows 0 disruptions (2 of 3 needed pods are healthy, 4 expected)"
    );
}

/// After a leader was killed in the middle of its evictions, budgets stood still for two minutes and nothing said why.
#[test]
fn a_budget_that_counts_evicted_pods_as_disrupted_says_until_when() {
    let last_disruption = "2026-01-01T00:00:07Z".parse().ok();
    let disrupted = PodDisruptionBudget { last_disruption, disrupted_pods: 12, ..(*budget("b", 0)).clone() };
    let why = why(check(&pod(true), &[disrupted.into()]));
    let words = "pods that were evicted count as disrupted until they terminate, or until 2026-01-01T00:02:07Z if their \
                 evictions were broken off: 12 now";
    assert!(why.ends_with(words), "{why}");
}

#[test]
fn unhealthy_pod_goes_by_the_policy_of_its_budget() {
    let kept = why(check(&pod(false), &[budget("b", 0)]));
    assert!(kept.contains("IfHealthyBudget"));
    let always = Arc::new(PodDisruptionBudget {
        unhealthy_policy: UnhealthyPolicy::AlwaysAllow,
        ..(*budget("b", 0)).clone()
    });
    assert!(matches!(check(&pod(false), &[always]), BudgetCheck::Allows(_)));
    let met = Arc::new(PodDisruptionBudget { current_healthy: 3, ..(*budget("b", 0)).clone() });
    assert!(matches!(check(&pod(false), &[met]), BudgetCheck::Allows(_)));
}

fn index(budgets: impl IntoIterator<Item = PodDisruptionBudget>) -> BudgetIndex {
    let mut index = BudgetIndex::default();
    budgets.into_iter().for_each(|budget| index.update(&ObjectChange::between(None, Some(budget.into()))));
    index
}

fn names(covering: &[Arc<PodDisruptionBudget>]) -> Vec<&str> {
    covering.iter().map(|budget| budget.name.as_str()).collect()
}

#[test]
fn pending_pod_passes_every_budget() {
    let pending = Pod { phase: PodPhase::Pending, ..pod(false) };
    let budgets = index([(*budget("a", 0)).clone()]);
    assert_eq!(names(&covering(&pod(false), &budgets)), ["a"]);
    assert!(covering(&pending, &budgets).is_empty());
    assert_eq!(check(&pending, &[]), BudgetCheck::Allows(None));
}

#[test]
fn of_several_budgets_the_first_two_by_name_are_enough() {
    let budgets = index(["c", "b", "a"].map(|name| (*budget(name, 1)).clone()));
    let check = check(&pod(true), &covering(&pod(true), &budgets));
    assert_eq!(check, BudgetCheck::Several([ObjectKey::new("ns", "a"), ObjectKey::new("ns", "b")]));
}

/// A selector may be as long as a megabyte, and there may be hundreds: each check of each pod compared all
/// of them.
#[test]
fn a_look_at_the_budgets_of_a_pod_costs_a_bounded_number_of_comparisons() {
    let selecting = |name: &str, operator: &str, values: usize| {
        let values: Vec<String> = (0..values).map(|value| value.to_string()).collect();
        let expression = serde_json::json!({ "key": "k", "operator": operator, "values": values });
        let selector = serde_json::json!({ "matchExpressions": [expression] });
        PodDisruptionBudget {
            selector: serde_json::from_value(selector).unwrap(),
            ..(*budget(name, 1)).clone()
        }
    };
    let long = |count| (0..count).map(move |i| selecting(&format!("a{i}"), "In", 2_000));
    let after = || [selecting("e", "NotIn", 1)];
    assert_eq!(names(&covering(&pod(true), &index(long(4).chain(after())))), ["e"]);
    assert!(
        covering(&pod(true), &index(long(5).chain(after()))).is_empty(),
        "not the last long one, nor what follows"
    );
    let others = |count| (0..count).map(move |i| selecting(&format!("{i:05}"), "Exists", 0));
    let last = || [selecting("z", "NotIn", 1)];
    assert_eq!(names(&covering(&pod(true), &index(others(4_900).chain(last())))), ["z"]);
    assert!(covering(&pod(true), &index(others(5_000).chain(last()))).is_empty());
}

#[test]
fn budget_that_is_not_observed_yet_closes_the_gate() {
    let fresh =
        Arc::new(PodDisruptionBudget { generation: 2, observed_generation: 1, ..(*budget("b", 1)).clone() });
    assert!(why(check(&pod(true), &[fresh])).contains("still being processed"));
}

#[test]
fn only_changes_that_may_help_wake_those_who_wait() {
    let (none, one) = (budget("b", 0), budget("b", 1));
    assert_eq!(released_pods(Some(&none), Some(&one)), Some(ReleasedPods::AtMost(1)));
    assert_eq!(released_pods(Some(&one), Some(&none)), None);
    assert_eq!(released_pods(None, Some(&one)), None);
}

/// A budget that no longer covers its pods woke only as many of them as a budget that allows disruptions
/// does: the others kept waiting.
#[test]
fn a_change_of_what_a_budget_keeps_is_for_all_of_its_pods() {
    let none = budget("b", 0);
    assert_eq!(released_pods(Some(&none), None), Some(ReleasedPods::Any));
    for changed in [
        PodDisruptionBudget { selector: None, ..(*none).clone() },
        PodDisruptionBudget { unhealthy_policy: UnhealthyPolicy::AlwaysAllow, ..(*none).clone() },
    ] {
        assert_eq!(released_pods(Some(&none), Some(&changed)), Some(ReleasedPods::Any), "{changed:?}");
    }
}

#[test]
fn a_budget_that_is_met_lets_pods_go_that_are_not_ready_and_as_many_others_as_it_allows() {
    let none = budget("b", 0);
    for (disruptions_allowed, current_healthy) in [(0, 3), (2, 5)] {
        let met = PodDisruptionBudget { current_healthy, disruptions_allowed, ..(*none).clone() };
        let allowed = usize::try_from(disruptions_allowed).unwrap();
        assert_eq!(released_pods(Some(&none), Some(&met)), Some(ReleasedPods::NotReadyAnd(allowed)));
    }
}

/// Every state of a budget that the check distinguishes.
fn states() -> impl Iterator<Item = PodDisruptionBudget> {
    let policies = [UnhealthyPolicy::IfHealthyBudget, UnhealthyPolicy::AlwaysAllow];
    policies.into_iter().flat_map(|unhealthy_policy| {
        (0..1 << 4).map(move |bits: i32| PodDisruptionBudget {
            unhealthy_policy,
            generation: 1,
            observed_generation: i64::from(bits & 1),
            disruptions_allowed: bits >> 1 & 1,
            current_healthy: bits >> 2 & 1,
            desired_healthy: bits >> 3,
            ..(*budget("b", 0)).clone()
        })
    })
}

/// In one update a budget went from 'needs 0' to 'met' (0/0 to 1/1) and woke no request: its pods that are
/// not ready waited for up to 15 minutes.
#[test]
fn whenever_an_update_opens_a_closed_gate_somebody_is_woken() {
    let mut opened = 0;
    for (old, new, ready) in states().flat_map(|old| {
        states().flat_map(move |new| [true, false].map(|ready| (old.clone(), new.clone(), ready)))
    }) {
        let refuses =
            |budget: &PodDisruptionBudget| check(&pod(ready), &[Arc::new(budget.clone())]).refuses();
        if refuses(&old) && !refuses(&new) {
            opened += 1;
            assert!(released_pods(Some(&old), Some(&new)).is_some(), "ready {ready}: {old:?} to {new:?}");
        }
    }
    assert_eq!(opened, 24 * 8 + 9 * 23, "of 2,048 pairs");
}

/// An unknown policy was treated as the default, under which a pod that is not ready may go as soon as the
/// budget is met.
#[test]
fn pods_that_are_not_ready_stay_under_a_policy_that_is_not_known() {
    let of = |policy: &str| {
        let spec = serde_json::json!({ "selector": {}, "unhealthyPodEvictionPolicy": policy });
        serde_json::from_value::<PodDisruptionBudget>(serde_json::json!({ "spec": spec }))
            .unwrap()
            .unhealthy_policy
    };
    assert_eq!(of("IfHealthyBudget"), UnhealthyPolicy::IfHealthyBudget);
    assert_eq!(of("AlwaysAllow"), UnhealthyPolicy::AlwaysAllow);
    let met = PodDisruptionBudget {
        unhealthy_policy: of("NeverAllow"),
        current_healthy: 3,
        ..(*budget("b", 1)).clone()
    };
    assert!(!check(&pod(true), &[Arc::new(met.clone())]).refuses());
    assert!(why(check(&pod(false), &[Arc::new(met)])).contains("does not know"));
}

#[test]
fn a_closed_budget_blocks_in_one_of_four_ways() {
    let state = |ready: bool, changed: PodDisruptionBudget| match check(&pod(ready), &[Arc::new(changed)]) {
        BudgetCheck::Refuses { state, .. } => state,
        other => panic!("{other:?}"),
    };
    let of = || (*budget("b", 0)).clone();
    assert_eq!(state(true, of()), "ShortNow");
    assert_eq!(state(true, PodDisruptionBudget { desired_healthy: 4, ..of() }), "NeverAllows");
    assert_eq!(
        state(true, PodDisruptionBudget { desired_healthy: 0, expected_pods: 0, ..of() }),
        "ShortNow",
        "it is not counted yet"
    );
    assert_eq!(state(false, of()), "KeepsUnhealthy");
    assert_eq!(state(true, PodDisruptionBudget { generation: 1, ..of() }), "NotObserved");
}

/// Pods that waited while `kubectl drain` used up the budget got an event that they are blocked.
#[test]
fn a_budget_lets_go_when_a_later_disruption_shows_whoever_caused_it() {
    let at = |second: Option<i64>| PodDisruptionBudget {
        last_disruption: second.map(|second| jiff::Timestamp::from_second(second).unwrap()),
        ..(*budget("b", 0)).clone()
    };
    for (old, new, lets) in
        [(None, Some(5), true), (Some(5), Some(6), true), (Some(5), Some(5), false), (Some(5), None, false)]
    {
        assert_eq!(has_evicted(Some(&at(old)), Some(&at(new))), lets, "{old:?} {new:?}");
    }
    assert!(!has_evicted(None, Some(&at(Some(5)))));
    let anew = PodDisruptionBudget { uid: "anew".into(), ..at(Some(6)) };
    assert!(!has_evicted(Some(&at(Some(5))), Some(&anew)));
}

/// The host is asked where only it knows; a budget that is known refuses as ever.
#[test]
fn what_a_budget_of_unknown_pods_refuses_only_the_host_says() {
    let values: Vec<_> = (0..10_000).map(|at| at.to_string()).collect();
    let huge =
        serde_json::json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": values}]});
    let unknown = Arc::new(PodDisruptionBudget {
        selector: serde_json::from_value(huge).unwrap(),
        ..(*budget("unknown", 0)).clone()
    });
    let mut index = BudgetIndex::default();
    index.update(&ObjectChange::between(None, Some(unknown.clone())));
    let predicted = |index: &BudgetIndex, pod: &Pod| check(pod, &covering(pod, index));
    assert_eq!(predicted(&index, &pod(true)), BudgetCheck::Allows(None));

    let of_app = serde_json::json!({"matchLabels": {"app": "a"}});
    let known = PodDisruptionBudget {
        selector: serde_json::from_value(of_app).unwrap(),
        ..(*budget("known", 0)).clone()
    };
    index.update(&ObjectChange::between(None, Some(known.into())));
    let labels: Arc<BTreeMap<_, _>> = Arc::new([("app".to_owned(), "a".to_owned())].into());
    let whole = Pod { labels, ..pod(true) };
    assert!(predicted(&index, &whole).refuses());
    let cut = Pod { labels_cut_from: Some("aa".into()), ..pod(true) };
    assert_eq!(predicted(&index, &cut), BudgetCheck::Allows(None));
    let cut_elsewhere = Pod { labels_cut_from: Some("b".into()), ..whole };
    assert!(predicted(&index, &cut_elsewhere).refuses());

    let other = PodDisruptionBudget { selector: Some(Default::default()), ..(*unknown).clone() };
    assert_eq!(released_pods(Some(&unknown), Some(&other)), Some(ReleasedPods::Any));
}
