//! Static pods that no agent on their node stops.

use jiff::SignedDuration;

use crate::actions::EventSubject;

use super::*;

#[test]
fn a_static_pod_without_an_agent_is_a_blocker() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "s", &mirror("a"));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let passed = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "processedInterceptors": ["kubelet.k8s.io"],
        "interceptors": [{ "name": "kubelet.k8s.io", "message": "" },
            { "name": "imperative-eviction.k8s.io", "message": "" }] });
    sim.request("s", |r| r.status = serde_json::from_value(passed).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blockers[0].reason, "NoNodeAgent");
    let told = |sim: &Sim| {
        let owner = EventSubject::Eviction("ns".into(), "uid-s".into());
        let to_owner =
            sim.events.iter().filter(|note| note.about == owner && note.reason == "EvictionBlocked");
        to_owner.map(|note| note.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(told(&sim), ["No node agent on a responds to the eviction of static pods"]);
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(told(&sim).len(), 1, "not again by another leader");
}

/// The status contains ten of the pods, and each leader published the events for the owners of the others
/// again.
#[test]
fn owners_of_static_pods_without_an_agent_are_told_once_also_by_a_new_leader() {
    let mut sim = Sim::new(&["a"]);
    let names: Vec<String> = (0..12).map(|i| format!("s{i:02}")).collect();
    for name in &names {
        sim.pod("a", name, &mirror("a"));
    }
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    for name in &names {
        let turn = json!({ "activeInterceptors": ["kubelet.k8s.io"], "activationTime": NOW,
            "interceptors": [{ "name": "kubelet.k8s.io", "message": "" }] });
        sim.request(name, |r| r.status = serde_json::from_value(turn).unwrap());
    }
    sim.settle();
    let told =
        |sim: &Sim| sim.events.iter().filter(|note| matches!(note.about, EventSubject::Eviction(..))).count();
    assert_eq!(told(&sim), 0);
    sim.now += SignedDuration::from_secs(10);
    sim.settle();
    assert_eq!(told(&sim), 12);
    sim.now += SignedDuration::from_secs(60);
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(told(&sim), 12, "the new leader knows it from the requests");
}

/// The agent had answered, and an event told the pod's owner that it is missing.
#[test]
fn an_agent_that_declines_its_turn_is_there() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "s", &mirror("a"));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let declined = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": NOW,
        "processedInterceptors": ["kubelet.k8s.io"],
        "interceptors": [{ "name": "kubelet.k8s.io", "message": "not mine", "completionTime": NOW },
            { "name": "imperative-eviction.k8s.io", "message": "" }] });
    sim.request("s", |r| r.status = serde_json::from_value(declined).unwrap());
    sim.settle();
    assert_eq!(sim.status("m").node_statuses[0].blockers, []);
    assert!(!sim.events.iter().any(|note| note.reason == "EvictionBlocked"), "{:?}", sim.events);
}
