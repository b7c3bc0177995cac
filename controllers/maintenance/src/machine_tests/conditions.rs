//! Conditions of nodes.

use super::*;

#[test]
fn the_furthest_maintenance_decides_on_node_conditions_and_all_are_named() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Cordon", &["a"]);
    sim.maintenance("n", "Drain", &["a"]);
    sim.change("n", |n| n.spec.reason = "OS upgrade".to_owned());
    sim.settle();
    let wanted = Some(("True".to_owned(), "Drain".to_owned(), "m, n (OS upgrade)".to_owned()));
    assert_eq!(sim.condition("a", "MaintenanceInProgress"), wanted);
    sim.stage("n", Stage::Complete);
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenanceInProgress").unwrap().1, "Cordon");
    assert_eq!(sim.condition("a", "DrainInProgress"), None);
}

#[test]
fn planned_maintenances_are_advertised_only_if_asked_for() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Idle", &["a"]);
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned"), None);
    sim.config.advertise_planned = true;
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned").unwrap().1, "Idle");
    sim.world.maintenances.clear();
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenancePlanned"), None);
}

#[test]
fn a_foreign_drained_condition_is_left_alone() {
    let mut sim = Sim::new(&["a"]);
    let foreign = drydock_runtime::cache::NodeCondition {
        type_: "Drained".into(),
        status: "True".into(),
        ..Default::default()
    };
    sim.change_node("a", |n| n.conditions.push(foreign));
    assert!(sim.step().is_empty());
}
