//! Maintenances that do not drain every pod type (`spec.lastPodType`), and the condition WorkloadsDrained.

use drydock_api::node_maintenance::{NodeMaintenanceNodeStatus, WORKLOADS_DRAINED};

use super::*;

/// A maintenance in a stage with one entry for each type up to the last.
pub(super) fn up_to(sim: &mut Sim, last: PodType, name: &str, stage: &str, nodes: &[&str]) {
    let types = [PodType::Default, PodType::DaemonSet, PodType::Static].into_iter();
    let plan: Vec<Value> = types
        .filter(|pod_type| *pod_type <= last)
        .map(|pod_type| json!({ "podPriority": i32::MAX, "podType": pod_type }))
        .collect();
    sim.maintenance_with(name, stage, json!(plan), nodes);
    sim.change(name, |m| m.spec.last_pod_type = last);
}

pub(super) fn agent() -> Value {
    of_daemon_set("agent")
}

/// What a maintenance shows of a node: pods that are left, and the types of its targets.
fn shown(sim: &Sim, name: &str, node: &str) -> (i32, Vec<PodType>) {
    let status: &NodeMaintenanceNodeStatus = sim.status(name).of_node(node).unwrap();
    let left = status.pods_pending_evacuation + status.pods_evacuating;
    (left, status.drain_targets.iter().map(|target| target.pod_type).collect())
}

fn workloads(sim: &Sim, name: &str) -> Option<(String, String)> {
    sim.says(name, WORKLOADS_DRAINED).map(|(status, reason, _)| (status, reason))
}

#[test]
fn two_maintenances_on_one_node_each_count_and_drain_their_own_types() {
    let mut sim = Sim::new(&["a", "b"]);
    for node in ["a", "b"] {
        sim.pod(node, &format!("web-{node}"), &json!({}));
        sim.pod(node, &format!("agent-{node}"), &agent());
        sim.pod(node, &format!("static-{node}"), &mirror(node));
    }
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a", "b"]);
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["web-a", "web-b"]);
    assert_eq!(shown(&sim, "short", "a"), (1, vec![PodType::Default]));
    assert_eq!(shown(&sim, "long", "a"), (3, vec![PodType::Default]));
    sim.remove_pod("web-a");
    sim.settle();
    assert_eq!(sim.requested(), ["agent-a", "web-b"], "short holds no later tier of long");
    assert_eq!(shown(&sim, "short", "a"), (0, vec![PodType::Default]));
    assert_eq!(shown(&sim, "long", "a"), (2, vec![PodType::Default, PodType::DaemonSet]));
    sim.remove_pod("web-b");
    sim.settle();
    assert_eq!(sim.drained("short"), pair("True", "AllPodsTerminated"));
    let message = sim.says("short", DRAINED).unwrap().2;
    assert_eq!(message, "All pods of type Default have left the 2 selected nodes");
    assert_eq!(sim.drained("long"), pair("False", "Draining"));
    assert_eq!(workloads(&sim, "long"), pair("True", "AllPodsTerminated"));
    let long = "Pods up to type Static; no pod of type Default is left: short, long".to_owned();
    assert_eq!(sim.condition("a", "Drained"), Some(("False".to_owned(), "Drain".to_owned(), long)));
    let (status, _, message) = sim.condition("b", "Drained").unwrap();
    assert_eq!((&*status, &*message), ("True", "Pods up to type Default; 2 of later types stay: short"));
    assert_eq!(sim.condition("b", "DrainInProgress").unwrap().0, "False");
    assert_eq!(sim.requested(), ["agent-a"], "nothing of type DaemonSet leaves where only short is");
    sim.remove_pod("agent-a");
    sim.settle();
    assert_eq!(sim.requested(), ["static-a"]);
    sim.remove_pod("static-a");
    sim.settle();
    assert_eq!(sim.drained("long"), pair("True", "AllPodsTerminated"));
    assert_eq!(sim.condition("a", "Drained").unwrap().0, "True");
}

/// The second way out of a drain that never ends: the new maintenance first, then the end of the old one.
#[test]
fn what_only_the_maintenance_that_ends_has_asked_for_is_withdrawn_and_it_is_released() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["agent-a"]);
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.requested(), ["agent-a"]);
    assert_eq!(sim.drained("short"), pair("True", "AllPodsTerminated"));
    sim.stage("long", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.requested(), Vec::<String>::new());
    let long = sim.world.maintenances.iter().find(|m| m.metadata.name == "long").unwrap();
    assert!(long.metadata.finalizers.is_empty());
    assert_eq!(shown(&sim, "short", "a"), (0, vec![PodType::Default]));
    assert_eq!(sim.cordon_of("a"), (true, Some(CORDONED_BY_US)));
    assert_eq!(sim.condition("a", "Drained").unwrap().0, "True");
    assert_eq!(sim.status("short").outcomes.canceled, 0, "the pod does not exist for it");
}

#[test]
fn a_node_is_confirmed_up_to_the_last_type_of_what_is_said_of_it() {
    let mut sim = Sim::new(&["a"]);
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a"]);
    sim.settle();
    sim.world.since = ChangesSince::default();
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a"]);
    let actions = sim.step();
    let Action::Conditions { confirm, .. } = &actions[&Task::Conditions("a".into())] else { panic!() };
    assert_eq!(*confirm, Some(PodType::Static), "a read for Default says nothing of later types");
    let Action::Status { confirm, .. } = &actions[&Task::Status("long".into())] else { panic!() };
    assert_eq!(*confirm, [("a".to_owned(), PodType::Static)].into());
}

#[test]
fn workloads_drained_has_every_edge_of_drained() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "web", &json!({}));
    sim.pod("a", "agent-a", &agent());
    sim.maintenance("m", "Cordon", &["a"]);
    sim.settle();
    assert_eq!(workloads(&sim, "m"), None, "absent before Drain");
    sim.stage("m", NodeMaintenanceStage::Drain);
    sim.settle();
    assert_eq!(workloads(&sim, "m"), pair("False", "Draining"));
    let message = sim.says("m", WORKLOADS_DRAINED).unwrap().2;
    assert_eq!(message, "1 pod of type Default is left on 1 of 1 node");
    sim.remove_pod("web");
    let actions = sim.step();
    let Action::Status { confirm, .. } = &actions[&Task::Status("m".into())] else { panic!() };
    assert_eq!(*confirm, [("a".to_owned(), PodType::Default)].into());
    sim.settle();
    assert_eq!(
        (workloads(&sim, "m"), sim.drained("m")),
        (pair("True", "AllPodsTerminated"), pair("False", "Draining"))
    );
    sim.pod("a", "late", &json!({}));
    sim.settle();
    assert_eq!(workloads(&sim, "m"), pair("False", "Draining"), "False again");
    sim.maintenance("none", "Drain", &["z"]);
    sim.settle();
    assert_eq!(workloads(&sim, "none"), pair("False", "NoNodesSelected"));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(workloads(&sim, "m"), pair("False", "Canceled"), "frozen at Complete");
}

#[test]
fn workloads_drained_stays_true_at_complete() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(
        (workloads(&sim, "m"), sim.drained("m")),
        (pair("True", "AllPodsTerminated"), pair("False", "Canceled"))
    );
}

#[test]
fn a_node_that_vanishes_with_its_daemon_sets_alone_was_drained_of_workloads() {
    for restart in [false, true] {
        let mut sim = Sim::new(&["a", "b"]);
        sim.pod("a", "agent-a", &agent());
        sim.pod("b", "agent-b", &agent());
        sim.maintenance("m", "Drain", &["a", "b"]);
        sim.settle();
        sim.remove_node("b");
        if restart {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        assert_eq!(workloads(&sim, "m"), pair("True", "AllPodsTerminated"), "{restart}");
        assert!(sim.says("m", DRAINED).unwrap().2.contains("b with 1 pod among them"), "{restart}");
    }
}

#[test]
fn a_node_that_vanishes_with_workloads_was_not() {
    for restart in [false, true] {
        let mut sim = Sim::new(&["a", "b"]);
        sim.pod("b", "web", &json!({}));
        sim.maintenance("m", "Drain", &["a", "b"]);
        sim.settle();
        sim.remove_node("b");
        if restart {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        assert_eq!(workloads(&sim, "m"), pair("False", "Draining"), "{restart}");
    }
}

/// The interceptor of DaemonSets says that a pod comes back.
fn returns(sim: &mut Sim, pod: &str) {
    sim.request(pod, |r| {
        r.spec.requesters = serde_json::from_value(json!([{ "name": REQUESTER }])).unwrap();
        r.status = serde_json::from_value(json!({
            "targetInterceptors": [{ "name": "daemonset.apps.k8s.io" }], "activeInterceptors": ["daemonset.apps.k8s.io"],
            "interceptors": [{ "name": "daemonset.apps.k8s.io", "message": "It returns.",
                "blocked": { "reason": "DaemonSetReturns", "name": "agent" } }],
        }))
        .unwrap();
    });
}

#[test]
fn pods_of_later_types_block_nothing() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    returns(&mut sim, "agent-a");
    up_to(&mut sim, PodType::Static, "long", "Drain", &["a"]);
    up_to(&mut sim, PodType::Default, "short", "Drain", &["a"]);
    sim.settle();
    let blocked = |name: &str| sim.status(name).of_node("a").unwrap().blocked_pods;
    assert_eq!((blocked("long"), blocked("short")), (1, 0));
}

#[test]
fn a_drain_that_may_never_end_names_both_ways_out() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "agent-a", &agent());
    sim.pod("a", "web", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.request("web", |_| {});
    assert_eq!(sim.says("m", DRAINED).unwrap().2, "2 pods are left on 1 of 1 node");
    sim.remove_pod("web");
    sim.settle();
    assert_eq!(sim.says("m", DRAINED).unwrap().2, "1 pod is left on 1 of 1 node", "its turn has only come");
    returns(&mut sim, "agent-a");
    sim.settle();
    let ways = [
        "`kubectl wait --for=condition=WorkloadsDrained nodemaintenance/m`",
        "lastPodType: Default",
        "kubectl delete nodemaintenance m`",
    ];
    let message = sim.says("m", DRAINED).unwrap().2;
    let head = "1 pod is left on 1 of 1 node. 1 of them is blocked, 1 by DaemonSetReturns: pod ns/agent-a on node a since \
                2026-01-01T12:00:00Z: It returns (see \"DaemonSets and static pods\" in controllers/README.md). No pod of type Default is left. To go on";
    assert!(message.starts_with(head), "{message}");
    let blocker = sim.status("m").of_node("a").unwrap().blockers[0].clone();
    assert!(bare(&blocker.message).starts_with("It returns. To go on"), "{}", blocker.message);
    for way in ways {
        assert!(
            message.contains(way) && blocker.message.contains(way),
            "{way}: {message} {}",
            blocker.message
        );
    }
    let before = blocker.message;
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(
        sim.status("m").of_node("a").unwrap().blockers[0].message,
        before,
        "said once after a restart too"
    );
    sim.pod("a", "late", &json!({}));
    sim.settle();
    let message = sim.says("m", DRAINED).unwrap().2;
    assert!(
        message.starts_with("2 pods are left on 1 of 1 node") && !message.contains("kubectl"),
        "{message}"
    );
}
