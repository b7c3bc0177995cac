//! The snapshots of KEP-4212: 'Pod Selection and DrainTargets Example' and 'PodTypes and Label Selectors Progression'.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use drydock_api::node_maintenance::DrainPlanEntry;
use drydock_plan::{Maintenance, Planner};

fn a() -> Maintenance {
    let plan = [entry(Plain, 5000), entry(Plain, 15_000), entry(DaemonSet, 3000)];
    maintenance("maintenance-a", 1, &plan, &["one", "two"])
}

fn b() -> Maintenance {
    let plan = [entry(Plain, 10_000), entry(Plain, 15_000), entry(DaemonSet, 4000)];
    maintenance("maintenance-b", 1, &plan, &["one", "three"])
}

fn c() -> Maintenance {
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
fn fourth() -> (Planner, Vec<TestPod>) {
    let (mut planner, mut pods) = (Planner::default(), pods());
    for node in ["three", "one", "two"] {
        let outcome = plan(&mut planner, &[a(), b()], &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    (planner, pods)
}

#[test]
fn the_least_of_two_plans_is_targeted_on_the_shared_node() {
    let outcome = plan(&mut Planner::default(), &[a(), b()], &pods());
    assert_eq!(shown(&outcome, 0, "one"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating (limited by maintenance-a)", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Evacuating", 10_000));
}

#[test]
fn a_drained_node_waits_for_the_others_of_its_maintenance() {
    let (mut planner, mut pods) = (Planner::default(), pods());
    let outcome = plan(&mut planner, &[a(), b()], &pods);
    evict(&outcome, &mut pods, Some("three"));
    let outcome = plan(&mut planner, &[a(), b()], &pods);
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating (limited by maintenance-a)", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node one.", 10_000));
}

#[test]
fn a_drained_shared_node_waits_for_the_other_maintenance() {
    let (mut planner, mut pods) = (Planner::default(), pods());
    for node in ["three", "one"] {
        let outcome = plan(&mut planner, &[a(), b()], &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    let outcome = plan(&mut planner, &[a(), b()], &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Waiting for node two.", 5000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 5000));
    assert_eq!(shown(&outcome, 1, "one"), at("Waiting for node two (maintenance-a).", 5000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node two (maintenance-a).", 10_000));
}

#[test]
fn the_targets_go_on_once_everything_is_finished() {
    let (mut planner, pods) = fourth();
    let outcome = plan(&mut planner, &[a(), b()], &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Evacuating (limited by maintenance-b)", 10_000));
    assert_eq!(shown(&outcome, 0, "two"), at("Evacuating", 15_000));
    assert_eq!(shown(&outcome, 1, "one"), at("Evacuating", 10_000));
    assert_eq!(shown(&outcome, 1, "three"), at("Waiting for node one.", 10_000));
}

#[test]
fn a_newcomer_is_fast_forwarded_and_told_once() {
    let (mut planner, mut pods) = fourth();
    plan(&mut planner, &[a(), b()], &pods);
    pods.push(pod("four", Plain, 2000));
    let outcome = plan(&mut planner, &[a(), b(), c()], &pods);
    assert_eq!(shown(&outcome, 2, "one"), at("Evacuating (fast-forwarded by older maintenance-b)", 10_000));
    assert_eq!(shown(&outcome, 2, "four"), at("Evacuating", 2000));
    let told: Vec<_> =
        outcome.fast_forwards.iter().map(|f| (f.maintenance, f.node.as_deref(), f.older.as_str())).collect();
    assert_eq!(told, [(2, Some("one"), "maintenance-b")]);
    assert!(plan(&mut planner, &[a(), b(), c()], &pods).fast_forwards.is_empty());
}

#[test]
fn a_newcomer_holds_the_node_until_its_own_cursor_has_caught_up() {
    let (mut planner, mut pods) = fourth();
    plan(&mut planner, &[a(), b()], &pods);
    pods.push(pod("four", Plain, 2000));
    let all = [a(), b(), c()];
    for node in ["one", "two"] {
        let outcome = plan(&mut planner, &all, &pods);
        evict(&outcome, &mut pods, Some(node));
    }
    let outcome = plan(&mut planner, &all, &pods);
    assert_eq!(shown(&outcome, 0, "one"), at("Waiting for node four (maintenance-c).", 10_000));
    evict(&outcome, &mut pods, Some("four"));
    let outcome = plan(&mut planner, &all, &pods);
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
    let (mut planner, all) = (Planner::default(), [maintenance("m", 1, &plan_entries, &["five"])]);
    for (i, step) in steps.iter().enumerate() {
        let outcome = plan(&mut planner, &all, &pods);
        assert_eq!(shown(&outcome, 0, "five"), ("Evacuating".to_owned(), step.clone()), "step {i}");
        assert_eq!(outcome.targeted.iter().filter(|t| **t).count(), 1, "step {i}");
        evict(&outcome, &mut pods, None);
    }
    let outcome = plan(&mut planner, &all, &pods);
    assert_eq!(shown(&outcome, 0, "five").0, "Drained");
    assert!(outcome.maintenances[0].drained && outcome.maintenances[0].finished);
}

#[test]
fn a_restart_finds_the_cursors_again_from_the_targets() {
    let (mut planner, mut pods) = fourth();
    pods.push(pod("four", Plain, 2000));
    let mut all = [a(), b(), c()];
    let before = plan(&mut planner, &all[..2], &pods);
    record(&mut all[..2], &before);
    let before = plan(&mut planner, &all, &pods);
    record(&mut all, &before);
    let mut after = plan(&mut Planner::default(), &all, &pods);
    assert!(after.fast_forwards.is_empty());
    after.fast_forwards.clone_from(&before.fast_forwards);
    assert_eq!(after, before);
}
