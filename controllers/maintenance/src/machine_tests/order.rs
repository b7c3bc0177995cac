//! Pods leave in the order of the plans, whatever happens between two looks.

use super::*;

/// After a restart between the first request and the write of the status, the controller did not know what it
/// had asked for, and the order was lost.
#[test]
fn nobody_is_asked_to_leave_before_the_targets_that_say_so_are_stored() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle_but(&Task::Status("m".into()));
    assert!(sim.requested().is_empty());
    sim.settle();
    assert_eq!(sim.requested(), ["low"]);
    assert_eq!(sim.status("m").drain_plan_position, Some(0));
    sim.remove_pod("low");
    sim.settle_but(&Task::Status("m".into()));
    assert!(sim.requested().is_empty());
    sim.settle();
    assert_eq!((sim.requested(), sim.status("m").drain_plan_position), (vec!["high".to_owned()], Some(1)));
}

/// A tenant gave a pod more labels than a cache keeps: it was asked to leave in the tier of a selector that spares pods with
/// one of them.
#[test]
fn a_pod_of_which_not_all_labels_are_known_leaves_with_those_that_no_selector_names() {
    let mut sim = Sim::new(&["a"]);
    let labels: serde_json::Map<_, _> = (0..300).map(|at| (format!("a{at:03}"), json!(""))).collect();
    sim.pod("a", "cut", &json!({ "metadata": { "labels": labels } }));
    sim.pod("a", "other", &json!({}));
    let sparing = json!({ "matchExpressions": [{ "key": "keep", "operator": "DoesNotExist" }] });
    let entry = json!({ "podPriority": i32::MAX, "podType": "Default" });
    let selective = json!({ "podPriority": i32::MAX, "podType": "Default", "podSelector": sparing });
    sim.maintenance_with("m", "Drain", json!([selective, entry]), &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["other"]);
    sim.remove_pod("other");
    // Nor do the stored targets of the first tier cover it.
    sim.settle_but(&Task::Status("m".into()));
    assert!(sim.requested().is_empty());
    sim.settle();
    assert_eq!(sim.requested(), ["cut"]);
}

/// After a restart the stored targets were read as the position in the plan: a maintenance that another one
/// limits continued too far ahead.
#[test]
fn a_restart_keeps_the_order_of_a_plan_that_another_one_limits() {
    let mut sim = Sim::new(&["a"]);
    for (pod, priority) in [("p400", 400), ("p900", 900), ("p4000", 4000)] {
        sim.pod("a", pod, &json!({ "spec": { "priority": priority } }));
    }
    let entry = |priority: i32| json!({ "podPriority": priority, "podType": "Default" });
    sim.maintenance_with("m1", "Drain", json!([entry(500), entry(i32::MAX)]), &["a"]);
    sim.maintenance_with("m2", "Drain", json!([entry(1000), entry(5000), entry(i32::MAX)]), &["a"]);
    for pod in ["p400", "p900", "p4000"] {
        sim.settle();
        assert_eq!(sim.requested(), [pod]);
        sim.memory = MachineMemory::default();
        sim.remove_pod(pod);
    }
}

#[test]
fn a_node_that_joins_is_drained_in_order_although_the_first_is_done() {
    let mut sim = Sim::new(&["a", "b"]);
    let both = json!({ "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "name", "operator": "In", "values": ["a", "b"] }] }] });
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    sim.pod("b", "low", &json!({}));
    sim.pod("b", "high", &json!({ "spec": { "priority": 500 } }));
    sim.change("m", |m| m.spec.node_selector = serde_json::from_value(both).unwrap());
    for pod in ["low", "high"] {
        sim.settle();
        assert_eq!(sim.requested(), [pod]);
        sim.remove_pod(pod);
    }
}

/// The targets that a maintenance showed were removed before the one that stays had stored them.
#[test]
fn a_maintenance_that_leaves_a_node_shows_its_targets_until_the_others_do() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.maintenance("first", "Drain", &["a"]);
    sim.maintenance("second", "Drain", &["a"]);
    sim.settle();
    sim.remove_pod("low");
    let second = Task::Status("second".into());
    sim.settle_but(&second);
    assert_eq!(sim.requested(), ["high"], "the first one's status shows it");
    sim.stage("first", NodeMaintenanceStage::Complete);
    sim.settle_but(&second);
    assert!(!sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.settle();
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    assert_eq!(sim.status("second").node_statuses[0].drain_targets.last().unwrap().pod_priority, i32::MAX);
}

/// Selectors were compared as they are written: the maintenance that had ended kept its finalizer for as long
/// as the other one was kept by a budget.
#[test]
fn a_maintenance_is_released_when_another_shows_targets_that_include_its_own_however_they_are_written() {
    let labels = json!({ "app": "x", "tier": "y" });
    let narrow = json!({ "matchLabels": labels });
    let wide = json!({ "matchExpressions": [{ "key": "app", "operator": "In", "values": ["x"] }] });
    let same = json!({ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["y"] },
        { "key": "app", "operator": "In", "values": ["x"] }] });
    for other in [wide, same] {
        let mut sim = Sim::new(&["a"]);
        sim.pod("a", "stays", &json!({ "metadata": { "labels": labels } }));
        let plan = |selector: &Value| {
            json!([{ "podPriority": 1000, "podType": "Default", "podSelector": selector },
                { "podPriority": i32::MAX, "podType": "Default" }])
        };
        sim.maintenance_with("first", "Drain", plan(&narrow), &["a"]);
        sim.maintenance_with("second", "Drain", plan(&other), &["a"]);
        sim.settle();
        sim.stage("first", NodeMaintenanceStage::Complete);
        sim.settle();
        assert_eq!(sim.world.maintenances[0].metadata.finalizers, [""; 0], "{other}");
        assert_eq!(sim.requested(), ["stays"]);
    }
}

/// A new maintenance began at the targets of one that had ended before the new one came.
#[test]
fn a_maintenance_that_comes_after_another_has_ended_begins_at_its_first_entry() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("first", "Drain", &["a"]);
    sim.settle();
    sim.stage("first", NodeMaintenanceStage::Complete);
    sim.settle_but(&Task::Finalizer("first".into()));
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.now += jiff::SignedDuration::from_secs(1);
    sim.maintenance("second", "Drain", &["a"]);
    sim.settle_but(&Task::Finalizer("first".into()));
    assert_eq!(sim.requested(), ["low"]);
}

#[test]
fn a_newcomer_on_a_node_that_is_further_along_is_told() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.pod("b", "low", &json!({}));
    sim.maintenance("old", "Drain", &["a"]);
    sim.settle();
    sim.maintenance("young", "Drain", &["a", "b"]);
    sim.settle();
    let told: Vec<_> = sim.events.iter().filter(|n| n.reason == "DrainFastForwarded").collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].message.contains("node a due to the older maintenance old"), "{}", told[0].message);
    let young = &sim.status("young").node_statuses;
    assert_eq!(young[0].drain_message, "Evacuating (fast-forwarded by older old)");
    assert_eq!(young[1].drain_message, "Evacuating");
}

/// The event was gone after an hour, and with it all that said why pods left out of order.
#[test]
fn a_fast_forward_is_told_again_while_the_drain_lasts() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.pod("b", "low", &json!({}));
    sim.maintenance("old", "Drain", &["a"]);
    sim.settle();
    sim.maintenance("young", "Drain", &["a", "b"]);
    sim.settle();
    let told = |sim: &Sim| sim.events.iter().filter(|n| n.reason == "DrainFastForwarded").count();
    assert_eq!(told(&sim), 1);
    for times in [2, 3] {
        sim.now += jiff::SignedDuration::from_mins(30);
        sim.settle();
        assert_eq!(told(&sim), times);
    }
    sim.stage("young", NodeMaintenanceStage::Complete);
    sim.now += jiff::SignedDuration::from_mins(30);
    sim.settle();
    assert_eq!(told(&sim), 3);
}
