//! Cordoning, uncordoning, and the end of a maintenance.

use super::*;
use crate::actions::EventSubject;

#[test]
fn idle_touches_nothing_but_its_own_status() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Idle", &["a"]);
    let actions = sim.step();
    assert_eq!(actions.keys().cloned().collect::<Vec<_>>(), [Task::Status("m".into())]);
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].pods_pending_evacuation, 1);
    assert_eq!(sim.drained("m"), None);
}

#[test]
fn cordon_makes_nodes_unschedulable_and_evicts_nothing() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, Some(CORDONED_BY_US)));
    assert_eq!(sim.cordon_of("b"), (false, None));
    assert!(sim.requested().is_empty());
    assert_eq!(sim.condition("a", "MaintenanceInProgress").unwrap().1, "Cordon");
    assert_eq!(sim.condition("a", "DrainInProgress"), None);
}

#[test]
fn a_node_that_an_admin_cordoned_stays_cordoned_afterwards() {
    let mut sim = Sim::new(&["a"]);
    sim.node("b", true);
    sim.maintenance("m", "Cordon", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.cordon_of("b"), (true, Some(CORDONED_BY_OTHERS)));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!((sim.cordon_of("a"), sim.cordon_of("b")), ((false, None), (true, None)));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    assert_eq!(sim.condition("a", "MaintenanceInProgress"), None);
}

#[test]
fn idle_straight_to_complete_uncordons_whoever_cordoned() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Idle", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.change_node("a", |n| n.unschedulable = true);
    assert!(sim.step().is_empty(), "a finished maintenance must leave the node alone");
}

/// A maintenance that was created in Complete made a node schedulable that an admin had cordoned.
#[test]
fn a_maintenance_that_is_made_in_complete_is_no_straight_completion() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Complete", &["a"]);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
}

#[test]
fn a_deletion_before_anything_was_seen_is_no_straight_completion() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Complete", &["a"]);
    sim.change("m", |m| m.metadata.deletion_timestamp = Some(NOW.parse().unwrap()));
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
}

/// A maintenance that was created in Drain and completed before the controller wrote a status was treated as one
/// that came straight from Idle, and made nodes schedulable that an admin had cordoned.
#[test]
fn a_drain_that_nobody_saw_is_no_straight_completion() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Drain", &["a"]);
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (true, None));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    let stages = &sim.status("m").stage_statuses;
    assert!(stages.iter().all(|s| s.start_timestamp.is_some()), "{stages:?}");
}

#[test]
fn a_foreign_uncordon_is_reverted_and_repeated_ones_are_told() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    for told in [2, 4, 4] {
        sim.change_node("a", |n| n.unschedulable = false);
        sim.settle();
        assert_eq!(sim.cordon_of("a"), (true, Some(CORDONED_BY_US)));
        let conflicts = sim
            .events
            .iter()
            .filter(|n| n.reason == "CordonConflict" && n.severity == Severity::Warning)
            .count();
        assert_eq!(conflicts, told);
    }
    let first = &sim.events.iter().find(|n| n.reason == "CordonConflict").unwrap();
    assert_eq!(first.about, EventSubject::Node("a".into()));
    let said = "was made schedulable by others, and is made unschedulable again, as it is under maintenance: m (stage Cordon)";
    assert!(first.message.starts_with(&format!("The node {said}")), "{}", first.message);
    let of_maintenance: Vec<_> =
        sim.events.iter().filter(|n| n.reason == "CordonConflict" && n.is_logged).collect();
    assert!(
        of_maintenance.iter().all(|n| n.about == EventSubject::Maintenance("m".into())),
        "{of_maintenance:?}"
    );
    let [first, again] = of_maintenance[..] else { panic!("{of_maintenance:?}") };
    assert!(first.message.starts_with(&format!("Node a {said}")), "{}", first.message);
    assert!(again.message.starts_with("Node a was made schedulable by others 2 times"), "{}", again.message);
    let conflicts = sim.events.iter().filter(|n| n.reason == "CordonConflict");
    for note in conflicts {
        assert!(note.message.contains("under maintenance: m (stage Cordon)"), "{}", note.message);
    }
}

/// Settles, and returns the message of the event with the finalizer.
fn ended(sim: &mut Sim) -> String {
    for _ in 0..20 {
        for (task, action) in sim.step() {
            let told =
                if let Action::Finalizer { message, .. } = &action { message.clone() } else { String::new() };
            sim.carry_out(&task, action);
            if !told.is_empty() {
                return told;
            }
        }
    }
    panic!("no maintenance ends");
}

#[test]
fn the_end_of_a_maintenance_is_told_with_the_nodes_that_others_hold() {
    let nodes = ["a", "b", "c", "d", "e"];
    let mut sim = Sim::new(&nodes);
    sim.maintenance("m", "Cordon", &nodes);
    sim.maintenance("n", "Cordon", &nodes[..4]);
    sim.maintenance("o", "Cordon", &["b"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    let wanted = "The maintenance has ended; 4 nodes stay cordoned: a (for NodeMaintenance n), b (for NodeMaintenances n, o), c \
                  (for NodeMaintenance n), ...";
    assert_eq!(ended(&mut sim), wanted);
    sim.stage("n", NodeMaintenanceStage::Complete);
    sim.stage("o", NodeMaintenanceStage::Complete);
    assert_eq!(ended(&mut sim), "The maintenance has released its nodes");
}

/// The event said `has released its nodes`.
#[test]
fn another_maintenance_keeps_the_node_cordoned() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Cordon", &["a"]);
    sim.maintenance("n", "Cordon", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    assert_eq!(ended(&mut sim), "The maintenance has ended; node a stays cordoned for NodeMaintenance n");
    assert_eq!(sim.cordon_of("a"), (true, Some(CORDONED_BY_US)));
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.stage("n", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
}

#[test]
fn nodes_that_leave_the_selection_are_released() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    sim.change("m", |m| m.spec.node_selector.as_mut().unwrap().node_selector_terms.clear());
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
    assert!(sim.requested().is_empty());
    assert_eq!(sim.drained("m"), pair("False", "NoNodesSelected"));
}

/// A kubelet's heartbeat between the flip and the cordon that follows counted as another flip.
#[test]
fn other_writes_of_a_node_that_was_flipped_are_no_flips() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    sim.change_node("a", |n| n.unschedulable = false);
    for heartbeat in 0..5 {
        sim.change_node("a", |n| drop(n.labels.insert("beat".into(), heartbeat.to_string())));
        sim.settle_but(&Task::Cordon("a".into()));
    }
    sim.settle();
    let told = sim.events.iter().filter(|n| n.reason == "CordonConflict").count();
    assert_eq!(told, 2, "on the node and the maintenance: {:?}", sim.events);
    sim.events.clear();
    sim.change_node("a", |n| n.unschedulable = false);
    sim.change_node("a", |n| n.unschedulable = true);
    sim.change_node("a", |n| n.unschedulable = false);
    sim.settle();
    let told = sim.events.iter().find(|n| n.reason == "CordonConflict").unwrap();
    assert!(told.message.contains("3 times"), "{}", told.message);
}
