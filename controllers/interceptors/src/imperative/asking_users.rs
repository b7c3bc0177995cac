//! The users who ask for the eviction of a pod: who added the requesters of its request, and who asks for the maintenances
//! that drain it. Policies and webhooks of the host see them in the annotations of the Eviction.
//!
//! The maintenances are found by the drain targets of the pod's node. The annotation of the request that names some is not
//! read: everybody who may write the request may write it, and it tells who was there when the maintenances asked.

use std::collections::BTreeMap;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::pod_labels::NODE_MAINTENANCE;
use drydock_api::eviction_request::requester_users::{annotations, users_of};
use drydock_runtime::Pod;

use crate::node_targets::{NodeTargets, TargetIndex};

/// Returns the annotations of an Eviction that name the users. `targets` are those of the pod's type. If the request has our
/// requester, and no maintenance drains the pod (any longer), one of the users is not known: who asked is not forgotten because he
/// has completed his maintenance, or the pod has got other labels.
pub(super) fn asking_users(
    request: &EvictionRequest,
    pod: &Pod,
    targets: &TargetIndex,
) -> BTreeMap<String, String> {
    let is_maintained = request.has_requester(NODE_MAINTENANCE);
    let on_node = if is_maintained { targets.on(&pod.node_name) } else { NodeTargets::default() };
    let covering = on_node.covering(pod);
    let mut maintainers = covering.map(|maintenance| maintenance.spec.username.as_str()).peekable();
    // The user of the maintenance that asked is not among those who ask now.
    let unknown = (is_maintained && maintainers.peek().is_none()).then_some("");
    annotations(users_of(request).chain(maintainers).chain(unknown))
}

#[cfg(test)]
mod tests {
    use drydock_api::eviction_request::requester_users::USER_ANNOTATION;
    use drydock_api::eviction_request::{Requester, RequesterUser};
    use drydock_api::metav1::LabelSelector;
    use drydock_api::node_maintenance::{
        DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeReference,
        PodType,
    };
    use drydock_runtime::Store;

    use super::super::testing;
    use super::*;

    const ACCOUNT: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";

    fn maintenance(name: &str, stage: NodeMaintenanceStage, node: &str, priority: i32) -> NodeMaintenance {
        let mut maintenance = NodeMaintenance::default();
        maintenance.metadata.name = name.into();
        (maintenance.spec.stage, maintenance.spec.username) = (stage, format!("user of {name}"));
        maintenance.status.node_statuses = vec![NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: node.into() },
            drain_targets: vec![DrainPlanEntry { pod_priority: priority, ..DrainPlanEntry::default() }],
            ..NodeMaintenanceNodeStatus::default()
        }];
        maintenance
    }

    fn targets(maintenances: impl IntoIterator<Item = NodeMaintenance>) -> TargetIndex {
        let (targets, store) = (TargetIndex::of(PodType::Default), Store::default());
        targets.follow(&store);
        maintenances.into_iter().for_each(|maintenance| store.apply(maintenance));
        targets
    }

    /// The users of an eviction of a pod on n1 with priority 5 that this requester of our account asks for.
    fn users(requester: &str, targets: &TargetIndex) -> Vec<String> {
        let mut request = testing::request("p");
        request.spec.requesters = vec![Requester { name: requester.into() }];
        request.spec.requester_users =
            vec![RequesterUser { requester: requester.into(), username: ACCOUNT.into() }];
        let pod = Pod { node_name: "n1".into(), priority: 5, ..testing::pod("p") };
        let named = asking_users(&request, &pod, targets);
        (0..named.len()).filter_map(|at| named.get(&format!("{USER_ANNOTATION}{at}")).cloned()).collect()
    }

    #[test]
    fn an_eviction_names_who_asks_for_the_maintenances_that_drain_the_pod() {
        let targets = targets([
            maintenance("idle", NodeMaintenanceStage::Cordon, "n1", 5),
            maintenance("elsewhere", NodeMaintenanceStage::Drain, "n2", 5),
            maintenance("not-yet", NodeMaintenanceStage::Drain, "n1", 4),
            maintenance("rack", NodeMaintenanceStage::Drain, "n1", 5),
            maintenance("row", NodeMaintenanceStage::Drain, "n1", 6),
        ]);
        assert_eq!(users(NODE_MAINTENANCE, &targets), [ACCOUNT, "user of rack", "user of row"]);
        assert_eq!(users("r.example.com", &targets), [ACCOUNT], "no maintenance asks");
    }

    /// It was stored before its user was recorded.
    #[test]
    fn an_eviction_says_that_the_user_of_a_maintenance_is_not_known() {
        let mut old = maintenance("old", NodeMaintenanceStage::Drain, "n1", 5);
        old.spec.username.clear();
        assert_eq!(users(NODE_MAINTENANCE, &targets([old])), [ACCOUNT, ""]);
    }

    /// The attempts before our requester was withdrawn named our account alone, and a policy that refuses an eviction if one of
    /// its users may not have it admitted them.
    #[test]
    fn an_eviction_says_that_a_user_is_not_known_if_no_maintenance_drains_the_pod() {
        let complete = maintenance("complete", NodeMaintenanceStage::Complete, "n1", 5);
        let not_yet = maintenance("not-yet", NodeMaintenanceStage::Drain, "n1", 4);
        // The pod had this label when it was asked to leave.
        let app = LabelSelector {
            match_labels: [("app".to_owned(), "db".to_owned())].into(),
            ..LabelSelector::default()
        };
        let mut relabelled = maintenance("relabelled", NodeMaintenanceStage::Drain, "n1", 5);
        relabelled.status.node_statuses[0].drain_targets[0].pod_selector = Some(app);
        for maintenance in [complete, not_yet, relabelled] {
            let name = maintenance.metadata.name.clone();
            assert_eq!(users(NODE_MAINTENANCE, &targets([maintenance])), [ACCOUNT, ""], "{name}");
        }
        assert_eq!(users(NODE_MAINTENANCE, &targets([])), [ACCOUNT, ""], "it was deleted");
    }
}
