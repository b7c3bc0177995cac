//! The events about a maintenance as it goes on.

use jiff::SignedDuration;

use super::*;

/// The events about the maintenance, without those about lost pods and about nodes that are refused or
/// uncordoned.
fn told(sim: &Sim) -> Vec<(&str, &str)> {
    let about = crate::actions::EventSubject::Maintenance("m".into());
    let is_step = |note: &&EventDraft| {
        !["PodsWillBeLost", "NodeUpdateRefused", "CordonConflict"].contains(&note.reason)
    };
    let of_maintenance = sim.events.iter().filter(|note| note.about == about).filter(is_step);
    of_maintenance.map(|note| (note.reason, note.message.as_str())).collect()
}

fn reasons(sim: &Sim) -> Vec<&str> {
    told(sim).into_iter().map(|(reason, _)| reason).collect()
}

#[test]
fn each_step_is_told_once_and_in_order_also_by_a_new_manager() {
    let mut sim = Sim::new(&["a", "b"]);
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": true });
    sim.pod("a", "p", &json!({ "metadata": { "ownerReferences": [owner] } }));
    sim.maintenance("m", "Cordon", &["a", "b"]);
    sim.settle();
    assert_eq!(told(&sim), [("Cordoned", "All 2 selected nodes are unschedulable")]);
    sim.stage("m", NodeMaintenanceStage::Drain);
    sim.settle();
    sim.memory = MachineMemory::default();
    sim.change_node("a", |node| node.unschedulable = false);
    sim.settle();
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted", "NodeDrained", "NodeDrained"]);
    assert_eq!(told(&sim)[1].1, "1 pod on 2 nodes is asked to leave");
}

#[test]
fn a_drain_starts_when_its_nodes_are_cordoned() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted", "NodeDrained"]);
    let drained = sim.events.iter().filter(|note| note.reason == "NodeDrained");
    assert_eq!(drained.map(|note| note.is_logged).collect::<Vec<_>>(), [false, true], "one line of the log");
}

/// A DaemonSet put its pod back whenever it was deleted, and each time an event said that the node is
/// drained.
#[test]
fn a_node_to_which_pods_are_put_back_gets_an_event_when_none_has_come_for_a_while() {
    let mut sim = Sim::new(&["a"]);
    let of_set = |sim: &Sim| {
        json!({ "metadata": { "creationTimestamp": sim.now.to_string(), "ownerReferences": [
            { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "ds", "controller": true }] } })
    };
    let pod = of_set(&sim);
    sim.pod("a", "d0", &pod);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let all = |sim: &Sim| sim.events.iter().filter(|note| note.reason == "NodeDrained").count();
    for round in 1..4 {
        sim.now += SignedDuration::from_secs(5);
        let pod = of_set(&sim);
        sim.remove_pod(&format!("d{}", round - 1));
        if round > 1 {
            sim.settle();
        }
        sim.pod("a", &format!("d{round}"), &pod);
        sim.settle();
        if round == 2 {
            sim.memory = MachineMemory::default();
        }
    }
    assert_eq!(all(&sim), 0, "{:?}", sim.events);
    assert!(sim.events.iter().all(|note| note.reason != "WorkloadReturns"), "the interceptor tells of it");
    sim.remove_pod("d3");
    sim.settle();
    sim.now += SignedDuration::from_secs(9);
    sim.settle();
    assert_eq!(all(&sim), 0);
    sim.now += SignedDuration::from_secs(1);
    sim.settle();
    sim.now += SignedDuration::from_secs(100);
    sim.settle();
    assert_eq!(reasons(&sim).last(), Some(&"NodeDrained"));
    assert_eq!(all(&sim), 2, "of the maintenance, and of the node: {:?}", sim.events);
}

#[test]
fn a_drained_node_gets_no_second_event_when_another_maintenance_of_it_goes_or_the_leader_changes() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.pod("a", "s", &mirror("a"));
    sim.maintenance("m", "Drain", &["a"]);
    sim.maintenance("other", "Drain", &["a"]);
    sim.change("m", |m| m.spec.last_pod_type = PodType::Default);
    sim.settle();
    let drained = |sim: &Sim| sim.events.iter().filter(|note| note.reason == "NodeDrained").count();
    assert_eq!(drained(&sim), 0);
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(
        (drained(&sim), reasons(&sim).last()),
        (1, Some(&"NodeDrained")),
        "the other one has a pod left"
    );
    sim.world.maintenances.retain(|m| m.metadata.name != "other");
    sim.settle();
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(reasons(&sim).iter().filter(|reason| **reason == "NodeDrained").count(), 1);
    assert_eq!(drained(&sim), 1, "{:?}", sim.events);
}

/// An eviction that imperative eviction reports as blocked, and whether the pod's owner has had an event
/// about it.
fn blocked_by(sim: &mut Sim, pod: &str, reason: &str, name: &str, is_told: bool) {
    let at = sim.now.to_string();
    let blocked = json!({ "reason": reason, "name": name, "state": "" });
    let told = if is_told { blocked.clone() } else { Value::Null };
    let status = json!({ "activeInterceptors": ["imperative-eviction.k8s.io"], "activationTime": at, "interceptors": [
        { "name": "imperative-eviction.k8s.io", "startTime": at, "heartbeatTime": at, "message": format!("{name} refuses"),
          "blocked": blocked, "lastBlocked": told }] });
    let key = sim.world.requests.keys().find(|(_, uid)| *uid == format!("uid-{pod}")).unwrap().clone();
    let mut request = (*sim.world.requests[&key]).clone();
    request.status = serde_json::from_value(status).unwrap();
    sim.world.requests.insert(key, Arc::new(request));
    sim.settle();
}

fn draining(pods: &[&str]) -> Sim {
    let mut sim = Sim::new(&["a"]);
    pods.iter().for_each(|pod| sim.pod("a", pod, &json!({})));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.events.clear();
    sim
}

#[test]
fn a_cause_is_told_once_with_the_first_pod_and_a_budget_when_the_owner_is_told() {
    let mut sim = draining(&["p", "q", "r"]);
    blocked_by(&mut sim, "p", "AdmissionWebhook", "w.example.com", true);
    let first = "AdmissionWebhook keeps pod ns/p on node a: w.example.com refuses (see AdmissionWebhook in controllers/README.md)";
    assert_eq!(told(&sim), [("EvictionBlocked", first)]);
    blocked_by(&mut sim, "q", "AdmissionWebhook", "w.example.com", true);
    blocked_by(&mut sim, "r", "PodDisruptionBudget", "b", false);
    sim.now += SignedDuration::from_mins(10);
    sim.settle();
    assert_eq!(
        told(&sim).len(),
        1,
        "the cause is known, and the pod is in the queue of a budget that lets others go"
    );
    blocked_by(&mut sim, "r", "PodDisruptionBudget", "b", true);
    let second = "PodDisruptionBudget keeps pod ns/r on node a: b refuses (see PodDisruptionBudget in controllers/README.md)";
    assert_eq!(told(&sim), [("EvictionBlocked", first), ("EvictionBlocked", second)]);
}

/// Each leader published all events again.
#[test]
fn a_new_leader_tells_of_causes_only_that_no_status_has() {
    let mut sim = draining(&["p", "q"]);
    blocked_by(&mut sim, "p", "AdmissionWebhook", "w.example.com", true);
    assert_eq!(told(&sim).len(), 1);
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(told(&sim).len(), 1, "{:?}", told(&sim));
    sim.memory = MachineMemory::default();
    blocked_by(&mut sim, "q", "AdmissionWebhook", "other.example.com", true);
    assert_eq!(told(&sim).len(), 2, "{:?}", told(&sim));
    assert!(told(&sim)[1].1.contains("other.example.com refuses"));
}

#[test]
fn budgets_of_one_name_in_two_namespaces_are_two_causes() {
    let mut sim = draining(&["p"]);
    sim.pod("a", "q", &json!({ "metadata": { "namespace": "other" } }));
    let mut request = EvictionRequest::named("other", "uid-q");
    request.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
    request.spec.target.pod = serde_json::from_value(json!({ "name": "q", "uid": "uid-q" })).unwrap();
    sim.world.requests.insert(("other".into(), "uid-q".into()), Arc::new(request));
    blocked_by(&mut sim, "p", "PodDisruptionBudget", "web", true);
    blocked_by(&mut sim, "q", "PodDisruptionBudget", "web", true);
    assert_eq!(told(&sim).len(), 2, "{:?}", told(&sim));
}

/// The drain had started on the other node when the last one was cordoned, and the event Cordoned was
/// published after DrainStarted.
#[test]
fn a_step_is_never_told_after_a_later_one() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("b", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.world.refused.insert("b".into(), "hands off".into());
    sim.settle_but(&Task::Cordon("b".into()));
    let steps = |sim: &Sim| reasons(sim).join(" ");
    assert_eq!(steps(&sim), "DrainStarted NodeDrained");
    sim.world.refused.clear();
    sim.settle();
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(steps(&sim), "DrainStarted NodeDrained NodeDrained");
}

/// The time of the stage was stored before any node was cordoned, and the next leader assumed that
/// DrainStarted was published.
#[test]
fn a_change_of_leader_before_the_nodes_are_cordoned_loses_no_step() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle_but(&Task::Cordon("a".into()));
    assert_eq!(reasons(&sim), Vec::<&str>::new());
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted"]);
    sim.memory = MachineMemory::default();
    sim.settle();
    sim.remove_pod("p");
    sim.memory = MachineMemory::default();
    sim.settle();
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(reasons(&sim), ["Cordoned", "DrainStarted", "NodeDrained"]);
}

/// The maintenance was completed within the ten seconds for which pods might have returned, and no event was
/// published.
#[test]
fn a_node_to_which_pods_return_gets_an_event_at_the_end_if_it_is_drained_then() {
    for is_back in [false, true] {
        let mut sim = Sim::new(&["a"]);
        let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "ds", "controller": true });
        let of_set = |sim: &Sim| {
            let created = sim.now.to_string();
            json!({ "metadata": { "creationTimestamp": created, "ownerReferences": [owner] } })
        };
        let pod = of_set(&sim);
        sim.pod("a", "d0", &pod);
        sim.maintenance("m", "Drain", &["a"]);
        sim.settle();
        sim.now += SignedDuration::from_secs(5);
        let pod = of_set(&sim);
        sim.remove_pod("d0");
        sim.pod("a", "d1", &pod);
        sim.settle();
        sim.remove_pod("d1");
        sim.settle();
        let drained = |sim: &Sim| {
            let events = sim.events.iter().filter(|note| note.reason == "NodeDrained");
            events.map(|note| note.message.clone()).collect::<Vec<_>>()
        };
        assert_eq!(drained(&sim), Vec::<String>::new());
        if is_back {
            let pod = of_set(&sim);
            sim.pod("a", "d2", &pod);
        }
        sim.stage("m", NodeMaintenanceStage::Complete);
        sim.settle();
        let told = ["All pods have left the node", "All pods have left node a"];
        assert_eq!(drained(&sim), if is_back { vec![] } else { told.to_vec() });
        sim.memory = MachineMemory::default();
        sim.settle();
        assert_eq!(drained(&sim).len(), if is_back { 0 } else { 2 });
    }
}

/// A node that the status showed as empty was assumed to be published, though no live read had confirmed it
/// yet.
#[test]
fn a_change_of_leader_between_the_status_and_the_live_read_loses_no_drained_node() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.pod("b", "q", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    sim.remove_pod("p");
    sim.store_statuses();
    let drained = |sim: &Sim| sim.events.iter().filter(|note| note.reason == "NodeDrained").count();
    assert_eq!(drained(&sim), 0);
    for _ in 0..2 {
        sim.memory = MachineMemory::default();
        sim.settle();
        assert_eq!(drained(&sim), 2, "of the node, and of the maintenance: {:?}", sim.events);
    }
}
