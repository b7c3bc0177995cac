//! Rules of design/controllers.md, 'Drain targets', beyond the seed's snapshots.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::*;
use drydock_plan::Planner;

#[test]
fn a_pod_that_appears_later_and_is_already_reached_is_targeted_too() {
    let all = [maintenance("m", 1, &[entry(Plain, 10), entry(Plain, 20)], &["n"])];
    let mut planner = Planner::default();
    plan(&mut planner, &all, &[pod("n", Plain, 20)]);
    let outcome = plan(&mut planner, &all, &[pod("n", Plain, 20), pod("n", Plain, 3)]);
    assert_eq!(outcome.targeted, [true, true]);
    assert_eq!(outcome.maintenances[0].cursor, 1);
}

#[test]
fn pods_on_other_nodes_and_of_other_types_are_not_targeted() {
    let all = [maintenance("m", 1, &[entry(Plain, 10), entry(DaemonSet, 10)], &["n"])];
    let pods = [pod("n", Plain, 1), pod("o", Plain, 1), pod("n", DaemonSet, 1), pod("n", Static, 1)];
    assert_eq!(plan(&mut Planner::default(), &all, &pods).targeted, [true, false, false, false]);
}

#[test]
fn targets_do_not_go_back_when_a_maintenance_joins_or_leaves() {
    let fast = maintenance("fast", 1, &[entry(Plain, 100)], &["n"]);
    let slow = maintenance("slow", 2, &[entry(Plain, 10), entry(Plain, 100)], &["n", "o"]);
    let pods = [pod("n", Plain, 100), pod("n", Plain, 5), pod("o", Plain, 100), pod("o", Plain, 5)];
    let mut planner = Planner::default();
    plan(&mut planner, std::slice::from_ref(&fast), &pods);
    let outcome = plan(&mut planner, &[fast.clone(), slow.clone()], &pods);
    assert_eq!(outcome.targeted, [true, true, false, true]);
    let outcome = plan(&mut planner, &[slow], &pods);
    assert_eq!(outcome.targeted, [true, true, false, true]);
    assert_eq!(outcome.maintenances[0].nodes["n"].drain_targets, [entry(Plain, 100)]);
}

#[test]
fn contradicting_plans_are_resolved_by_the_youngest_and_told() {
    let before_the_rest = |name: &str, created, first: &str| {
        maintenance(name, created, &[app(Plain, 2000, first), entry(Plain, 2000)], &["n"])
    };
    let all = [before_the_rest("m1", 1, "postgres"), before_the_rest("m2", 2, "redis")];
    let mut pods = vec![app_pod("n", Plain, 2000, "postgres"), app_pod("n", Plain, 2000, "redis")];
    let mut planner = Planner::default();
    let outcome = plan(&mut planner, &all, &pods);
    let told: Vec<_> = outcome.fast_forwards.iter().map(|f| (f.maintenance, f.older.as_str())).collect();
    assert_eq!(told, [(1, "m1")]);
    assert_eq!(outcome.targeted, [true, false]);
    evict(&outcome, &mut pods, None);
    let outcome = plan(&mut planner, &all, &pods);
    assert!(outcome.fast_forwards.is_empty());
    assert_eq!(outcome.targeted, [true]);
}

#[test]
fn a_node_that_joins_starts_at_the_current_target() {
    let both = [entry(Plain, 10), entry(Plain, 20)];
    let mut planner = Planner::default();
    plan(&mut planner, &[maintenance("m", 1, &both, &["n"])], &[pod("n", Plain, 20)]);
    let pods = [pod("n", Plain, 20), pod("o", Plain, 20), pod("o", Plain, 1)];
    let outcome = plan(&mut planner, &[maintenance("m", 1, &both, &["n", "o"])], &pods);
    assert_eq!(outcome.targeted, [true; 3]);
}

#[test]
fn an_empty_selector_is_the_same_as_none() {
    let mut open = app(Plain, 10, "x");
    open.pod_selector = Some(Default::default());
    let outcome =
        plan(&mut Planner::default(), &[maintenance("m", 1, &[open], &["n"])], &[pod("n", Plain, 1)]);
    assert_eq!(outcome.targeted, [true]);
    assert_eq!(outcome.maintenances[0].nodes["n"].drain_targets, [entry(Plain, 10)]);
}

#[test]
fn a_plan_that_ends_early_or_is_empty_leaves_pods_and_ends_the_planning() {
    let all = [maintenance("m", 1, &[entry(Plain, 10)], &["n"]), maintenance("e", 2, &[], &["n"])];
    let outcome = plan(&mut Planner::default(), &all[..1], &[pod("n", Plain, 11)]);
    assert_eq!(outcome.targeted, [false]);
    assert!(!outcome.maintenances[0].drained);
    assert_eq!(plan(&mut Planner::default(), &all, &[pod("n", Plain, 1)]).targeted, [false]);
    assert!(plan(&mut Planner::default(), &[], &[pod("n", Plain, 1)]).maintenances.is_empty());
}

#[test]
fn a_maintenance_without_nodes_is_drained() {
    let outcome = plan(&mut Planner::default(), &[maintenance("m", 1, &[entry(Plain, 10)], &[])], &[]);
    assert!(outcome.maintenances[0].drained && outcome.maintenances[0].nodes.is_empty());
}
