//! What is dropped first, and what is never dropped.
#![allow(clippy::unwrap_used)]

use drydock_api::metav1::LabelSelector;
use drydock_api::node_maintenance::{Blocker, DrainPlanEntry, NodeReference, PodReference, PodType};
use jiff::Timestamp;

use super::*;

const MAX_BYTES: usize = MAX_NODE_STATUSES_BYTES;

fn status(node: usize, blockers: usize, message: usize) -> NodeMaintenanceNodeStatus {
    let blocker = |i: usize| Blocker {
        pod: PodReference { name: "p".repeat(100), ..Default::default() },
        reason: "Other".into(),
        message: "m".repeat(256),
        since_time: Timestamp::from_second(i64::try_from(node * 10 + i).unwrap()).ok(),
    };
    NodeMaintenanceNodeStatus {
        node_ref: NodeReference { name: format!("node-{node:05}") },
        drain_targets: vec![DrainPlanEntry::default(); 3],
        drain_message: "w".repeat(message),
        blockers: (0..blockers).map(blocker).collect(),
        blocked_pods: 7,
        ..Default::default()
    }
}

fn fitted(nodes: usize, blockers: usize, message: usize) -> Fitted {
    let all = (0..nodes).map(|n| status(n, blockers, message)).collect();
    let fitted = fit(all, &HashMap::new(), MAX_BYTES);
    assert_eq!(excess(&fitted.statuses, MAX_BYTES), 0);
    assert_eq!(fitted.left_out + fitted.statuses.len(), nodes);
    fitted
}

#[test]
fn what_fits_stays_as_it_is() {
    let all: Vec<_> = (0..100).map(|n| status(n, 10, 20)).collect();
    assert_eq!(fit(all.clone(), &HashMap::new(), MAX_BYTES), Fitted { statuses: all, ..Fitted::default() });
}

/// Ten blockers on each of 4,000 nodes made a status that was refused forever, and with it everything else in it.
#[test]
fn the_blockers_that_were_seen_last_go_first_and_stay_counted() {
    let fitted = fitted(4000, 1, 20);
    assert_eq!(fitted.left_out, 0);
    let shown: Vec<usize> = fitted.statuses.iter().map(|s| s.blockers.len()).collect();
    assert!(shown.windows(2).all(|w| w[0] >= w[1]) && shown[0] == 1 && shown[3999] == 0);
    assert!(fitted.statuses.iter().all(|s| s.blocked_pods == 7 && !s.drain_message.is_empty()));
}

#[test]
fn messages_go_before_nodes() {
    let fitted = fitted(4000, 0, 300);
    assert_eq!(fitted.left_out, 0);
    assert!(fitted.statuses.iter().all(|s| s.drain_message.is_empty() && !s.drain_targets.is_empty()));
}

#[test]
fn nodes_that_do_not_fit_are_counted() {
    let mut wide: Vec<_> = (0..4000).map(|n| status(n, 0, 0)).collect();
    wide.iter_mut().for_each(|s| s.drain_targets = vec![DrainPlanEntry::default(); 100]);
    let fitted = fit(wide, &HashMap::new(), MAX_BYTES);
    assert!(fitted.left_out > 3000 && excess(&fitted.statuses, MAX_BYTES) == 0 && !fitted.held);
}

/// A status that did not fit lost whole nodes, and with them how far their drain was.
#[test]
fn recorded_targets_stay_where_higher_ones_do_not_fit() {
    let old: Vec<_> = (0..4000).map(|n| status(n, 0, 0)).collect();
    let stored = old.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
    let mut wide = old.clone();
    wide.iter_mut().for_each(|s| s.drain_targets = vec![DrainPlanEntry::default(); 100]);
    let fitted = fit(wide, &stored, MAX_BYTES);
    assert!(fitted.held && fitted.left_out == 0 && fitted.statuses == old);
}

fn target(priority: i32, app: Option<&str>) -> DrainPlanEntry {
    let selector = |app: &str| LabelSelector {
        match_labels: [("app".to_owned(), app.to_owned())].into(),
        ..Default::default()
    };
    DrainPlanEntry { pod_selector: app.map(selector), pod_priority: priority, pod_type: PodType::Default }
}

/// The last targets of a plan with selectors did not fit, though an entry without a selector covers each of
/// them: the drain stopped before its last tiers.
#[test]
fn targets_that_another_covers_are_left_out_where_there_is_no_room() {
    let of = |targets: &[DrainPlanEntry]| {
        let mut all: Vec<_> = (0..4000).map(|n| status(n, 0, 0)).collect();
        all.iter_mut().for_each(|s| s.drain_targets = targets.to_vec());
        all
    };
    let daemon_set = DrainPlanEntry { pod_type: PodType::DaemonSet, ..target(i32::MAX, Some("web")) };
    let needed = [target(5, None), target(6, Some("db")), daemon_set];
    let long = "x".repeat(60);
    let all = [&needed[..], &[target(5, Some(&long)), target(4, Some("web"))]].concat();
    let old = of(&needed);
    let stored = old.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
    assert!(fit(of(&all), &stored, MAX_BYTES) == Fitted { statuses: old.clone(), ..Fitted::default() });
    let few = of(&all).split_off(3000);
    assert!(fit(few.clone(), &stored, MAX_BYTES).statuses == few, "they stay where they fit");
}

/// Stored targets that only just fitted stood beside counts that had grown meanwhile, and the status was refused.
#[test]
fn where_targets_are_held_the_counts_fit_too() {
    let mut old: Vec<_> = (0..4000).map(|n| status(n, 0, 0)).collect();
    let left = MAX_BYTES - json_len(&old);
    old[0].drain_targets.push(target(5, Some(&"x".repeat(left - 100))));
    assert!(excess(&old, MAX_BYTES) == 0 && json_len(&old) > MAX_BYTES - 100);
    let stored = old.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
    let mut wide = old.clone();
    wide.iter_mut().for_each(|s| {
        (s.pods_pending_evacuation, s.pods_evacuating, s.blocked_pods) = (100, 100, 100);
        s.drain_targets.extend(vec![target(6, Some("db")); 5]);
    });
    let fitted = fit(wide, &stored, MAX_BYTES);
    assert!(fitted.held && excess(&fitted.statuses, MAX_BYTES) == 0);
    assert!(fitted.statuses.iter().zip(&old).all(|(new, old)| new.drain_targets == old.drain_targets));
}

/// Several maintenances with many selectors each brought a node more targets than a list of them may have:
/// each write of the status was refused.
#[test]
fn a_node_has_no_more_targets_than_the_api_server_takes() {
    let many = |covered: bool| {
        let apps = (0..=MAX_DRAIN_PLAN).map(|n| target(6, Some(&format!("app-{n}"))));
        NodeMaintenanceNodeStatus {
            drain_targets: apps.chain([target(if covered { 6 } else { 5 }, None)]).collect(),
            ..status(1, 0, 0)
        }
    };
    let old = [status(0, 0, 0), status(1, 0, 0)];
    let stored = old.iter().map(|s| (s.node_ref.name.as_str(), s)).collect();
    let kept = vec![target(6, None)];
    let fitted = fit(vec![status(0, 0, 0), many(true)], &stored, MAX_BYTES);
    assert!(!fitted.held && fitted.statuses[1].drain_targets == kept);
    let fitted = fit(vec![status(0, 0, 0), many(false)], &stored, MAX_BYTES);
    assert!(fitted.held && fitted.statuses == old);
    let fitted = fit(vec![status(0, 0, 0), many(false)], &HashMap::new(), MAX_BYTES);
    assert!(!fitted.held && fitted.left_out == 1 && fitted.statuses == old[..1]);
}
