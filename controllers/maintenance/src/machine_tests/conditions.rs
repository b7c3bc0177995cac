//! Conditions of nodes, and the condition Cordoned of a maintenance.

use drydock_api::node_maintenance::CORDONED;

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
    sim.pod("a", "s", &mirror("a"));
    sim.maintenance("o", "Drain", &["a"]);
    sim.change("o", |o| o.spec.last_pod_type = PodType::Default);
    sim.settle();
    assert_eq!(draining(&sim), "n (OS upgrade), o");
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(draining(&sim), "n (OS upgrade)", "o is done here");
    assert!(told(&sim, "Drained").ends_with(": n (OS upgrade), o"), "{}", told(&sim, "Drained"));
    sim.stage("n", NodeMaintenanceStage::Complete);
    sim.stage("o", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.condition("a", "MaintenanceInProgress").unwrap().1, "Cordon");
    assert_eq!(sim.condition("a", "DrainInProgress"), None);
}

/// The conditions took the host's time from the cordons of the other nodes, which all pods wait for.
#[test]
fn conditions_come_after_the_cordons_of_all_nodes_of_a_drain() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle_but(&Task::Cordon("b".into()));
    assert_eq!(sim.condition("a", "MaintenanceInProgress"), None);
    sim.settle();
    for node in ["a", "b"] {
        assert_eq!(sim.condition(node, "MaintenanceInProgress").unwrap().1, "Drain");
    }
}

/// People power a node off because it is called drained.
#[test]
fn a_drained_node_is_called_so_no_longer_than_it_is_while_another_waits_for_its_cordon() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let is_drained = |sim: &Sim| sim.condition("a", "Drained").unwrap().0;
    assert_eq!(is_drained(&sim), "True");
    sim.maintenance("n", "Drain", &["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.settle_but(&Task::Cordon("b".into()));
    assert_eq!(is_drained(&sim), "False");
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

fn says(status: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((status.to_owned(), reason.to_owned(), message.to_owned()))
}

#[test]
fn cordoned_follows_the_nodes_from_cordon_to_complete() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Idle", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.says("m", CORDONED), None);
    sim.stage("m", NodeMaintenanceStage::Cordon);
    sim.store_statuses();
    let wanted = says("False", "Cordoning", "2 of 2 nodes are schedulable still: a, b");
    assert_eq!(sim.says("m", CORDONED), wanted);
    sim.settle();
    let all = says("True", "AllNodesCordoned", "All 2 selected nodes are unschedulable");
    assert_eq!(sim.says("m", CORDONED), all);
    sim.stage("m", NodeMaintenanceStage::Drain);
    sim.change_node("b", |node| node.unschedulable = false);
    sim.store_statuses();
    let wanted = says("False", "Cordoning", "1 of 2 nodes is schedulable still: b");
    assert_eq!(sim.says("m", CORDONED), wanted);
    sim.settle();
    assert_eq!(sim.says("m", CORDONED), all);
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    let (status, reason, _) = sim.says("m", CORDONED).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Uncordoned"));
}

#[test]
fn cordoned_names_the_node_that_refuses_and_no_more_than_five() {
    let nodes = ["a", "b", "c", "d", "e", "f"];
    let mut sim = Sim::new(&nodes);
    sim.maintenance("m", "Cordon", &nodes);
    sim.world.refused.insert("f".to_owned(), "not this one".to_owned());
    sim.store_statuses();
    let wanted = says(
        "False",
        "NodeUpdateRefused",
        "6 of 6 nodes are schedulable still: a, b, c, d, e, .... Node f cannot be made unschedulable: \"not this one\"",
    );
    assert_eq!(sim.says("m", CORDONED), wanted);
}

#[test]
fn a_maintenance_without_nodes_says_so_and_one_that_never_cordoned_says_nothing() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("none", "Cordon", &["z"]);
    sim.maintenance("straight", "Idle", &["a"]);
    sim.settle();
    sim.stage("straight", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.says("none", CORDONED).unwrap().1, "NoNodesSelected");
    assert_eq!(sim.says("straight", CORDONED), None);
}
