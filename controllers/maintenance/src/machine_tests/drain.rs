//! Requests, counts, and the Drained condition.

use drydock_api::metav1::find_condition;
use drydock_runtime::cache::node::{CORDONED_BY, CORDONED_BY_OTHERS};

use super::*;
use crate::actions::EventSubject;

#[test]
fn drain_asks_tier_by_tier_and_ends_drained() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    let owner = json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true }] } });
    sim.pod("a", "daemon", &owner);
    sim.maintenance("m", "Drain", &["a"]);
    let mut asked = Vec::new();
    for pod in ["low", "high", "daemon"] {
        sim.settle();
        asked.push(pod);
        assert_eq!(sim.requested(), [pod]);
        assert_eq!(sim.drained("m"), pair("False", "Draining"));
        sim.remove_pod(pod);
    }
    sim.settle();
    assert!(sim.requested().is_empty(), "withdrawn as soon as the requests are Evicted");
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    assert_eq!(sim.status("m").node_statuses[0].drain_message, "Drained");
    assert_eq!(sim.condition("a", "DrainInProgress").unwrap().0, "False");
    assert_eq!(sim.condition("a", "Drained").unwrap().0, "True");
    assert_eq!(sim.events.iter().filter(|n| n.reason == "NodeDrained").count(), 2);
    assert_eq!(sim.status("m").stage_statuses.len(), 1);
}

#[test]
fn pending_and_evacuating_together_are_what_is_left() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "low", &json!({}));
    sim.pod("a", "high", &json!({ "spec": { "priority": 500 } }));
    sim.pod("a", "done", &json!({ "status": { "phase": "Succeeded" } }));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    assert_eq!((node.pods_pending_evacuation, node.pods_evacuating), (1, 1));
    let left: Vec<_> = node.left.iter().map(|left| (left.priority, left.count)).collect();
    assert_eq!(left, [(10, 1), (i32::MAX, 1)]);
    assert_eq!(node.drain_message, "Evacuating");
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    let node = &sim.status("m").node_statuses[0];
    let counts = (node.pods_pending_evacuation, node.pods_evacuating);
    assert_eq!(counts, (2, 0), "what was asked for is withdrawn");
}

#[test]
fn terminal_pods_and_those_of_the_node_agent_do_not_count_but_terminating_ones_do() {
    let config = Config::default();
    let pod = |extra: Value| {
        let mut value = json!({ "metadata": { "name": "p", "namespace": "drydock-system", "uid": "u" } });
        merge(&mut value, &extra);
        config.counts(&with_its_daemon_set(serde_json::from_value(value).unwrap()))
    };
    assert!(pod(json!({ "metadata": { "deletionTimestamp": NOW } })));
    assert!(!pod(json!({ "status": { "phase": "Failed" } })));
    let owner = |name: &str| {
        json!({ "metadata": { "ownerReferences": [
        { "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "d", "controller": true }] } })
    };
    assert!(!pod(owner("drydock-node-agent")) && pod(owner("other")));
}

#[test]
fn drained_turns_false_again_when_a_counted_pod_appears_and_freezes_at_complete() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    sim.pod("a", "p", &json!({}));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Draining"));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Canceled"));
    assert!(sim.requested().is_empty(), "requests are withdrawn when pods are left");
}

#[test]
fn a_true_drained_stays_true_at_complete() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.pod("a", "p", &json!({}));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    let status = sim.status("m");
    assert_eq!(status.node_statuses[0].drain_message, "");
    let drained = find_condition(&status.conditions, DRAINED).unwrap();
    assert_eq!((status.observed_generation, drained.observed_generation), (2, 2), "kubectl wait asks for it");
}

#[test]
fn drained_is_confirmed_by_a_live_read_and_only_then() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    let confirm_of = |actions: &BTreeMap<Task, Action>| match &actions[&Task::Status("m".into())] {
        Action::Status { confirm, .. } => confirm.clone(),
        other => panic!("{other:?}"),
    };
    let first = sim.step();
    assert!(confirm_of(&first).is_empty(), "a node that is not cordoned yet is not drained");
    first.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
    assert_eq!(confirm_of(&sim.step()), [("a".to_owned(), PodType::Static)].into());
}

#[test]
fn one_requester_entry_serves_overlapping_maintenances_until_the_last_ends() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.maintenance("n", "Drain", &["a"]);
    sim.settle();
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
    assert!(sim.world.maintenances[0].metadata.finalizers.is_empty());
    sim.stage("n", NodeMaintenanceStage::Complete);
    sim.settle();
    assert!(sim.requested().is_empty());
}

#[test]
fn a_request_of_another_requester_gets_our_entry_too() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.pod("a", "p", &json!({}));
    sim.request("p", |r| r.spec.requesters = serde_json::from_value(json!([{ "name": "a.b" }])).unwrap());
    sim.maintenance("m", "Drain", &["a"]);
    sim.store_statuses();
    let actions = sim.step();
    let wanted = RequestChange::Ask {
        pod: "p".into(),
        request: Some("request-p".into()),
        maintenances: r#"[{"name":"m"}]"#.into(),
        asked_again: None,
    };
    assert_eq!(*change_of(&actions[&Task::Request("ns".into(), "uid-p".into())]), wanted);
}

#[test]
fn a_request_canceled_for_no_requesters_is_replaced_at_once() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.pod("a", "p", &json!({}));
    sim.request("p", |r| r.status.conditions = conditions("Canceled", "NoRequesters", ""));
    sim.maintenance("m", "Drain", &["a"]);
    sim.store_statuses();
    let actions = sim.step();
    assert!(matches!(
        change_of(&actions[&Task::Request("ns".into(), "uid-p".into())]),
        RequestChange::Replace { .. }
    ));
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

/// Requests were made in the same step in which the nodes were cordoned: a pod that was evicted from the
/// first node could be scheduled to the second, and be evicted again.
#[test]
fn nobody_is_asked_to_leave_before_every_node_that_is_drained_together_is_cordoned() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle_but(&Task::Cordon("b".into()));
    assert!(sim.requested().is_empty());
    let message = sim.says("m", DRAINED).unwrap().2;
    assert!(message.contains("1 of 2 nodes is not cordoned yet, b among them"), "{message}");
    sim.settle();
    assert_eq!(sim.requested(), ["p"]);
}

/// They were written side by side: whichever came second was refused, as the node had another version by then.
#[test]
fn the_conditions_of_a_node_come_after_its_cordon_unless_that_is_refused() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    let (cordon, conditions) = (Task::Cordon("a".into()), Task::Conditions("a".into()));
    let actions = sim.step();
    assert!(actions.contains_key(&cordon) && !actions.contains_key(&conditions));
    sim.world.refused.insert("a".into(), "no".into());
    let actions = sim.step();
    assert!(actions.contains_key(&cordon) && actions.contains_key(&conditions));
}

#[test]
fn a_node_is_called_drained_only_after_a_live_read_and_gets_an_event_then() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    sim.maintenance("m", "Drain", &["a"]);
    sim.change_node("a", |n| drop(n.annotations.insert(CORDONED_BY.into(), CORDONED_BY_OTHERS.into())));
    let actions = sim.step();
    assert!(sim.events.iter().all(|note| note.reason != "NodeDrained"), "not told before it is confirmed");
    let Action::Conditions { confirm, .. } = &actions[&Task::Conditions("a".into())] else {
        panic!("{actions:?}")
    };
    assert_eq!(*confirm, Some(PodType::Static));
    sim.settle();
    let told: Vec<_> = sim.events.iter().filter(|n| n.reason == "NodeDrained").map(|n| &n.about).collect();
    assert_eq!(told, [&EventSubject::Node("a".into()), &EventSubject::Maintenance("m".into())]);
    sim.change_node("a", |n| n.conditions.iter_mut().for_each(|c| c.message = "changed".to_owned()));
    let actions = sim.step();
    let again = &actions[&Task::Conditions("a".into())];
    assert!(matches!(again, Action::Conditions { confirm: None, .. }));
}

#[test]
fn a_node_that_joins_a_drained_maintenance_is_confirmed_too() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    sim.node("b", true);
    let both = json!({ "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "name", "operator": "In", "values": ["a", "b"] }] }] });
    sim.change("m", |m| m.spec.node_selector = serde_json::from_value(both).unwrap());
    let actions = sim.step();
    let Action::Status { confirm, .. } = &actions[&Task::Status("m".into())] else { panic!("{actions:?}") };
    assert_eq!(*confirm, [("b".to_owned(), PodType::Static)].into());
}

/// The name of a request is the pod's UID; the API takes any pod name beside it. Such a request was a blocker
/// for a day.
#[test]
fn a_request_of_the_pods_uid_for_another_pod_is_replaced_whether_it_has_ended_or_not() {
    for ended in [Vec::new(), conditions("Canceled", "ValidationFailed", "Target Pod other was not found.")] {
        let mut sim = Sim::new(&[]);
        sim.node("a", true);
        sim.pod("a", "p", &json!({}));
        sim.request("p", |r| r.spec.target.pod.as_mut().unwrap().name = "other".into());
        sim.request("p", |r| r.status.conditions = ended);
        sim.maintenance("m", "Drain", &["a"]);
        sim.settle();
        assert_eq!(sim.requested(), ["p"]);
    }
}

/// Whenever a pod came and left, the pods of every node of the maintenance were read again.
#[test]
fn only_nodes_that_are_not_known_to_be_empty_are_read_when_drained_turns_true_again() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    sim.pod("a", "p", &json!({}));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Draining"));
    sim.remove_pod("p");
    let actions = sim.step();
    let Action::Status { confirm, .. } = &actions[&Task::Status("m".into())] else { panic!("{actions:?}") };
    assert_eq!(*confirm, [("a".to_owned(), PodType::Static)].into());
}

/// A maintenance of all nodes that was Idle wrote its status, of more than a megabyte, whenever a pod came or went.
#[test]
fn an_idle_maintenance_of_many_nodes_is_written_seldom_and_one_that_is_over_never() {
    let names: Vec<String> = (0..200).map(|n| format!("n{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut sim = Sim::new(&names);
    sim.maintenance("idle", "Idle", &names);
    sim.maintenance("over", "Complete", &names);
    sim.settle();
    let mut written = Vec::new();
    for second in 0..10 {
        sim.pod("n000", &format!("p{second}"), &json!({}));
        let actions = sim.step();
        written.extend(actions.keys().map(|task| (second, task.clone())));
        actions.into_iter().for_each(|(task, action)| sim.carry_out(&task, action));
        sim.settle();
        sim.now += jiff::SignedDuration::from_secs(1);
    }
    assert_eq!(written, [3, 6, 9].map(|second| (second, Task::Status("idle".into()))));
    sim.pod("n001", "last", &json!({}));
    let decision = step(&sim.world, &mut sim.memory, sim.now, &sim.config);
    assert!(decision.wake.is_some_and(|at| at > sim.now), "what is left is written when the rest is over");
    sim.stage("idle", NodeMaintenanceStage::Cordon);
    assert!(sim.step().contains_key(&Task::Status("idle".into())), "a change of its own is written at once");
}

/// If others had set a condition of that name before the maintenance, we called the node drained without a
/// live read.
#[test]
fn a_foreign_drained_condition_is_no_reason_to_skip_the_live_read() {
    let mut sim = Sim::new(&[]);
    sim.node("a", true);
    let foreign = drydock_runtime::cache::NodeCondition {
        type_: "Drained".into(),
        status: "True".into(),
        ..Default::default()
    };
    sim.change_node("a", |n| n.conditions.push(foreign));
    sim.maintenance("m", "Drain", &["a"]);
    sim.change_node("a", |n| drop(n.annotations.insert(CORDONED_BY.into(), CORDONED_BY_OTHERS.into())));
    let actions = sim.step();
    assert!(matches!(
        &actions[&Task::Conditions("a".into())],
        Action::Conditions { confirm: Some(PodType::Static), .. }
    ));
}

/// The count was written one write after the condition of the last node: a maintenance that was completed in
/// between said for good that not all nodes were drained.
#[test]
fn the_status_that_says_drained_counts_every_node() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("b", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    sim.remove_pod("p");
    sim.settle_but(&Task::Conditions("b".to_owned()));
    assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.status("m").drained_nodes, 2);
}
