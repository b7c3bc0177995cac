//! Entries of a drain plan, and the pods that are left of each.

use std::collections::BTreeMap;

use drydock_api::metav1::LabelSelector;
use drydock_api::node_maintenance::{self, DrainPlanEntry};
use drydock_proto::status::v1alpha1::{PlanEntry, PodsLeft};

use super::values;

/// Returns the message of a plan entry.
pub(super) fn entry(entry: &DrainPlanEntry) -> PlanEntry {
    plan_entry(entry.pod_type, entry.pod_priority, entry.pod_selector.as_ref())
}

fn plan_entry(
    pod_type: node_maintenance::PodType,
    priority: i32,
    selector: Option<&LabelSelector>,
) -> PlanEntry {
    let label_selector = selector.map_or_else(String::new, selector_text);
    PlanEntry { pod_type: values::pod_type(pod_type).into(), priority, label_selector }
}

/// Returns the pods left on one node, from its status.
pub(super) fn left(left: &[node_maintenance::PodsLeft]) -> Vec<PodsLeft> {
    let left = left.iter().map(|left| PodsLeft { entry: Some(entry_of(left)), count: left.count });
    values::first(left, values::PODS_LEFT_MAX)
}

fn entry_of(left: &node_maintenance::PodsLeft) -> PlanEntry {
    plan_entry(left.pod_type, left.priority, left.pod_selector.as_ref())
}

/// Returns the pods left on several nodes, in the order of the plan; entries that are not in the plan come last.
pub(super) fn sums<'a>(
    plan: &[DrainPlanEntry],
    left: impl Iterator<Item = &'a node_maintenance::PodsLeft>,
) -> Vec<PodsLeft> {
    let places: BTreeMap<_, usize> =
        plan.iter().enumerate().map(|(at, planned)| (order(&entry(planned)), at)).collect();
    let mut sums = BTreeMap::new();
    for left in left {
        let entry = entry_of(left);
        let order = order(&entry);
        let place = places.get(&order).copied().unwrap_or(usize::MAX);
        let sum = sums.entry((place, order)).or_insert(PodsLeft { entry: Some(entry), count: 0 });
        sum.count = sum.count.saturating_add(left.count);
    }
    values::first(sums.into_values(), values::PODS_LEFT_MAX)
}

fn order(entry: &PlanEntry) -> (i32, i32, String) {
    (entry.pod_type, entry.priority, entry.label_selector.clone())
}

/// Formats a label selector as text, as Kubernetes does. An unknown operator, which selects nothing, is copied.
fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(|requirement| {
        let (key, values) = (&requirement.key, requirement.values.join(","));
        match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.clone(),
            "DoesNotExist" => format!("!{key}"),
            other => format!("{key} {other} ({values})"),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use drydock_api::metav1::LabelSelectorRequirement;

    use super::*;

    #[test]
    fn a_selector_is_told_in_the_form_that_kubectl_takes() {
        let requirement = |key: &str, operator: &str, values: &[&str]| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let selector = LabelSelector {
            match_labels: [("app".to_owned(), "db".to_owned())].into(),
            match_expressions: vec![
                requirement("tier", "In", &["a", "b"]),
                requirement("tier", "NotIn", &["c"]),
                requirement("x", "Exists", &[]),
                requirement("y", "DoesNotExist", &[]),
            ],
        };
        let text = selector_text(&selector);
        assert_eq!(text, "app=db,tier in (a,b),tier notin (c),x,!y");
        drydock_machinery::selector::LabelRequirements::parse(&text).unwrap();
    }

    #[test]
    fn what_is_left_is_summed_in_the_order_of_the_plan() {
        let planned = |pod_priority| DrainPlanEntry { pod_priority, ..Default::default() };
        let left = |priority, count| node_maintenance::PodsLeft { priority, count, ..Default::default() };
        let left = [left(7, 1), left(1000, 2), left(10, 3), left(1000, i32::MAX)];
        let sums = sums(&[planned(1000), planned(10)], left.iter());
        let told: Vec<_> = sums.into_iter().map(|sum| (sum.entry.unwrap().priority, sum.count)).collect();
        assert_eq!(told, [(1000, i32::MAX), (10, 3), (7, 1)]);
    }
}
