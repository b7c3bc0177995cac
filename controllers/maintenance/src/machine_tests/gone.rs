//! Nodes that leave the cluster while they are drained.

use drydock_api::node_maintenance::NodeMaintenanceGoneNodes;

use super::*;

/// Nodes a, empty, and b, with a pod, both cordoned; `a` is recorded as drained.
fn half_drained() -> Sim {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("b", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    assert_eq!(sim.status("m").drained_nodes, 1);
    sim
}

/// Nodes a and b, both drained.
fn drained() -> Sim {
    let mut sim = half_drained();
    sim.remove_pod("p");
    sim.settle();
    assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
    sim
}

fn names(sim: &Sim) -> Vec<&str> {
    sim.status("m").node_statuses.iter().map(|s| s.node_ref.name.as_str()).collect()
}

/// An autoscaler removed the drained nodes, the selector selected no node any more, and Complete counted as a
/// cancellation.
#[test]
fn nodes_that_go_after_they_were_drained_count_as_drained() {
    for restart in [false, true] {
        let mut sim = drained();
        for node in ["a", "b"] {
            sim.remove_node(node);
            if restart {
                sim.memory = MachineMemory::default();
            }
            sim.settle();
            assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"), "{node} {restart}");
        }
        assert_eq!((names(&sim), sim.status("m").drained_nodes), (vec![], 2));
        sim.memory = MachineMemory::default();
        sim.settle();
        assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
        sim.stage("m", NodeMaintenanceStage::Complete);
        sim.settle();
        assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
    }
}

#[test]
fn nodes_that_go_one_by_one_as_they_are_drained_count_too() {
    for restart in [false, true] {
        let mut sim = half_drained();
        sim.remove_node("a");
        if restart {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("False", "Draining"), 1));
        sim.remove_pod("p");
        sim.settle();
        assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
        sim.remove_node("b");
        sim.settle();
        assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    }
}

/// The node took its pods with it, and Drained became True.
#[test]
fn a_node_that_goes_undrained_keeps_drained_false_and_stays_in_the_status() {
    for restart in [false, true] {
        let mut sim = half_drained();
        sim.remove_node("b");
        for _ in 0..2 {
            if restart {
                sim.memory = MachineMemory::default();
            }
            sim.settle();
            assert_eq!(sim.drained("m"), pair("False", "Draining"));
            let message = sim.says("m", DRAINED).unwrap().2;
            assert!(message.contains("b with 1 pod"), "{message}");
            assert_eq!((names(&sim), sim.status("m").drained_nodes), (vec!["a", "b"], 1));
        }
        sim.remove_node("a");
        sim.settle();
        assert_eq!(sim.drained("m"), pair("False", "NoNodesSelected"));
        sim.stage("m", NodeMaintenanceStage::Complete);
        sim.settle();
        assert_eq!(sim.drained("m"), pair("False", "Canceled"));
    }
}

#[test]
fn a_node_that_comes_back_is_drained_anew() {
    let mut sim = half_drained();
    sim.remove_node("b");
    sim.settle();
    sim.node("b", false);
    sim.settle();
    assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
}

/// A node that is taken out of the selection does not count.
#[test]
fn a_node_that_is_taken_out_of_the_selection_has_not_gone() {
    let select = |sim: &mut Sim, nodes: &[&str]| {
        let term = json!({ "matchExpressions": [{ "key": "name", "operator": "In", "values": nodes }] });
        let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
        sim.change("m", |m| m.spec.node_selector = Some(selector));
        sim.settle();
    };
    let mut sim = half_drained();
    select(&mut sim, &["a"]);
    assert_eq!((sim.drained("m"), names(&sim)), (pair("True", "AllPodsTerminated"), vec!["a"]));
    let mut sim = half_drained();
    sim.remove_node("a");
    sim.settle();
    select(&mut sim, &["c"]);
    sim.memory = MachineMemory::default();
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "NoNodesSelected"), "b was released with its pod");
    let mut sim = half_drained();
    sim.remove_node("b");
    sim.settle();
    select(&mut sim, &["a"]);
    assert_eq!((sim.drained("m"), names(&sim)), (pair("True", "AllPodsTerminated"), vec!["a"]));
}

fn select(sim: &mut Sim, field: &str, key: &str, nodes: &[&str]) {
    let term = json!({ field: [{ "key": key, "operator": "In", "values": nodes }] });
    let selector = serde_json::from_value(json!({ "nodeSelectorTerms": [term] })).unwrap();
    sim.change("m", |m| {
        m.spec.node_selector = Some(selector);
        m.metadata.generation += 1;
    });
    sim.settle();
}

/// After a restart the labels of a node that had gone were unknown: when another pool was added to the selector,
/// the node was forgotten.
#[test]
fn a_selector_that_is_wider_lets_nothing_go_after_a_restart() {
    let mut sim = half_drained();
    sim.remove_node("b");
    sim.settle();
    sim.memory = MachineMemory::default();
    sim.settle();
    sim.change("m", |m| {
        let selector = m.spec.node_selector.as_mut().unwrap();
        let term = json!({ "matchExpressions": [{ "key": "pool", "operator": "Exists" }] });
        selector.node_selector_terms.push(serde_json::from_value(term).unwrap());
        m.metadata.generation += 1;
    });
    sim.settle();
    assert_eq!((sim.drained("m"), names(&sim)), (pair("False", "Draining"), vec!["a", "b"]));
}

/// After a restart nothing was known of the node but its name, and no edit of the selector could let it go.
#[test]
fn a_node_that_went_undrained_is_let_go_with_the_selector_after_a_restart_too() {
    let by_label = ("matchExpressions", "name");
    let by_host_name = ("matchExpressions", "kubernetes.io/hostname");
    let by_name = ("matchFields", "metadata.name");
    let edits = [
        (by_label, &["a"][..], false),
        (by_host_name, &["a", "b"], true),
        (by_name, &["a", "b"], true),
        (by_name, &["a"], false),
    ];
    for (((field, key), nodes, is_kept), is_away) in edits.into_iter().flat_map(|e| [(e, false), (e, true)]) {
        let mut sim = half_drained();
        sim.change_node("a", |node| drop(node.labels.insert("kubernetes.io/hostname".into(), "a".into())));
        sim.remove_node("b");
        sim.settle();
        sim.memory = MachineMemory::default();
        sim.settle();
        assert_eq!((sim.drained("m"), names(&sim)), (pair("False", "Draining"), vec!["a", "b"]));
        sim.change("m", |m| m.metadata.generation += 1);
        sim.settle();
        assert_eq!(names(&sim), ["a", "b"], "something else was edited");
        if is_away {
            sim.memory = MachineMemory::default();
        }
        select(&mut sim, field, key, nodes);
        // It is not known what else the edit has changed: the next edit makes it forget the node.
        let wanted = if is_kept || is_away {
            (pair("False", "Draining"), vec!["a", "b"])
        } else {
            (pair("True", "AllPodsTerminated"), vec!["a"])
        };
        assert_eq!((sim.drained("m"), names(&sim)), wanted, "{key} {nodes:?} {is_away}");
    }
}

/// The node was empty, but no live read had shown that: it was forgotten, and the other node, which was drained,
/// made the condition True.
#[test]
fn an_empty_node_that_goes_unconfirmed_keeps_drained_false() {
    for (restart_before, restart_after) in [(false, false), (true, false), (false, true)] {
        let mut sim = half_drained();
        // The pod is gone, and no live read confirms it.
        sim.world.pods.insert("b".to_owned(), Vec::new());
        sim.locate();
        let status = sim.step().remove(&Task::Status("m".to_owned()));
        let Some(Action::Status { mut status, .. }) = status else { panic!("{status:?}") };
        status.conditions.iter_mut().find(|c| c.type_ == DRAINED).unwrap().status = "False".to_owned();
        sim.change("m", |m| m.status.node_statuses = status.node_statuses);
        sim.remove_node("b");
        if restart_before {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        if restart_after {
            sim.memory = MachineMemory::default();
        }
        sim.settle();
        assert_eq!(sim.drained("m"), pair("False", "Draining"));
        let message = sim.says("m", DRAINED).unwrap().2;
        assert!(message.contains("b among them"), "{message}");
        sim.remove_node("a");
        sim.settle();
        assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("False", "NoNodesSelected"), 1));
        assert_eq!(sim.status("m").gone_nodes, NodeMaintenanceGoneNodes { drained: 1, undrained: 1 });
    }
}

/// It was counted when it left, and again when it was drained anew.
#[test]
fn a_drained_node_that_leaves_and_comes_back_counts_once() {
    let mut sim = drained();
    for _ in 0..2 {
        sim.remove_node("a");
        sim.settle();
        assert_eq!(sim.status("m").drained_nodes, 2);
        sim.node("a", false);
        sim.settle();
        assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("True", "AllPodsTerminated"), 2));
    }
}

/// A status that was written in Cordon still named them, and they counted as undrained.
#[test]
fn nodes_that_went_before_the_drain_began_are_not_missed() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("b", "p", &json!({}));
    sim.maintenance("m", "Cordon", &["a", "b"]);
    sim.settle();
    assert_eq!(names(&sim), ["a", "b"]);
    sim.remove_node("b");
    sim.stage("m", NodeMaintenanceStage::Drain);
    sim.settle();
    assert_eq!((sim.drained("m"), names(&sim)), (pair("True", "AllPodsTerminated"), vec!["a"]));
}

/// No live read had been made of it.
#[test]
fn an_empty_node_that_goes_before_it_was_recorded_as_drained_does_not_count() {
    let mut sim = Sim::new(&["a"]);
    sim.maintenance("m", "Drain", &["a"]);
    sim.change_node("a", |node| node.unschedulable = true);
    sim.step();
    sim.remove_node("a");
    sim.settle();
    assert_eq!((sim.drained("m"), sim.status("m").drained_nodes), (pair("False", "NoNodesSelected"), 0));
}

/// The watch of the pods hung, and a pod had come to a node since its live read an hour before. People power nodes
/// off when a maintenance is called drained.
#[test]
fn a_maintenance_is_called_drained_after_live_reads_of_just_now() {
    let mut sim = half_drained();
    sim.now += jiff::SignedDuration::from_hours(1);
    sim.remove_pod("p");
    let actions = sim.step();
    let Action::Status { confirm, .. } = &actions[&Task::Status("m".into())] else { panic!("{actions:?}") };
    assert_eq!(confirm.keys().collect::<Vec<_>>(), ["a", "b"]);
}
