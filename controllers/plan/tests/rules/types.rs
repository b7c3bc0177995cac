//! Maintenances that do not drain every pod type: pods of later types do not exist for them.

use crate::common::*;
use drydock_api::node_maintenance::{DrainPlanEntry, PodType};
use drydock_plan::DrainingMaintenance;

const MAX: i32 = i32::MAX;

/// A maintenance of these nodes with one entry for each type up to the last.
fn up_to(last: PodType, name: &str, created: i64, nodes: &[&str]) -> DrainingMaintenance {
    let types = [Plain, DaemonSet, Static].into_iter().filter(|t| *t <= last);
    let plan: Vec<DrainPlanEntry> = types.map(|t| entry(t, MAX)).collect();
    DrainingMaintenance { last_pod_type: last, ..maintenance(name, created, &plan, nodes) }
}

#[test]
fn pods_of_later_types_are_not_left_and_never_leave() {
    let mut all = [up_to(Plain, "m", 1, &["n"])];
    let outcome = plan(&mut all, &[pod("n", Plain, 1), pod("n", DaemonSet, 1), pod("n", Static, 1)]);
    assert_eq!(outcome.targeted, [true, false, false]);
    let outcome = plan(&mut all, &[pod("n", DaemonSet, 1), pod("n", Static, 1)]);
    assert_eq!(outcome.targeted, [false, false]);
    assert_eq!(shown(&outcome, 0, "n"), ("Drained".to_owned(), vec![entry(Plain, MAX)]));
    assert!(outcome.maintenances[0].nodes["n"].by_entry.is_empty());
}

/// The maintenance with only Default stays at the end of its plan. If it were asked about DaemonSet pods
/// too, it would keep them forever.
#[test]
fn another_maintenance_on_the_node_drains_them_as_if_the_first_did_not_exist() {
    for older in [1, 3] {
        let mut all = [up_to(Plain, "short", older, &["n", "o"]), up_to(Static, "long", 2, &["n"])];
        let mut pods = vec![
            pod("o", Plain, 1),
            pod("n", Plain, 1),
            pod("n", DaemonSet, 1),
            pod("n", Static, 1),
            pod("o", DaemonSet, 1),
        ];
        let outcome = plan(&mut all, &pods);
        assert_eq!(outcome.targeted, [true, true, false, false, false]);
        // One of its own pods elsewhere is stuck, and delays only the types that it drains.
        pods.remove(1);
        let outcome = plan(&mut all, &pods);
        assert_eq!(outcome.targeted, [true, true, false, false]);
        assert_eq!(shown(&outcome, 0, "n"), ("Waiting for node o.".to_owned(), vec![entry(Plain, MAX)]));
        let both = vec![entry(Plain, MAX), entry(DaemonSet, MAX)];
        assert_eq!(shown(&outcome, 1, "n"), ("Evacuating".to_owned(), both));
        pods.remove(1);
        assert_eq!(plan(&mut all, &pods).targeted, [true, true, false]);
        pods.remove(1);
        let outcome = plan(&mut all, &pods);
        assert_eq!(outcome.targeted, [true, false], "of type DaemonSet nothing leaves where only short is");
        assert_eq!(outcome.maintenances[1].nodes["n"].drain_message, "Drained");
    }
}

/// A DaemonSet that comes back as often as it is deleted keeps the long one busy forever.
#[test]
fn it_does_not_wait_for_pods_of_later_types_that_a_neighbour_drains() {
    let mut short = up_to(Plain, "short", 2, &["n", "o"]);
    short.plan.insert(0, entry(Plain, 5));
    let mut all = [up_to(Static, "long", 1, &["n"]), short];
    let mut pods = vec![pod("n", DaemonSet, 1), pod("o", Plain, 5), pod("o", Plain, 9)];
    assert_eq!(plan(&mut all, &pods).targeted, [true, true, false]);
    pods.remove(1);
    assert_eq!(plan(&mut all, &pods).targeted, [true, true]);
}

#[test]
fn what_a_node_shows_of_a_type_ends_with_the_last_maintenance_that_speaks_of_it() {
    let mut all = vec![up_to(Plain, "short", 1, &["n"]), up_to(Static, "long", 2, &["n"])];
    let pods = [pod("n", DaemonSet, 1)];
    assert_eq!(plan(&mut all, &pods).targeted, [true]);
    let long = all.pop().unwrap();
    let p = &pods[0];
    let seen = drydock_plan::CountedPod {
        node: &p.node,
        pod_type: p.pod_type,
        priority: p.priority,
        labels: (&p.labels).into(),
    };
    let outcome = drydock_plan::plan(&all, &long.recorded, &[seen]);
    assert_eq!(outcome.targeted, [false]);
    assert_eq!(outcome.maintenances[0].nodes["n"].drain_targets, [entry(Plain, MAX)]);
}
