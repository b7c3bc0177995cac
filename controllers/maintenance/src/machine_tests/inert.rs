//! Pods that name a DaemonSet which is not alive, or have the mark of a mirror pod alone: they run as any workload, and no
//! controller looks after them.

use super::types::up_to;
use super::*;

fn drained_of_workloads(sim: &Sim) -> String {
    sim.drained("m").unwrap().0
}

/// The node was said to be drained, and the pod ran on.
#[test]
fn a_pod_whose_daemon_set_is_gone_is_a_workload() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "inert", &of_daemon_set("held"));
    sim.pod("a", "agent", &of_daemon_set("agent"));
    sim.daemon_set_owner("inert", DaemonSetOwner::Gone);
    up_to(&mut sim, PodType::Default, "m", "Drain", &["a"]);
    sim.settle();
    assert_eq!((sim.requested(), drained_of_workloads(&sim)), (vec!["inert".into()], "False".into()));
    let (is_lost, _, message) = sim.says("m", "PodsWillBeLost").unwrap();
    assert!(is_lost == "True" && message.contains("ns/inert"), "{message}");
    sim.remove_pod("inert");
    sim.settle();
    assert_eq!(drained_of_workloads(&sim), "True");
}

#[test]
fn a_pod_with_the_annotation_of_a_mirror_pod_alone_is_a_workload() {
    let mut of_other = mirror("b");
    let mut alone = mirror("a");
    alone["metadata"]["ownerReferences"] = json!([]);
    of_other["metadata"]["labels"] = json!({ "app": "web" });
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "static", &mirror("a"));
    sim.pod("a", "of-another-node", &of_other);
    sim.pod("a", "alone", &alone);
    up_to(&mut sim, PodType::Default, "m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["alone", "of-another-node"]);
    ["alone", "of-another-node"].iter().for_each(|pod| sim.remove_pod(pod));
    sim.settle();
    assert_eq!(drained_of_workloads(&sim), "True");
}

/// Evicted as a workload it would be a DaemonSet's pod that leaves in the wrong tier; left alone as one of a DaemonSet it would
/// be a workload on a node that is said to be drained.
#[test]
fn a_pod_of_which_it_is_not_known_whether_its_daemon_set_exists_waits_and_is_waited_for() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "new", &of_daemon_set("new"));
    sim.daemon_set_owner("new", DaemonSetOwner::Undecided);
    up_to(&mut sim, PodType::Default, "m", "Drain", &["a"]);
    sim.settle();
    assert_eq!((sim.requested(), drained_of_workloads(&sim)), (vec![], "False".into()));
    sim.now += jiff::SignedDuration::from_mins(5);
    sim.settle();
    let blocker = sim.status("m").of_node("a").unwrap().blockers[0].clone();
    assert!(blocker.reason == "Other" && blocker.message.contains("DaemonSet"), "{}", blocker.message);
    sim.daemon_set_owner("new", DaemonSetOwner::Alive);
    sim.settle();
    assert_eq!((sim.requested(), drained_of_workloads(&sim)), (vec![], "True".into()));
}
