//! Statuses for which storage has no room.

use std::sync::Arc;

use drydock_api::node_maintenance::NodeMaintenanceNodeStatus;
use drydock_api::node_maintenance::limits::{MAX_NODE_STATUSES_BYTES, MAX_NODES, MAX_OBJECT_BYTES};

use super::*;

const BIG: &str = "a label value that is as long as it may be, in each of many values";

/// Thirty nodes with a pod of the second entry, whose selector is too long to stand in the status of each of them.
fn with_a_long_selector() -> Sim {
    let nodes: Vec<String> = (0..30).map(|n| format!("n{n:02}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let mut sim = Sim::new(&nodes);
    let values: Vec<String> = (0..1000).map(|n| format!("{BIG}{n}")).collect();
    let selector = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": values }] });
    let plan = json!([{ "podPriority": 10, "podType": "Default" },
        { "podPriority": 20, "podType": "Default", "podSelector": selector },
        { "podPriority": i32::MAX, "podType": "Default" }]);
    sim.pod(nodes[0], "first", &json!({}));
    nodes
        .iter()
        .for_each(|node| sim.pod(node, &format!("second-{node}"), &json!({ "spec": { "priority": 15 } })));
    sim.maintenance_with("m", "Drain", plan, &nodes);
    sim.settle();
    assert_eq!((sim.requested(), sim.drained("m")), (vec!["first".to_owned()], pair("False", "Draining")));
    sim
}

fn told(sim: &Sim) -> Vec<&EventDraft> {
    sim.events.iter().filter(|note| note.reason == "StatusTooLarge").collect()
}

/// The targets of the next tier did not fit, the stored ones were kept, and nothing said why no pod left any
/// more.
#[test]
fn a_drain_whose_targets_do_not_fit_says_so_and_gets_one_event() {
    let mut sim = with_a_long_selector();
    sim.remove_pod("first");
    sim.settle();
    assert_eq!(
        (sim.status("m").drain_plan_position, sim.drained("m")),
        (Some(0), pair("False", "StatusTooLarge"))
    );
    let message = sim.says("m", DRAINED).unwrap().2;
    assert!(message.contains("30 nodes") && message.contains("select fewer nodes"), "{message}");
    assert!(
        told(&sim).len() == 1
            && told(&sim)[0].severity == Severity::Warning
            && told(&sim)[0].message == *message
    );
    sim.memory = MachineMemory::default();
    sim.remove_pod("second-n29");
    sim.settle();
    assert_eq!(told(&sim).len(), 1);
    let term = json!({ "matchExpressions": [{ "key": "name", "operator": "In", "values": ["n00", "n01"] }] });
    let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
    sim.change("m", |m| m.spec.node_selector = Some(selector));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "Draining"));
    assert!(sim.requested().contains(&"second-n00".to_owned()), "what fits goes on");
}

/// Only the message mentioned such nodes.
#[test]
fn nodes_that_do_not_fit_get_one_event() {
    let mut sim = with_a_long_selector();
    sim.change("m", |m| m.status.node_statuses.truncate(10));
    sim.remove_pod("first");
    sim.settle();
    assert_eq!((sim.drained("m"), told(&sim).len()), (pair("False", "StatusTooLarge"), 1));
    let message = sim.says("m", DRAINED).unwrap().2;
    assert!(message.contains("of the 30 selected nodes do not fit"), "{message}");
}

/// Their pods were never asked to leave, and the plan waited for them on all nodes, from the beginning again.
#[test]
fn nodes_that_do_not_fit_hold_no_others_up() {
    for is_restarted in [false, true] {
        let mut sim = with_a_long_selector();
        sim.change("m", |m| m.status.node_statuses.truncate(10));
        sim.remove_pod("first");
        sim.settle();
        if is_restarted {
            sim.memory = MachineMemory::default();
            sim.settle();
        }
        let status = sim.status("m").clone();
        let asked: Vec<String> =
            status.node_statuses.iter().map(|s| format!("second-{}", s.node_ref.name)).collect();
        assert_eq!(sim.requested(), asked);
        assert!((10..30).contains(&asked.len()), "{asked:?}");
        asked.iter().for_each(|pod| sim.remove_pod(pod));
        sim.settle();
        assert_eq!(
            (sim.status("m").drain_plan_position, sim.drained("m")),
            (Some(2), pair("False", "StatusTooLarge"))
        );
    }
}

/// The targets that were kept were not needed any more.
#[test]
fn a_drain_whose_targets_do_not_fit_is_over_when_the_pods_have_gone_by_themselves() {
    let mut sim = with_a_long_selector();
    sim.remove_pod("first");
    sim.settle();
    (0..30).for_each(|n| sim.remove_pod(&format!("second-n{n:02}")));
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
}

/// The node statuses alone fitted, but not the object: storage refused each write of it.
#[test]
fn a_status_leaves_room_for_the_rest_of_the_object() {
    let mut sim = with_a_long_selector();
    sim.change("m", |m| {
        Arc::make_mut(&mut m.metadata.annotations)
            .insert("example.com/notes".to_owned(), "x".repeat(250_000));
        m.status.node_statuses.truncate(10);
    });
    sim.remove_pod("first");
    sim.settle();
    let size = drydock_machinery::object::json_len(&*sim.world.maintenances[0]);
    assert!(size <= MAX_OBJECT_BYTES && size > MAX_OBJECT_BYTES - 150_000, "{size}");
    assert_eq!(sim.drained("m"), pair("False", "StatusTooLarge"));
}

/// A cache drops labels and annotations: statuses were written that did not fit beside them, and the storage refused each.
#[test]
fn a_status_leaves_room_for_what_a_cache_has_dropped_from_the_object() {
    let mut sim = with_a_long_selector();
    sim.change("m", |m| {
        m.metadata.trimmed_bytes = 250_000;
        m.status.node_statuses.truncate(10);
    });
    sim.remove_pod("first");
    sim.settle();
    let size = drydock_machinery::object::json_len(&*sim.world.maintenances[0]) + 250_000;
    assert!(size <= MAX_OBJECT_BYTES && size > MAX_OBJECT_BYTES - 150_000, "{size}");
}

/// One creator's maintenances took gigabytes in each cache: the statuses, which the controllers write, had no bound together.
#[test]
fn the_statuses_of_all_maintenances_have_a_bound_together_and_each_has_a_small_one() {
    let mut sim = Sim::new(&["small"]);
    (0..40).for_each(|n| sim.node(&format!("n{n:02}"), false));
    // Few and long names, so that they are counted quickly.
    let long: Vec<_> =
        (0..13).map(|n| json!({ "nodeRef": { "name": format!("{n:02}{}", "n".repeat(107_000)) } })).collect();
    let long: Vec<NodeMaintenanceNodeStatus> = serde_json::from_value(json!(long)).unwrap();
    for n in 0..37 {
        let name = format!("full{n:02}");
        sim.maintenance(&name, "Complete", &["none"]);
        sim.change(&name, |m| {
            m.metadata.finalizers.clear();
            m.status.node_statuses.clone_from(&long);
        });
    }
    let nodes: Vec<String> = (0..40).map(|n| format!("n{n:02}")).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    nodes.iter().for_each(|node| sim.pod(node, &format!("pod-{node}"), &json!({})));
    sim.maintenance("large", "Drain", &nodes);
    sim.maintenance("little", "Drain", &["small"]);
    // A long selector in each of forty statuses.
    let values: Vec<String> = (0..100).map(|n| format!("{BIG}{n}")).collect();
    let selector = json!({ "matchExpressions": [{ "key": "app", "operator": "NotIn", "values": values }] });
    let plan = json!([{ "podPriority": i32::MAX, "podType": "Default", "podSelector": selector },
        { "podPriority": i32::MAX, "podType": "Default" }]);
    sim.change("large", |m| m.spec.drain_plan = serde_json::from_value(plan).unwrap());
    sim.settle();
    assert_eq!(sim.drained("large"), pair("False", "StatusTooLarge"));
    let message = sim.says("large", DRAINED).unwrap().2;
    assert!(message.contains("delete node maintenances that are complete"), "{message}");
    assert_eq!(sim.status("little").node_statuses.len(), 1);
    sim.world.maintenances.retain(|m| !m.metadata.name.starts_with("full"));
    sim.settle();
    assert_eq!(sim.drained("large"), pair("False", "Draining"));
    assert_eq!(sim.requested().len(), 40);
}

/// As many nodes as one maintenance holds, all cordoned and in its status; the first has a pod.
fn full() -> Sim {
    let mut sim = Sim::new(&[]);
    (0..MAX_NODES).for_each(|n| sim.node(&name(n), true));
    sim.pod(&name(0), "p", &json!({}));
    sim.maintenance("m", "Drain", &[]);
    let term = json!({ "matchExpressions": [{ "key": "name", "operator": "Exists" }] });
    let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
    sim.change("m", |m| m.spec.node_selector = Some(selector));
    sim.store_statuses();
    assert_eq!(shown(&sim).len(), MAX_NODES);
    sim
}

fn name(node: usize) -> String {
    format!("node-{node:04}")
}

fn shown(sim: &Sim) -> Vec<String> {
    let status = sim.status("m");
    assert!(drydock_machinery::object::json_len(&status.node_statuses) <= MAX_NODE_STATUSES_BYTES);
    status.node_statuses.iter().map(|s| s.node_ref.name.clone()).collect()
}

/// The status had one node too many, each write of it was refused, and nothing was drained any more.
#[test]
fn a_node_that_went_undrained_is_counted_where_the_status_has_no_room_for_its_name() {
    let mut sim = full();
    sim.remove_node(&name(0));
    sim.node("replacement", true);
    for _ in 0..2 {
        sim.store_statuses();
        let shown = shown(&sim);
        assert_eq!((shown.len(), shown.last().map(String::as_str)), (MAX_NODES, Some("replacement")));
        assert!(!shown.contains(&name(0)));
        assert_eq!((sim.drained("m"), sim.status("m").gone_nodes.undrained), (pair("False", "Draining"), 1));
        let message = sim.says("m", DRAINED).unwrap().2;
        assert!(message.starts_with("1 node left the cluster undrained"), "{message}");
        sim.memory = MachineMemory::default();
    }
    sim.store_statuses();
    let term = json!({ "matchExpressions": [{ "key": "name", "operator": "NotIn", "values": [name(0)] }] });
    let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
    sim.change("m", |m| {
        m.spec.node_selector = Some(selector);
        m.metadata.generation += 1;
    });
    sim.store_statuses();
    assert_eq!(sim.status("m").gone_nodes.undrained, 0, "it is let go by an edit of the selector");
}

/// As long as another maintenance does not show the targets of a node that has left, they stay in this status, and
/// a node that joins has to wait.
#[test]
fn recorded_targets_of_a_node_that_left_stay_before_a_node_that_joins() {
    let mut sim = full();
    let left = name(7);
    sim.maintenance("k", "Drain", &[]);
    let term = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [left] }] });
    let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
    let status = serde_json::from_value(json!([{ "nodeRef": { "name": left } }])).unwrap();
    sim.change("k", |k| {
        k.spec.node_selector = Some(selector);
        (k.status.drain_plan_position, k.status.node_statuses) = (Some(0), status);
    });
    sim.change_node(&left, |node| node.labels.clear());
    sim.node("joins", true);
    let actions = sim.step();
    let Some(Action::Status { status, .. }) = actions.get(&Task::Status("m".to_owned())) else { panic!() };
    let shown: Vec<&str> = status.node_statuses.iter().map(|s| s.node_ref.name.as_str()).collect();
    assert!(shown.len() == MAX_NODES && shown.contains(&left.as_str()) && !shown.contains(&"joins"));
    let message = &status.conditions.iter().find(|c| c.type_ == DRAINED).unwrap().message;
    assert!(message.starts_with("1 of the 4000 selected nodes does not fit into the status"), "{message}");
}
