//! Pods that replace evicted ones and find no node.

use drydock_api::node_maintenance::EVICTED_PODS_UNSCHEDULABLE;
use jiff::SignedDuration;

use super::*;

fn owner(uid: &str) -> Value {
    json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true }])
}

fn unscheduled(sim: &mut Sim, name: &str, owner_uid: &str, made: Timestamp) {
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 node(s) were unschedulable." });
    let pod = json!({
        "metadata": { "name": name, "namespace": "ns", "uid": name, "creationTimestamp": made.to_string(),
            "ownerReferences": owner(owner_uid) },
        "status": { "phase": "Pending", "conditions": [condition] },
    });
    sim.world.unscheduled.push(Arc::new(serde_json::from_value(pod).unwrap()));
}

fn condition(sim: &Sim) -> Option<(String, String)> {
    let found = sim.status("m").conditions.iter().find(|c| c.type_ == EVICTED_PODS_UNSCHEDULABLE);
    found.map(|c| (c.status.clone(), c.message.clone()))
}

/// A drain of a node with one pod of the ReplicaSet `web`.
fn drain() -> Sim {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "web-1", &json!({ "metadata": { "ownerReferences": owner("web") } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["web-1"]);
    sim
}

#[test]
fn a_drain_whose_evicted_pods_find_no_node_says_how_many_and_why() {
    let mut sim = drain();
    sim.remove_pod("web-1");
    let now = sim.now;
    unscheduled(&mut sim, "web-2", "web", now);
    sim.settle();
    assert_eq!(condition(&sim), None, "a node may be on its way");
    sim.now += SignedDuration::from_secs(10);
    sim.settle();
    let message = "1 pod that replaces an evicted one finds no node: 1 of ReplicaSet ns/web (0/3 nodes are available: 3 node(s) \
                   were unschedulable.)";
    assert_eq!(condition(&sim), pair("True", message));
    let told: Vec<_> = sim.events.iter().filter(|n| n.reason == "PodsUnschedulable").collect();
    assert_eq!((told.len(), told[0].message.as_str()), (1, message));
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(condition(&sim), pair("True", message), "after a restart");
    sim.world.unscheduled.clear();
    sim.settle();
    assert_eq!(condition(&sim).unwrap().0, "False");
}

#[test]
fn pods_that_were_unschedulable_before_or_are_of_others_are_not_laid_to_the_drain() {
    let mut sim = drain();
    let before = sim.now - SignedDuration::from_secs(1);
    unscheduled(&mut sim, "web-0", "web", before);
    let now = sim.now;
    unscheduled(&mut sim, "other-1", "other", now);
    sim.now += SignedDuration::from_secs(60);
    sim.settle();
    assert_eq!(condition(&sim), None);
}

/// The condition stayed True forever, though the pods ran on the node that had been given back: they were no
/// longer followed.
#[test]
fn at_complete_it_says_that_nobody_follows_it() {
    let mut sim = drain();
    let now = sim.now;
    unscheduled(&mut sim, "web-2", "web", now);
    sim.now += SignedDuration::from_secs(60);
    sim.settle();
    assert_eq!(condition(&sim).unwrap().0, "True");
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    let (status, reason, message) = sim.says("m", EVICTED_PODS_UNSCHEDULABLE).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Completed"));
    assert!(message.ends_with("is no longer followed"), "{message}");
}

/// With five ReplicaSets, the message had the same sentence five times.
#[test]
fn the_words_of_the_scheduler_stand_once_for_all_controllers() {
    let mut sim = drain();
    let owners = ["web", "x1", "x2", "x3", "x4", "x5", "x6"];
    for owner_uid in &owners[1..] {
        let owned = json!({ "metadata": { "ownerReferences": owner(owner_uid) } });
        sim.pod("a", owner_uid, &owned);
    }
    sim.settle();
    let now = sim.now;
    owners.iter().for_each(|owner| unscheduled(&mut sim, &format!("new-{owner}"), owner, now));
    let mut other = (*sim.world.unscheduled[1]).clone();
    other.unschedulable = Some("no such volume".into());
    sim.world.unscheduled[1] = Arc::new(other);
    sim.now += SignedDuration::from_secs(60);
    sim.settle();
    let same = ["1 of ReplicaSet ns/web"; 4].join(" and ");
    let message = format!(
        "7 pods that replace evicted ones find no node: {same} (0/3 nodes are available: 3 node(s) were unschedulable.); 1 of \
         ReplicaSet ns/web (no such volume); and those of 2 more controllers"
    );
    assert_eq!(condition(&sim), pair("True", &message));
}

/// The scheduler counts all nodes in each attempt: for as long as pods were unschedulable, the whole status
/// was written again and again.
#[test]
fn other_words_of_the_scheduler_alone_do_not_change_the_status() {
    let mut sim = drain();
    let now = sim.now;
    unscheduled(&mut sim, "web-2", "web", now);
    sim.now += SignedDuration::from_secs(60);
    sim.settle();
    let told = condition(&sim);
    assert!(told.as_ref().unwrap().1.contains("0/3 nodes"));
    let reword = |sim: &mut Sim, words: &str| {
        for pod in &mut sim.world.unscheduled {
            let mut other = (**pod).clone();
            other.unschedulable = Some(words.into());
            *pod = Arc::new(other);
        }
    };
    reword(&mut sim, "0/5 nodes are available: 5 node(s) had too little memory.");
    assert_eq!(sim.step().len(), 0);
    unscheduled(&mut sim, "web-3", "web", now);
    reword(&mut sim, "0/5 nodes are available: 5 node(s) had too little memory.");
    sim.settle();
    let (_, message) = condition(&sim).unwrap();
    assert!(
        message.starts_with("2 pods that replace evicted ones find no node: ")
            && message.contains("0/5 nodes"),
        "{message}"
    );
    assert_ne!(told, condition(&sim));
}

/// A writer of pods can name any owner.
#[test]
fn the_name_of_an_owner_does_not_make_the_message_too_long() {
    let mut sim = drain();
    let now = sim.now;
    unscheduled(&mut sim, "web-2", "web", now);
    let mut pod = (*sim.world.unscheduled[0]).clone();
    let owner = Arc::make_mut(pod.controller.as_mut().unwrap());
    (owner.kind, owner.name) = ("K".repeat(100_000), "n".repeat(100_000));
    sim.world.unscheduled[0] = Arc::new(pod);
    sim.now += SignedDuration::from_secs(60);
    sim.settle();
    assert!(condition(&sim).unwrap().1.len() < 1000);
}

/// Each controller stayed until the drain was over, and tenants may make up as many as they like.
#[test]
fn controllers_without_pods_are_forgotten_after_an_hour_and_are_so_many_at_most() {
    let mut sim = drain();
    let now = sim.now;
    unscheduled(&mut sim, "web-2", "web", now);
    sim.pod("a", "other-1", &json!({ "metadata": { "ownerReferences": owner("other") } }));
    sim.step();
    sim.world.pods.get_mut("a").unwrap().clear();
    for minutes in [59, 2] {
        assert_eq!(sim.memory.status.evicted_controllers.len(), 2);
        sim.now += SignedDuration::from_mins(minutes);
        sim.step();
    }
    assert_eq!(sim.memory.status.evicted_controllers.len(), 1, "its pod is unschedulable still");
    sim.settle();
    assert_eq!(condition(&sim).unwrap().0, "True", "and told of");
    for pod in 0..12_000 {
        let metadata = json!({ "name": format!("p{pod}"), "namespace": "ns", "uid": format!("{pod}"),
            "ownerReferences": owner(&format!("x{pod}")) });
        let pod =
            json!({ "metadata": metadata, "spec": { "nodeName": "a" }, "status": { "phase": "Running" } });
        sim.world.pods.get_mut("a").unwrap().push(Arc::new(serde_json::from_value(pod).unwrap()));
    }
    sim.step();
    assert_eq!(sim.memory.status.evicted_controllers.len(), 12_001);
    sim.world.pods.get_mut("a").unwrap().clear();
    sim.now += SignedDuration::from_secs(1);
    sim.step();
    assert!(sim.memory.status.evicted_controllers.len() <= 10_001);
}
