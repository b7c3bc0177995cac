//! Up to which type a node is recorded as drained: by the node's condition, and by the statuses when it has gone.

use drydock_api::node_maintenance::WORKLOADS_DRAINED;

use super::types::{agent, up_to};
use super::*;
use crate::actions::EventSubject;

fn says(sim: &Sim, name: &str, type_: &str) -> (String, String) {
    sim.says(name, type_).map(|(status, reason, _)| (status, reason)).unwrap()
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

/// A node had none but a pod of a DaemonSet, and left the cluster before the others were empty:
/// WorkloadsDrained stayed False until somebody edited the selector.
#[test]
fn nodes_that_go_one_by_one_with_their_daemon_sets_were_drained_of_workloads() {
    for restart in [false, true] {
        let mut sim = Sim::new(&["a", "b"]);
        sim.pod("a", "agent-a", &agent());
        sim.pod("b", "agent-b", &agent());
        sim.pod("b", "web", &json!({}));
        sim.maintenance("m", "Drain", &["a", "b"]);
        sim.settle();
        assert!(sim.status("m").of_node("a").unwrap().workloads_drained);
        assert!(!sim.status("m").of_node("b").unwrap().workloads_drained);
        let recall = |sim: &mut Sim| {
            if restart {
                sim.memory = MachineMemory::default();
            }
            sim.settle();
        };
        sim.remove_node("a");
        recall(&mut sim);
        recall(&mut sim);
        assert_eq!(says(&sim, "m", WORKLOADS_DRAINED), is("False", "Draining"), "{restart}");
        let message = sim.says("m", WORKLOADS_DRAINED).unwrap().2;
        assert_eq!(message, "1 pod of type Default is left on 1 of 1 node", "{restart}");
        sim.remove_pod("web");
        recall(&mut sim);
        assert_eq!(says(&sim, "m", WORKLOADS_DRAINED), is("True", "AllPodsTerminated"), "{restart}");
        assert_eq!(says(&sim, "m", DRAINED), is("False", "Draining"), "{restart}");
        sim.remove_node("b");
        recall(&mut sim);
        assert_eq!(says(&sim, "m", WORKLOADS_DRAINED), is("True", "AllPodsTerminated"), "{restart}");
    }
}

/// The read is the one that goes before the write of the node's condition.
#[test]
fn a_node_is_read_once_when_its_workloads_have_left_and_once_when_all_have() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    sim.pod("a", "web", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let reads = |sim: &mut Sim| {
        let mut reads = Vec::new();
        for _ in 0..10 {
            let actions = sim.step();
            for (task, action) in actions {
                if let Action::Conditions { confirm, .. } = &action {
                    reads.extend(*confirm);
                }
                sim.carry_out(&task, action);
            }
        }
        reads
    };
    assert_eq!(reads(&mut sim), []);
    sim.remove_pod("web");
    assert_eq!(reads(&mut sim), [PodType::Default]);
    sim.change("m", |m| m.spec.reason = "another".to_owned());
    assert_eq!(reads(&mut sim), [], "the words alone change");
    sim.remove_pod("agent-a");
    assert_eq!(reads(&mut sim), [PodType::Static]);
}

/// The condition covered pods of type Default, and was read as the record of a maintenance that drains every
/// type.
#[test]
fn a_condition_that_speaks_of_one_type_records_nothing_of_later_ones() {
    let mut sim = Sim::new(&["a", "b"]);
    // A pod is left on b, so that not all is drained and the status counts the nodes that are recorded as
    // drained.
    sim.pod("b", "web", &json!({}));
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.condition("a", "Drained").unwrap().0, "True");
    sim.memory = MachineMemory::default();
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a", "b"]);
    sim.settle_but(&Task::Conditions("a".to_owned()));
    // The read for the status of the maintenance counts, and none has been made of the node for its condition.
    sim.memory = MachineMemory::default();
    sim.change("long", |m| m.status.conditions.clear());
    let status = sim.step().remove(&Task::Status("long".to_owned()));
    let Some(Action::Status { status, .. }) = status else { panic!("{status:?}") };
    assert_eq!(status.drained_nodes, 0);
}

/// The node waits for the maintenance with the greatest type, and the other one never got its event.
#[test]
fn each_maintenance_is_told_when_its_own_pods_have_left_a_node() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    sim.pod("a", "web", &json!({}));
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a"]);
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a"]);
    sim.settle();
    let told = |sim: &mut Sim| {
        let events = std::mem::take(&mut sim.events).into_iter().filter(|note| note.reason == "NodeDrained");
        events.map(|note| (note.about, note.message)).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut sim), []);
    sim.remove_pod("web");
    sim.settle();
    let short =
        (EventSubject::Maintenance("short".into()), "All pods of type Default have left node a".to_owned());
    assert_eq!(told(&mut sim), [short]);
    sim.remove_pod("agent-a");
    sim.settle();
    let node = (EventSubject::Node("a".into()), "All pods have left the node".to_owned());
    let long = (EventSubject::Maintenance("long".into()), "All pods have left node a".to_owned());
    assert_eq!(told(&mut sim), [node, long]);
}
