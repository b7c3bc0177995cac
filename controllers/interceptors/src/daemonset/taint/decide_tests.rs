//! When a node needs the taint, and how it is written.

#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use drydock_api::node_maintenance::{
    DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeReference, PodType,
};
use drydock_runtime::cache::DaemonSetOwner;
use drydock_runtime::testing::{mirror, of_daemon_set};

use super::*;

fn node(taint: Option<&str>) -> Node {
    let ours = |effect: &str| Taint { key: TAINT.into(), effect: effect.into(), ..Taint::default() };
    Node {
        name: "n".into(),
        uid: "u".into(),
        resource_version: "7".into(),
        taints: [Some(other()), taint.map(ours)].into_iter().flatten().collect(),
        ..Default::default()
    }
}

fn other() -> Taint {
    serde_json::from_value(other_on_the_wire()).unwrap()
}

fn other_on_the_wire() -> Value {
    json!({"key": "other", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"})
}

/// The list has no merge key: a strategic merge patch with our taint alone removed all other taints of the
/// node, and the removal of ours was always refused (422, `taints[0].effect: Required value`).
#[test]
fn only_our_own_taint_changes_in_the_list_which_is_written_as_a_whole() {
    assert_eq!(patch(&node(Some(EFFECT)), true), None);
    assert_eq!(patch(&node(None), false), None);
    let added = patch(&node(None), true).unwrap();
    assert_eq!(added["spec"]["taints"], json!([other_on_the_wire(), {"key": TAINT, "effect": "NoSchedule"}]));
    let removed = patch(&node(Some(EFFECT)), false).unwrap();
    assert_eq!(removed["spec"]["taints"], json!([other_on_the_wire()]));
}

#[test]
fn the_patch_holds_for_the_version_that_was_seen_only() {
    for (present, needs) in [(Some(EFFECT), false), (None, true)] {
        let seen = patch(&node(present), needs).unwrap()["metadata"].clone();
        assert_eq!(seen, json!({"uid": "u", "resourceVersion": "7"}));
    }
}

#[test]
fn foreign_effect_under_our_key_is_put_right() {
    let put_right = patch(&node(Some("NoExecute")), true).unwrap();
    assert_eq!(put_right["spec"]["taints"][1], json!({"key": TAINT, "effect": "NoSchedule"}));
}

fn drained_to(pod_priority: i32) -> NodeTargets {
    let mut m = NodeMaintenance::default();
    m.spec.stage = NodeMaintenanceStage::Drain;
    m.status.node_statuses = vec![NodeMaintenanceNodeStatus {
        node_ref: NodeReference { name: "n".into() },
        drain_targets: vec![DrainPlanEntry {
            pod_priority,
            pod_type: PodType::DaemonSet,
            ..Default::default()
        }],
        ..Default::default()
    }];
    NodeTargets::of("n", &[Arc::new(m)])
}

fn pod(uid: &str, priority: i32) -> Pod {
    let pod = Pod { uid: uid.into(), node_name: "n".into(), priority, ..Default::default() };
    of_daemon_set("agent", "", pod)
}

fn needs(node: &Node, pods: &[&Pod], to: i32, deletions: &Deletions) -> bool {
    let pods: Vec<Arc<Pod>> = pods.iter().map(|pod| Arc::new((*pod).clone())).collect();
    needs_taint(node, &pods, &drained_to(to), deletions, Timestamp::UNIX_EPOCH)
}

/// The taint was set with the first DaemonSet entry: a DaemonSet with a higher priority that lost its pod did
/// not get it back, although its turn had not come.
#[test]
fn the_taint_comes_when_the_targets_cover_all_daemon_set_pods_that_it_keeps_away() {
    let (low, high, none) = (pod("low", 10), pod("high", 1000), Deletions::default());
    assert!(!needs(&node(None), &[&low, &high], 10, &none));
    assert!(needs(&node(None), &[&low, &high], 1000, &none));
    assert!(needs(&node(None), &[&low], 10, &none));
    let stops = Pod { deletion_timestamp: Some(Timestamp::UNIX_EPOCH), ..high };
    assert!(!needs(&node(None), &[&low, &stops], 10, &none), "it is to come back");
}

#[test]
fn pods_that_tolerate_the_taint_neither_hold_it_up_nor_need_it() {
    let (low, none) = (pod("low", 10), Deletions::default());
    let tolerates = |priority| Pod { tolerates_drain_taint: true, ..pod("tolerates", priority) };
    assert!(needs(&node(None), &[&low, &tolerates(1000)], 10, &none));
    assert!(!needs(&node(None), &[&tolerates(5)], 10, &none));
}

#[test]
fn pods_of_other_types_and_terminal_ones_play_no_part() {
    let (low, none) = (pod("low", 10), Deletions::default());
    let free = Pod { controller: None, ..pod("free", 1000) };
    let ended = Pod { phase: drydock_runtime::cache::PodPhase::Failed, ..pod("ended", 1000) };
    let gone = Pod { daemon_set_owner: DaemonSetOwner::Gone, ..pod("gone", 1000) };
    let mirror = mirror(pod("mirror", 1000));
    assert!(needs(&node(None), &[&low, &free, &ended, &gone, &mirror], 10, &none));
    assert!(!needs(&node(None), &[&free], 10, &none));
}

/// Without it the lower tier never ends, and the higher ones, for which the taint would wait, are never reached.
#[test]
fn the_taint_comes_before_its_time_for_a_pod_that_has_come_back() {
    let (low, high) = (pod("low", 10), pod("high", 1000));
    let mut deletions = Deletions::default();
    deletions.deleted(&low, Timestamp::UNIX_EPOCH);
    assert!(!needs(&node(None), &[&low, &high], 10, &deletions));
    assert!(needs(&node(None), &[&pod("low-again", 10), &high], 10, &deletions));
}

#[test]
fn the_taint_stays_until_the_drain_of_daemon_sets_ends() {
    let none = Deletions::default();
    assert!(needs(&node(Some(EFFECT)), &[&pod("high", 1000)], 10, &none));
    assert!(!needs_taint(&node(Some(EFFECT)), &[], &NodeTargets::default(), &none, Timestamp::UNIX_EPOCH));
}

/// A target that depends on a label of the pod covers it or not as the label is known: only the labels that are kept were compared.
#[test]
fn a_pod_of_which_more_labels_are_known_is_looked_at_again() {
    let pod = |cut_from: Option<&str>| {
        let labels_cut_from = cut_from.map(Into::into);
        let pod = Pod { node_name: "n".into(), labels_cut_from, ..Pod::default() };
        Some(Arc::new(of_daemon_set("agent", "ds", pod)))
    };
    let nodes = |old, new| nodes_of(&ObjectChange::between(old, new)).map(str::to_owned).collect::<Vec<_>>();
    assert!(
        !nodes(pod(Some("b")), pod(None)).is_empty() && !nodes(pod(Some("b")), pod(Some("c"))).is_empty()
    );
    assert!(nodes(pod(Some("b")), pod(Some("b"))).is_empty());
}
