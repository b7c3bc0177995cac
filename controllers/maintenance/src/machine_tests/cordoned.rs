//! The condition Cordoned.

use drydock_api::node_maintenance::CORDONED;

use super::*;

fn says(status: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((status.to_owned(), reason.to_owned(), message.to_owned()))
}

#[test]
fn it_follows_the_nodes_from_cordon_to_complete() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Idle", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.says("m", CORDONED), None);
    sim.stage("m", Stage::Cordon);
    sim.store_statuses();
    let wanted = says("False", "Cordoning", "2 of 2 nodes are schedulable still: a, b");
    assert_eq!(sim.says("m", CORDONED), wanted);
    sim.settle();
    let all = says("True", "AllNodesCordoned", "All 2 selected nodes are unschedulable");
    assert_eq!(sim.says("m", CORDONED), all);
    sim.stage("m", Stage::Drain);
    sim.change_node("b", |node| node.unschedulable = false);
    sim.store_statuses();
    let wanted = says("False", "Cordoning", "1 of 2 nodes is schedulable still: b");
    assert_eq!(sim.says("m", CORDONED), wanted);
    sim.settle();
    assert_eq!(sim.says("m", CORDONED), all);
    sim.stage("m", Stage::Complete);
    sim.settle();
    let (status, reason, _) = sim.says("m", CORDONED).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Uncordoned"));
}

#[test]
fn it_names_the_node_that_refuses_and_no_more_than_five() {
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
    sim.stage("straight", Stage::Complete);
    sim.settle();
    assert_eq!(sim.says("none", CORDONED).unwrap().1, "NoNodesSelected");
    assert_eq!(sim.says("straight", CORDONED), None);
}
