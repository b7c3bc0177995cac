//! The snapshots of KEP-4212: 'Pod Selection and DrainTargets Example' and 'PodTypes and Label Selectors Progression'.

use crate::common::*;
use drydock_api::node_maintenance::DrainPlanEntry;
use drydock_plan::DrainingMaintenance;

fn a() -> DrainingMaintenance {
    let plan = [entry(Plain, 5000), entry(Plain, 15_000), entry(DaemonSet, 3000)];
    maintenance("maintenance-a", 1, &plan, &["one", "two"])
}

fn b() -> DrainingMaintenance {
    let plan = [entry(Plain, 10_000), entry(Plain, 15_000), entry(DaemonSet, 4000)];
    maintenance("maintenance-b", 1, &plan, &["one", "three"])
}

fn c() -> DrainingMaintenance {
    maintenance("maintenance-c", 2, &[entry(Plain, 2000), entry(Plain, 15_000)], &["one", "four"])
}

fn pods() -> Vec<TestPod> {
    let nodes = ["one", "two", "three"];
    nodes.iter().flat_map(|n| [5000, 10_000, 15_000].map(|p| pod(n, Plain, p))).collect()
}

fn at(message: &str, priority: i32) -> (String, Vec<DrainPlanEntry>) {
    (message.to_owned(), vec![entry(Plain, priority)])
}

/// The example up to its fourth snapshot: nodes three, one and two have been drained in that order.
fn fourth() -> (Vec<DrainingMaintenance>, Vec<TestPod>) {
    let (mut all, mut pods) = (vec![a(), b()], pods());
    for node in ["three", "one", "two"] {
        let outcome = plan(&mut all, &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    (all, pods)
}

#[test]
fn the_least_of_two_plans_is_targeted_on_the_shared_node() {
    let outcome = plan(&mut [a(), b()], &pods());
    assert_eq!(shown(&outcome, 0, "one"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating (limited by maintenance-a)", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Evacuating", 10_000));
}

#[test]
fn a_drained_node_waits_for_the_others_of_its_maintenance() {
    let (mut all, mut pods) = ([a(), b()], pods());
    let outcome = plan(&mut all, &pods);
    evict(&outcome, &mut pods, Some("three"));
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating (limited by maintenance-a)", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node one.", 10_000));
}

#[test]
fn a_drained_shared_node_waits_for_the_other_maintenance() {
    let (mut all, mut pods) = ([a(), b()], pods());
    for node in ["three", "one"] {
        let outcome = plan(&mut all, &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Waiting for node two.", 5000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 1, "one"), at("Waiting for node two (maintenance-a).", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node two (maintenance-a).", 10_000));
}

#[test]
fn the_targets_go_on_once_everything_is_finished() {
    let (mut all, pods) = fourth();
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Evacuating (limited by maintenance-b)", 10_000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 15_000));
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating", 10_000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node one.", 10_000));
}

#[test]
fn a_newcomer_is_fast_forwarded_and_told_once() {
    let (mut all, mut pods) = fourth();
    plan(&mut all, &pods);
    pods.push(pod("four", Plain, 2000));
    all.push(c());
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 2, "one"), at("Evacuating (fast-forwarded by older maintenance-b)", 10_000));
    assert_eq!(shown(&outcome, 2, "four"), at("Evacuating", 2000));
    let told: Vec<_> =
        outcome.fast_forwards.iter().map(|f| (f.maintenance, f.node.as_deref(), other(f))).collect();
    assert_eq!(told, [(2, Some("one"), ("maintenance-b", true))]);
    assert!(plan(&mut all, &pods).fast_forwards.is_empty());
}

#[test]
fn a_newcomer_holds_the_node_until_its_own_cursor_has_caught_up() {
    let (mut all, mut pods) = fourth();
    plan(&mut all, &pods);
    pods.push(pod("four", Plain, 2000));
    all.push(c());
    for node in ["one", "two"] {
        let outcome = plan(&mut all, &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Waiting for node four (maintenance-c).", 10_000));
    evict(&outcome, &mut pods, Some("four"));
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 2, "one").1, [entry(Plain, 15_000)]);
}

#[test]
fn pod_types_and_selectors_progress_as_in_the_seed() {
    const MAX: i32 = i32::MAX;
    let plan_entries = [
        entry(Plain, 1000),
        app(Plain, 2000, "postgres"),
        entry(Plain, MAX),
        entry(DaemonSet, 1000),
        entry(DaemonSet, MAX),
        entry(Static, MAX),
    ];
    let postgres = |p| app(Plain, p, "postgres");
    let head = [entry(Plain, MAX), postgres(MAX)];
    let steps: [Vec<DrainPlanEntry>; 6] = [
        vec![entry(Plain, 1000), postgres(1000)],
        vec![entry(Plain, 1000), postgres(2000)],
        head.to_vec(),
        [&head[..], &[entry(DaemonSet, 1000)]].concat(),
        [&head[..], &[entry(DaemonSet, MAX)]].concat(),
        [&head[..], &[entry(DaemonSet, MAX), entry(Static, MAX)]].concat(),
    ];
    let mut pods = vec![
        pod("five", Plain, 0),
        app_pod("five", Plain, 2000, "postgres"),
        app_pod("five", Plain, 2000, "redis"),
        pod("five", DaemonSet, 1000),
        pod("five", DaemonSet, 1001),
        pod("five", Static, 2_000_001_000),
    ];
    let mut all = [maintenance("m", 1, &plan_entries, &["five"])];
    for (i, step) in steps.iter().enumerate() {
        let outcome = plan(&mut all, &pods);
        assert_eq!(shown(&outcome, 0, "five"), ("Evacuating".to_owned(), step.clone()), "step {i}");
        assert_eq!(outcome.targeted.iter().filter(|t| **t).count(), 1, "step {i}");
        evict(&outcome, &mut pods, None);
    }
    let outcome = plan(&mut all, &pods);
    assert_eq!(shown(&outcome, 0, "five").0, "Drained");
}
