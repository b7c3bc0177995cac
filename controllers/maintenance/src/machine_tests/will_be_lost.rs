//! The condition PodsWillBeLost, and its event.

use drydock_api::node_maintenance::PODS_WILL_BE_LOST;

use super::*;

fn controlled() -> Value {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true });
    json!({ "metadata": { "ownerReferences": [owner] } })
}

fn with_volume(mut pod: Value, volume: Value) -> Value {
    merge(&mut pod, &json!({ "spec": { "volumes": [volume] } }));
    pod
}

fn told(sim: &Sim) -> Vec<&str> {
    let events = sim.events.iter().filter(|note| note.reason == PODS_WILL_BE_LOST);
    events.map(|note| note.message.as_str()).collect()
}

#[test]
fn it_can_be_read_before_the_drain_and_names_five_pods() {
    let mut sim = Sim::new(&["a"]);
    for name in ["b6", "b5", "b4", "b3", "b2", "b1"] {
        sim.pod("a", name, &json!({}));
    }
    sim.pod("a", "web", &with_volume(controlled(), json!({ "name": "v", "emptyDir": {} })));
    sim.pod("a", "kept", &with_volume(controlled(), json!({ "name": "v", "configMap": { "name": "c" } })));
    sim.maintenance("m", "Idle", &["a"]);
    sim.settle();
    assert_eq!(sim.says("m", PODS_WILL_BE_LOST), None);
    sim.stage("m", NodeMaintenanceStage::Cordon);
    sim.settle();
    let (status, reason, message) = sim.says("m", PODS_WILL_BE_LOST).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("True", "PodsOrDataWillBeLost"));
    let wanted = "6 pods have no controller and will not come back: ns/b1, ns/b2, ns/b3, ns/b4, ns/b5, ...; 1 pod has an \
                  emptyDir volume, whose data is lost";
    assert_eq!(message, wanted);
    assert_eq!(told(&sim), Vec::<&str>::new(), "nothing leaves before Drain");
    sim.stage("m", NodeMaintenanceStage::Drain);
    sim.settle();
    assert_eq!(told(&sim), [wanted]);
}

#[test]
fn pods_that_will_be_lost_and_pods_with_data_are_asked_to_leave_all_the_same() {
    let mut sim = Sim::new(&["a"]);
    let data = || json!({ "name": "v", "emptyDir": {} });
    sim.pod("a", "bare", &json!({}));
    sim.pod("a", "bare-with-data", &with_volume(json!({}), data()));
    sim.pod("a", "web-with-data", &with_volume(controlled(), data()));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["bare", "bare-with-data", "web-with-data"]);
}

#[test]
fn nothing_is_lost_with_pods_of_controllers_and_mirror_pods() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "web", &controlled());
    sim.pod("a", "mirror", &with_volume(mirror("a"), json!({ "name": "v", "emptyDir": {} })));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let (status, reason, _) = sim.says("m", PODS_WILL_BE_LOST).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NothingWillBeLost"));
    assert_eq!(told(&sim), Vec::<&str>::new());
}

#[test]
fn data_of_pods_after_the_last_type_is_not_lost() {
    let mut sim = Sim::new(&["a"]);
    let owner =
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true });
    let agent = json!({ "metadata": { "ownerReferences": [owner] } });
    sim.pod("a", "agent", &with_volume(agent, json!({ "name": "v", "emptyDir": {} })));
    sim.maintenance("long", "Cordon", &["a"]);
    sim.maintenance("short", "Cordon", &["a"]);
    sim.change("short", |m| m.spec.last_pod_type = PodType::Default);
    sim.settle();
    assert_eq!(sim.says("long", PODS_WILL_BE_LOST).unwrap().0, "True");
    assert_eq!(sim.says("short", PODS_WILL_BE_LOST).unwrap().0, "False");
}

#[test]
fn it_is_told_again_only_when_more_pods_without_a_controller_are_to_leave() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "bare", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    assert_eq!(told(&sim).len(), 1);
    sim.pod("a", "data", &with_volume(controlled(), json!({ "name": "v", "emptyDir": {} })));
    sim.settle();
    assert_eq!(told(&sim).len(), 1, "only the second number rose");
    // A new manager knows which events were published.
    sim.memory = MachineMemory::default();
    sim.settle();
    sim.pod("b", "more", &json!({}));
    sim.settle();
    assert_eq!(told(&sim).len(), 2);
    sim.remove_pod("more");
    sim.settle();
    assert_eq!(told(&sim).len(), 2);
}

/// It stayed True forever, though nothing leaves any more.
#[test]
fn at_complete_pods_that_are_there_stay() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "bare", &json!({}));
    sim.maintenance("m", "Cordon", &["a"]);
    sim.maintenance("straight", "Idle", &["a"]);
    sim.settle();
    assert_eq!(sim.says("m", PODS_WILL_BE_LOST).unwrap().0, "True");
    ["m", "straight"].into_iter().for_each(|name| sim.stage(name, NodeMaintenanceStage::Complete));
    sim.settle();
    let (status, reason, message) = sim.says("m", PODS_WILL_BE_LOST).unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Completed"));
    assert_eq!(message, "The maintenance is complete: pods that are still on its nodes stay");
    assert_eq!(sim.says("straight", PODS_WILL_BE_LOST), None);
}
