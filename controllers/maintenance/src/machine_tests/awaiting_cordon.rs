//! Nodes that cannot be cordoned.

use jiff::SignedDuration;

use super::*;
use crate::actions::EventSubject;

const WORDS: &str = "admission webhook \"nodes.example.com\" denied the request: hands off";
/// As they are quoted.
const QUOTED: &str = "\"admission webhook 'nodes.example.com' denied the request: hands off\"";

/// Two nodes with a pod each; the second is not cordoned.
fn half_cordoned() -> Sim {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.pod("b", "q", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim
}

fn refuse(sim: &mut Sim) {
    sim.world.refused.insert("b".to_owned(), WORDS.to_owned());
    sim.settle_but(&Task::Cordon("b".into()));
}

/// A webhook refused the update of one node: no pod of any node of the maintenance was asked to leave any
/// more, and the status said 'Evacuating'.
#[test]
fn a_node_that_cannot_be_cordoned_keeps_its_own_pods_alone_and_is_a_blocker() {
    let mut sim = half_cordoned();
    refuse(&mut sim);
    assert_eq!(sim.requested(), ["p"]);
    let told = format!("Node b cannot be made unschedulable: {QUOTED}");
    let [a, b] = &sim.status("m").node_statuses[..] else { panic!("two nodes") };
    assert_eq!((a.blockers.len(), a.blocked_pods), (0, 0));
    assert_eq!((b.blockers.len(), b.blocked_pods), (1, 1));
    assert_eq!((b.blockers[0].reason.as_str(), &bare(&b.blockers[0].message)), ("NodeUpdateRefused", &told));
    assert_eq!(b.blockers[0].pod, PodReference::default(), "it is the node that blocks");
    let message = sim.says("m", DRAINED).unwrap().2;
    let wanted = format!(
        "1 of 2 nodes is not cordoned yet. {told}. Evictions of its pods wait for that (2 pods are left)"
    );
    assert_eq!(message, wanted);
    sim.world.refused.clear();
    sim.settle();
    assert_eq!(sim.requested(), ["p", "q"]);
    assert_eq!(sim.status("m").node_statuses[1].blocked_pods, 0);
}

/// A maintenance in Cordon has no blockers, and nothing said that one of its nodes stays as it is.
#[test]
fn a_refused_cordon_is_told_once_on_the_node_and_the_maintenance_in_any_stage() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Cordon", &["a", "b"]);
    let told = |sim: &Sim| {
        let told = sim
            .events
            .iter()
            .filter(|note| note.reason == "NodeUpdateRefused" && note.severity == Severity::Warning);
        told.map(|note| (note.about.clone(), note.message.clone())).collect::<Vec<_>>()
    };
    refuse(&mut sim);
    refuse(&mut sim);
    let node = (EventSubject::Node("b".into()), format!("The node cannot be made unschedulable: {QUOTED}"));
    let maintenance =
        (EventSubject::Maintenance("m".into()), format!("Node b cannot be made unschedulable: {QUOTED}"));
    assert_eq!(told(&sim), [node, maintenance]);
    sim.world.refused.insert("b".to_owned(), "other words".to_owned());
    sim.settle_but(&Task::Cordon("b".into()));
    assert_eq!(told(&sim).len(), 4);
}

/// The finalizer stayed forever, and nothing said why.
#[test]
fn a_refused_uncordon_gets_an_event_on_the_node_and_the_maintenance_that_waits_for_it() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    refuse(&mut sim);
    let told: Vec<_> = sim.events.iter().filter(|note| note.reason == "NodeUpdateRefused").collect();
    let [node, maintenance] = told[..] else { panic!("{told:?}") };
    assert_eq!(node.message, format!("The node cannot be made schedulable again: {QUOTED}"));
    assert_eq!(maintenance.about, EventSubject::Maintenance("m".into()));
    assert!(!sim.world.maintenances[0].metadata.finalizers.is_empty());
}

#[test]
fn since_when_a_node_blocks_is_kept_over_a_restart() {
    let mut sim = half_cordoned();
    refuse(&mut sim);
    sim.memory = MachineMemory::default();
    sim.now += SignedDuration::from_mins(5);
    refuse(&mut sim);
    let since = sim.status("m").node_statuses[1].blockers[0].since_time;
    assert_eq!(since, Some(NOW.parse().unwrap()));
}

/// The write of the cordon may wait for a host that does not answer.
#[test]
fn requests_wait_for_the_first_attempt_to_cordon_every_node_for_ten_seconds() {
    let mut sim = half_cordoned();
    let held = Task::Cordon("b".into());
    sim.settle_but(&held);
    assert!(sim.requested().is_empty());
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert_eq!(decision.wake, Some(sim.now + SignedDuration::from_secs(10)));
    sim.now += SignedDuration::from_secs(10);
    sim.settle_but(&held);
    assert_eq!(sim.requested(), ["p"]);
}

#[test]
fn a_node_that_joins_is_waited_for_ten_seconds_too() {
    let mut sim = half_cordoned();
    sim.settle();
    sim.now += SignedDuration::from_mins(1);
    sim.node("c", false);
    sim.change("m", |m| {
        let term = &mut m.spec.node_selector.as_mut().unwrap().node_selector_terms[0];
        term.match_expressions[0].values.push("c".into());
    });
    sim.pod("a", "late", &json!({}));
    let held = Task::Cordon("c".into());
    sim.settle_but(&held);
    assert_eq!(sim.requested(), ["p", "q"]);
    sim.now += SignedDuration::from_secs(10);
    sim.settle_but(&held);
    assert_eq!(sim.requested(), ["late", "p", "q"]);
}

/// A rival tool made the node schedulable whenever it was cordoned, and stopped the whole maintenance.
#[test]
fn a_node_that_others_flip_keeps_its_own_pods_alone_and_is_a_blocker() {
    let mut sim = half_cordoned();
    sim.settle();
    for _ in 0..2 {
        sim.settle();
        sim.change_node("b", |n| n.unschedulable = false);
        sim.step();
    }
    sim.pod("a", "late", &json!({}));
    sim.pod("b", "too", &json!({}));
    sim.settle_but(&Task::Cordon("b".into()));
    assert_eq!(sim.requested(), ["late", "p", "q"]);
    let blocker = &sim.status("m").node_statuses[1].blockers[0];
    let told = "Node b was made schedulable by others 2 times since 2026-01-01T12:00:00Z";
    assert_eq!((blocker.reason.as_str(), bare(&blocker.message).as_str()), ("NodeUpdateRefused", told));
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[1].blocked_pods, 0);
}
