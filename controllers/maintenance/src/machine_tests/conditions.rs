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
    let told = |sim: &Sim, type_| sim.condition("a", type_).unwrap().2;
    let draining = |sim: &Sim| told(sim, "DrainInProgress").rsplit_once(": ").unwrap().1.to_owned();
    assert_eq!(draining(&sim), "n (OS upgrade)", "m does not drain");
    sim.pod("a", "s", &json!({ "metadata": { "annotations": { "kubernetes.io/config.mirror": "x" } } }));
    sim.maintenance("o", "Drain", &["a"]);
    sim.change("o", |o| o.spec.last_pod_type = PodType::Default);
    sim.settle();
    assert_eq!(draining(&sim), "n (OS upgrade), o");
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(draining(&sim), "n (OS upgrade)", "o is done here");
    assert!(told(&sim, "Drained").ends_with(": n (OS upgrade), o"), "{}", told(&sim, "Drained"));
    sim.stage("n", Stage::Complete);
    sim.stage("o", Stage::Complete);
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
