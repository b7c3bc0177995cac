//! Nodes of which not all labels are known.

use super::*;

fn hide(node: &mut Node) {
    node.labels.clear();
    node.labels_cut_from = Some("a".into());
}

/// A kubelet gave its node so many labels that the one by which it was selected was not known any more: the node was made
/// schedulable in the middle of the drain, and its pods stayed.
#[test]
fn a_node_that_hides_its_labels_stays_in_the_drain() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a", "b"]);
    sim.settle();
    sim.change_node("a", hide);
    sim.settle();
    assert_eq!((sim.cordon_of("a"), sim.requested()), ((true, Some(CORDONED_BY_US)), vec!["p".to_owned()]));
    assert_eq!((sim.status("m").node_statuses.len(), sim.drained("m")), (2, pair("False", "Draining")));
    sim.remove_pod("p");
    sim.settle();
    assert_eq!(sim.drained("m"), pair("True", "AllPodsTerminated"));
    sim.stage("m", NodeMaintenanceStage::Complete);
    sim.settle();
    assert_eq!(sim.cordon_of("a"), (false, None));
}

#[test]
fn a_drain_is_not_over_while_it_is_not_known_whether_a_node_is_selected() {
    let mut sim = Sim::new(&["a", "b"]);
    sim.change_node("b", |node| {
        hide(node);
        node.unschedulable = true;
        node.annotations.insert(CORDONED_BY.to_owned(), CORDONED_BY_US.to_owned());
    });
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    assert_eq!(sim.drained("m"), pair("False", "NodeLabelsUnknown"));
    let told: Vec<_> = sim.events.iter().filter(|event| event.reason == "NodeLabelsUnknown").collect();
    assert!(told.len() == 1 && told[0].message.contains("1 node is selected, b among them"), "{told:?}");
    assert_eq!(sim.cordon_of("b"), (true, Some(CORDONED_BY_US)), "it may be one that is held");
    sim.change_node("b", |node| node.labels_cut_from = None);
    sim.settle();
    assert_eq!((sim.drained("m"), sim.cordon_of("b")), (pair("True", "AllPodsTerminated"), (false, None)));
}
