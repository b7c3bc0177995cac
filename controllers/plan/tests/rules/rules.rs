//! Rules of drain targets beyond the snapshots of KEP-4212.

use crate::common::*;
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};
use drydock_plan::DrainingMaintenance;

#[test]
fn a_pod_that_appears_later_and_is_already_reached_is_targeted_too() {
    let mut all = [maintenance("m", 1, &[entry(Plain, 10), entry(Plain, 20)], &["n"])];
    plan(&mut all, &[pod("n", Plain, 20)]);
    let outcome = plan(&mut all, &[pod("n", Plain, 20), pod("n", Plain, 3)]);
    assert_eq!(outcome.targeted, [true, true]);
    assert_eq!(outcome.maintenances[0].cursor, 1);
}

#[test]
fn pods_on_other_nodes_and_of_other_types_are_not_targeted() {
    let all = [maintenance("m", 1, &[entry(Plain, 10), entry(DaemonSet, 10)], &["n"])];
    let pods = [pod("n", Plain, 1), pod("o", Plain, 1), pod("n", DaemonSet, 1), pod("n", Static, 1)];
    assert_eq!(look(&all, &pods).targeted, [true, false, false, false]);
}

#[test]
fn targets_do_not_go_back_when_a_maintenance_joins_or_leaves() {
    let fast = maintenance("fast", 1, &[entry(Plain, 100)], &["n"]);
    let slow = maintenance("slow", 2, &[entry(Plain, 10), entry(Plain, 100)], &["n", "o"]);
    let pods = [pod("n", Plain, 100), pod("n", Plain, 5), pod("o", Plain, 100), pod("o", Plain, 5)];
    let mut all = vec![fast];
    plan(&mut all, &pods);
    all.push(slow);
    let outcome = plan(&mut all, &pods);
    assert_eq!(outcome.targeted, [true, true, false, true]);
    all.remove(0);
    let outcome = plan(&mut all, &pods);
    assert_eq!(outcome.targeted, [true, true, false, true]);
    assert_eq!(outcome.maintenances[0].nodes["n"].drain_targets, [entry(Plain, 100)]);
}

#[test]
fn contradicting_plans_are_resolved_by_the_youngest_and_told() {
    let before_the_rest = |name: &str, created, first: &str| {
        maintenance(name, created, &[app(Plain, 2000, first), entry(Plain, 2000)], &["n"])
    };
    let mut all = [before_the_rest("m1", 1, "postgres"), before_the_rest("m2", 2, "redis")];
    let mut pods = vec![app_pod("n", Plain, 2000, "postgres"), app_pod("n", Plain, 2000, "redis")];
    let outcome = plan(&mut all, &pods);
    let told: Vec<_> = outcome.fast_forwards.iter().map(|f| (f.maintenance, other(f))).collect();
    assert_eq!(told, [(1, ("m1", true))]);
    assert_eq!(outcome.targeted, [true, false]);
    evict(&outcome, &mut pods, None);
    let outcome = plan(&mut all, &pods);
    assert!(outcome.fast_forwards.is_empty());
    assert_eq!(outcome.targeted, [true]);
}

#[test]
fn an_empty_selector_is_the_same_as_none() {
    let mut open = app(Plain, 10, "x");
    open.pod_selector = Some(Default::default());
    let outcome = look(&[maintenance("m", 1, &[open], &["n"])], &[pod("n", Plain, 1)]);
    assert_eq!(outcome.targeted, [true]);
    assert_eq!(outcome.maintenances[0].nodes["n"].drain_targets, [entry(Plain, 10)]);
}

#[test]
fn a_plan_that_ends_early_or_is_empty_leaves_pods_and_ends_the_planning() {
    let all = [maintenance("m", 1, &[entry(Plain, 10)], &["n"]), maintenance("e", 2, &[], &["n"])];
    let outcome = look(&all[..1], &[pod("n", Plain, 11)]);
    assert_eq!(outcome.targeted, [false]);
    assert_eq!(look(&all, &[pod("n", Plain, 1)]).targeted, [false]);
    assert!(look(&[], &[pod("n", Plain, 1)]).maintenances.is_empty());
}

fn labelled(node: &str, pod_type: PodType, priority: i32, labels: &[(&str, &str)]) -> TestPod {
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    TestPod { labels, ..pod(node, pod_type, priority) }
}

fn selected(pod_type: PodType, priority: i32, key: &str, value: &str) -> DrainPlanEntry {
    let mut entry = app(pod_type, priority, value);
    let labels = &mut entry.pod_selector.as_mut().unwrap().match_labels;
    *labels = [(key.to_owned(), value.to_owned())].into();
    entry
}

/// Whether the targets that the statuses show of its node cover a pod: all that an interceptor sees.
fn shows(all: &[DrainingMaintenance], pod: &TestPod) -> bool {
    let on_node = all.iter().filter_map(|m| m.recorded.get(&pod.node)).flatten();
    on_node.into_iter().any(|target| target.covers(pod.pod_type, pod.priority, &pod.labels))
}

/// A pod with both labels was targeted and asked, and no drain target ever covered it.
#[test]
fn a_pod_that_two_plans_reach_by_different_selectors_gets_a_target_with_both() {
    let of = |name: &str, created, key: &str| {
        let plan = [selected(DaemonSet, 1000, key, "x"), entry(DaemonSet, 1000)];
        maintenance(name, created, &plan, &["n"])
    };
    let mut all = [of("m1", 1, "app"), of("m2", 2, "tier")];
    let both = labelled("n", DaemonSet, 500, &[("app", "x"), ("tier", "x")]);
    let outcome = plan(&mut all, std::slice::from_ref(&both));
    assert_eq!(outcome.targeted, [true]);
    assert!(shows(&all, &both));
    assert!(!shows(&all, &labelled("n", DaemonSet, 500, &[("app", "x")])));
    let [target] = all[0].recorded["n"].as_slice() else { panic!("{:?}", all[0].recorded) };
    assert_eq!((target.pod_type, target.pod_priority), (DaemonSet, 1000));
    assert_eq!(target.pod_selector.as_ref().unwrap().match_expressions.len(), 2);
    assert_eq!(all[0].recorded, all[1].recorded);
    // Both go on without a selector: the joined target is covered, and gone.
    plan(&mut all, &[labelled("n", DaemonSet, 500, &[])]);
    assert_eq!(all[0].recorded["n"].iter().filter(|t| t.pod_selector.is_none()).count(), 1);
    assert_eq!(all[0].recorded["n"].len(), 3);
}

/// After a restart the position of a maintenance that another one limits was derived from the
/// targets, and was too far ahead.
#[test]
fn a_limited_maintenance_stands_where_it_stood_after_a_restart() {
    let mut all = [
        maintenance("m1", 1, &[entry(Plain, 500), entry(Plain, 5000)], &["n"]),
        maintenance("m2", 2, &[entry(Plain, 1000), entry(Plain, 5000)], &["n"]),
    ];
    let mut pods = vec![pod("n", Plain, 400), pod("n", Plain, 900), pod("n", Plain, 4000)];
    for step in 0..3 {
        let outcome = plan(&mut all, &pods);
        assert_eq!(outcome.targeted.iter().filter(|t| **t).count(), 1, "step {step}");
        assert!(outcome.targeted[0], "step {step}");
        pods.remove(0);
    }
}

/// The cursor stayed at its end when a node joined: application and static pods there were all
/// targeted at once.
#[test]
fn a_node_that_joins_is_drained_in_order() {
    let entries = [entry(Plain, 10), entry(Plain, 20), entry(Static, 20)];
    let mut all = [maintenance("m", 1, &entries, &["n"])];
    plan(&mut all, &[]);
    assert_eq!(all[0].position, Some(2));
    all[0].nodes.insert("o".to_owned());
    let mut pods = vec![pod("o", Plain, 5), pod("o", Plain, 15), pod("o", Static, 1)];
    for position in 0..3 {
        let outcome = plan(&mut all, &pods);
        assert_eq!((outcome.maintenances[0].cursor, outcome.targeted[0]), (position, true));
        assert_eq!(outcome.targeted.iter().filter(|t| **t).count(), 1);
        assert_eq!(all[0].recorded["n"].len(), 2, "the first node keeps what it shows");
        pods.remove(0);
    }
}

#[test]
fn a_maintenance_that_selects_no_node_yet_stays_at_its_first_entry() {
    let mut all = [maintenance("m", 1, &[entry(Plain, 10), entry(Plain, 20)], &[])];
    plan(&mut all, &[]);
    assert_eq!(all[0].position, Some(0));
}

/// The youngest of all that are connected was forced, here to its end, although it stood on no cycle.
#[test]
fn only_those_that_wait_for_each_other_are_forced() {
    let rest = [entry(Plain, 2000), entry(DaemonSet, 2000), entry(Static, 2000)];
    let of = |first: DrainPlanEntry| [&[first][..], &rest].concat();
    let mut all = [
        maintenance("a", 1, &of(selected(Plain, 2000, "app", "s")), &["one"]),
        maintenance("b", 2, &of(selected(Plain, 2000, "app", "t")), &["one", "two"]),
        maintenance("c", 3, &of(entry(Plain, 1000)), &["two", "three"]),
    ];
    let mut pods = vec![
        labelled("one", Plain, 2000, &[("app", "s")]),
        labelled("one", Plain, 2000, &[("app", "t")]),
        pod("two", Plain, 500),
        pod("three", DaemonSet, 500),
        pod("three", Static, 500),
    ];
    let outcome = plan(&mut all, &pods);
    let told: Vec<_> = outcome.fast_forwards.iter().map(|f| (f.maintenance, other(f))).collect();
    assert_eq!(told, [(1, ("a", true))]);
    let mut left = Vec::new();
    while !pods.is_empty() {
        let outcome = plan(&mut all, &pods);
        let first = outcome.targeted.iter().position(|t| *t).unwrap();
        left.push((pods[first].node.clone(), pods[first].pod_type));
        pods.remove(first);
    }
    let at = |node: &str, pod_type| left.iter().position(|l| *l == (node.to_owned(), pod_type)).unwrap();
    assert!(at("two", Plain) < at("three", DaemonSet) && at("three", DaemonSet) < at("three", Static));
}

/// A pod that a budget keeps elsewhere left a contradiction unresolved.
#[test]
fn a_pod_that_stays_elsewhere_holds_no_cycle_up() {
    let of = |name: &str, created, first: &str, nodes: &[&str]| {
        maintenance(name, created, &[app(Plain, 2000, first), entry(Plain, 2000)], nodes)
    };
    let mut all = [
        of("m1", 1, "postgres", &["n"]),
        of("m2", 2, "redis", &["n"]),
        maintenance("m3", 3, &[entry(Plain, 2000)], &["kept"]),
    ];
    let pods =
        [pod("kept", Plain, 1), app_pod("n", Plain, 2000, "postgres"), app_pod("n", Plain, 2000, "redis")];
    assert_eq!(plan(&mut all, &pods).targeted, [true, true, false]);
}

#[test]
fn messages_name_another_maintenance_and_call_it_older_only_if_it_is() {
    // The older one is fast-forwarded: it came to the node of the younger one later.
    let entries = [entry(Plain, 10), entry(Plain, 20)];
    let mut all =
        [maintenance("old", 1, &entries, &["other"]), maintenance("young", 2, &entries[1..], &["n"])];
    plan(&mut all, &[pod("n", Plain, 20), pod("other", Plain, 5)]);
    all[0].nodes.insert("n".to_owned());
    let pods = [pod("n", Plain, 20), pod("n", Plain, 5), pod("other", Plain, 5)];
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 0, "n").0, "Evacuating (fast-forwarded by young)");
    let told: Vec<_> = outcome.fast_forwards.iter().map(|f| (f.node.as_deref(), other(f))).collect();
    assert_eq!(told, [(Some("n"), ("young", false))]);
    // It has ended since: no maintenance is left to be named.
    let outcome = plan(&mut all[..1], &pods);
    assert_eq!(shown(&outcome, 0, "n").0, "Evacuating (fast-forwarded)");
}

#[test]
fn the_targets_of_one_that_ended_stay_while_another_was_there_before() {
    let entries = [entry(Plain, 10), entry(Plain, 20)];
    let ended = [("n".to_owned(), vec![entry(Plain, 20)])].into();
    let pods = [pod("n", Plain, 20), pod("n", Plain, 5)];
    let pods: Vec<_> = pods
        .iter()
        .map(|p| drydock_plan::CountedPod {
            node: &p.node,
            pod_type: p.pod_type,
            priority: p.priority,
            labels: (&p.labels).into(),
        })
        .collect();
    let mut all = [maintenance("m", 1, &entries, &["n"])];
    assert_eq!(drydock_plan::plan(&all, &ended, &pods).targeted, [false, true], "its nodes' last one ended");
    all[0].position = Some(0);
    all[0].recorded = [("n".to_owned(), vec![entry(Plain, 10)])].into();
    assert_eq!(drydock_plan::plan(&all, &ended, &pods).targeted, [true, true]);
}
