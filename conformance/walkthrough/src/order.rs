//! Judges whether the plan's order was kept: pods of a tier may be asked to leave only when every pod of earlier tiers, on
//! all nodes of the maintenance, is gone.

use drydock_api::node_maintenance::{DrainPlanEntry, PodType};
use drydock_api::text::counted;
use drydock_testkit::finding::Finding;
use jiff::Timestamp;

use super::history::{Departure, Departures};

/// The pods of one entry of the plan.
struct ObservedTier<'a> {
    name: String,
    pods: Vec<&'a Departure>,
}

/// Judges departures from the maintained nodes by the plan, which has no selectors.
pub fn judge(plan: &[DrainPlanEntry], nodes: &[String], departures: &Departures) -> Vec<Finding> {
    let left: Vec<_> = departures.values().filter(|d| nodes.contains(&d.node)).collect();
    let tiers: Vec<_> = tiers(plan, &left).into_iter().filter(|tier| !tier.pods.is_empty()).collect();
    let mut findings = vec![several(&tiers), covered(plan, &left)];
    findings.extend(tiers.windows(2).filter_map(|pair| match pair {
        [before, after] => Some(follows(before, after)),
        _ => None,
    }));
    findings
}

/// With fewer than two tiers there is no order to judge.
fn several(tiers: &[ObservedTier<'_>]) -> Finding {
    let pods = |tier: &ObservedTier<'_>| counted(tier.pods.len() as u64, "pod", "pods");
    let names: Vec<_> = tiers.iter().map(|tier| format!("{} ({})", tier.name, pods(tier))).collect();
    let all = counted(tiers.len() as u64, "tier", "tiers");
    Finding::new(tiers.len() > 1, format!("{all} had pods: {}", names.join(", ")))
}

fn covered(plan: &[DrainPlanEntry], left: &[&Departure]) -> Finding {
    let outside: Vec<_> = left.iter().filter(|d| entry_of(plan, d).is_none()).map(|d| &d.pod).collect();
    let good = "each pod that left has an entry in the plan";
    Finding::of_nothing(&outside, good, "pods left without an entry in the plan")
}

fn tiers<'a>(plan: &[DrainPlanEntry], left: &[&'a Departure]) -> Vec<ObservedTier<'a>> {
    let of = |i| left.iter().copied().filter(|d| entry_of(plan, d) == Some(i)).collect();
    plan.iter().enumerate().map(|(i, entry)| ObservedTier { name: name(entry), pods: of(i) }).collect()
}

/// The first entry of the pod's type that reaches up to its priority.
fn entry_of(plan: &[DrainPlanEntry], pod: &Departure) -> Option<usize> {
    plan.iter().position(|entry| entry.pod_type == pod.kind && pod.priority <= entry.pod_priority)
}

fn name(entry: &DrainPlanEntry) -> String {
    match entry.pod_type {
        PodType::Default => format!("≤ {}", entry.pod_priority),
        other => format!("{} ≤ {}", other.as_str(), entry.pod_priority),
    }
}

/// Compares the last end of a tier with the first request of the next. The end is when the host received the
/// deletion, which is before it carried it out: so a request before that is too early by any clock.
fn follows(before: &ObservedTier<'_>, after: &ObservedTier<'_>) -> Finding {
    let Some(first) = after.pods.iter().filter_map(|pod| Some((pod.asked?, pod))).min_by_key(|(at, _)| *at)
    else {
        return Finding::new(false, format!("nobody asked for the pods of tier {}", after.name));
    };
    // A pod that was bound only after the next tier had begun could not hold it up.
    let present = before.pods.iter().filter(|pod| pod.bound.is_none_or(|bound| bound < first.0));
    let Some((end, last)) = present.filter_map(|pod| Some((pod.gone?, pod))).max_by_key(|(at, _)| *at) else {
        return Finding::new(
            true,
            format!("tier {} began: no end of a pod of tier {} was logged", after.name, before.name),
        );
    };
    if first.0 < end {
        let early = milliseconds(first.0, end);
        let (name, first, last) = (&after.name, &first.1.pod, &last.pod);
        let what =
            format!("tier {name} began too early: {first} was asked {early} ms before {last} was gone");
        return Finding::new(false, what);
    }
    let pause = milliseconds(end, first.0);
    let what = format!("tier {} began {pause} ms after the end of tier {}", after.name, before.name);
    Finding::new(true, what)
}

fn milliseconds(from: Timestamp, to: Timestamp) -> i128 {
    to.duration_since(from).as_millis()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    fn pod(name: &str, kind: PodType, priority: i32, asked: i64, gone: i64) -> (String, Departure) {
        let departure = Departure {
            pod: name.to_owned(),
            app: String::new(),
            node: "n".into(),
            kind,
            priority,
            bound: at(0),
            asked: at(asked),
            gone: at(gone),
            evicted: 1,
            refused: 0,
            deleted_by: BTreeSet::new(),
        };
        (name.to_owned(), departure)
    }

    fn plan() -> Vec<DrainPlanEntry> {
        let entry = |pod_type, pod_priority| DrainPlanEntry { pod_selector: None, pod_priority, pod_type };
        vec![entry(PodType::Default, 1000), entry(PodType::Default, 2000), entry(PodType::DaemonSet, 1000)]
    }

    fn judged(departures: impl IntoIterator<Item = (String, Departure)>) -> (bool, String) {
        let findings = judge(&plan(), &["n".into()], &departures.into_iter().collect());
        let summary: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
        (findings.iter().all(|finding| finding.good), summary.join("\n"))
    }

    #[test]
    fn tiers_that_wait_for_each_other_are_good_and_the_pause_is_reported() {
        let (good, summary) = judged([
            pod("a", PodType::Default, 0, 1, 5),
            pod("b", PodType::Default, 1001, 6, 9),
            pod("c", PodType::DaemonSet, 0, 11, 12),
        ]);
        assert!(good, "{summary}");
        assert!(summary.contains("tier ≤ 2000 began 1000 ms after the end of tier ≤ 1000"), "{summary}");
        let last = "tier DaemonSet ≤ 1000 began 2000 ms after the end of tier ≤ 2000";
        assert!(summary.contains(last), "{summary}");
    }

    #[test]
    fn an_injected_pod_that_is_asked_before_the_tier_below_is_gone_is_a_violation() {
        let (good, summary) = judged([
            pod("a", PodType::Default, 0, 1, 5),
            pod("late", PodType::Default, 0, 1, 8),
            pod("b", PodType::Default, 1001, 6, 9),
        ]);
        assert!(!good && summary.contains("b was asked 2000 ms before late was gone"), "{summary}");
    }

    #[test]
    fn a_daemonset_pod_of_low_priority_still_leaves_after_all_others() {
        let (good, summary) =
            judged([pod("a", PodType::Default, 2000, 1, 5), pod("c", PodType::DaemonSet, 0, 4, 6)]);
        assert!(!good && summary.contains("c was asked 1000 ms before a was gone"), "{summary}");
    }

    #[test]
    fn a_pod_that_came_when_the_next_tier_had_begun_holds_nobody_up() {
        let mut newcomer = pod("new", PodType::Default, 0, 7, 10);
        newcomer.1.bound = at(7);
        let (good, summary) =
            judged([pod("a", PodType::Default, 0, 1, 5), pod("b", PodType::Default, 1001, 6, 9), newcomer]);
        assert!(good, "{summary}");
    }

    #[test]
    fn pods_of_other_nodes_and_a_single_tier_prove_nothing() {
        let mut elsewhere = pod("x", PodType::Default, 1001, 1, 2);
        elsewhere.1.node = "other".into();
        let (good, summary) = judged([pod("a", PodType::Default, 0, 1, 5), elsewhere]);
        assert!(!good && summary.contains("1 tier had pods: ≤ 1000 (1 pod)"), "{summary}");
    }
}
