//! What is to be done about one request that has daemonset.apps.k8s.io among its interceptors. Pure.

use std::sync::Arc;

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::node_maintenance::NodeMaintenance;
use drydock_runtime::Pod;
use jiff::Timestamp;

use super::NAME;
use super::returns::{Returns, When};
use super::targets::covering;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing: it is not our turn, or the pod is not covered.
    Nothing,
    /// The pod is no DaemonSet's: somebody named us in error.
    Decline,
    /// The pod is gone.
    Gone,
    /// The pod is on its way out.
    Terminating,
    /// The pod is to be deleted now.
    Delete,
    /// The deletion is sent, and shows in the cache by then.
    Sent { until: Timestamp },
    /// The DaemonSet puts new pods there as fast as they are deleted: no deletion before then.
    Wait { until: Timestamp, times: u32 },
}

/// Whether the request has us among its interceptors and is under way.
pub(super) fn is_ours(request: &EvictionRequest) -> bool {
    request.is_wanted() && request.status.target_interceptors.iter().any(|i| i.name == NAME)
}

/// Whether we may act: it is our turn; or it was, and it is that of imperative-eviction, which leaves DaemonSet pods
/// to us. While another interceptor has its turn (to move data, say), nobody else touches the pod.
pub(super) fn may_act(request: &EvictionRequest) -> bool {
    match request.active_interceptor() {
        Some(NAME) => true,
        Some(IMPERATIVE_EVICTION) => request.status.processed_interceptors.iter().any(|p| p == NAME),
        _ => false,
    }
}

/// Decides. `pod` is the target, none when it is gone or terminal.
pub(super) fn decide(
    request: &EvictionRequest,
    pod: Option<&Pod>,
    maintenances: &[Arc<NodeMaintenance>],
    returns: &Returns,
    now: Timestamp,
) -> Deed {
    if !may_act(request) {
        return Deed::Nothing;
    }
    let Some(pod) = pod else { return Deed::Gone };
    let Some(daemon_set) = pod.daemon_set() else { return Deed::Decline };
    if pod.is_terminating() {
        return Deed::Terminating;
    }
    if covering(pod, maintenances).is_empty() {
        return Deed::Nothing;
    }
    match returns.when(&pod.node_name, &daemon_set, &pod.uid, now) {
        When::Now => Deed::Delete,
        When::Sent { until } => Deed::Sent { until },
        When::Later { until, times } => Deed::Wait { until, times },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use drydock_api::eviction_request::{Interceptor, Requester};
    use drydock_api::node_maintenance::{
        DrainPlanEntry, NodeMaintenanceNodeStatus, NodeReference, PodType, Stage,
    };
    use drydock_runtime::cache::OwnerRef;

    use super::*;

    const OTHER: &str = "migrate.example.com";

    fn request(active: &str, processed: &[&str]) -> EvictionRequest {
        let mut request = EvictionRequest::named("ns", "u");
        let named = |name: &&str| Interceptor { name: (*name).into() };
        request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
        request.status.target_interceptors = [OTHER, NAME, IMPERATIVE_EVICTION].iter().map(named).collect();
        request.status.active_interceptors = vec![active.into()];
        request.status.processed_interceptors = processed.iter().map(|p| (*p).into()).collect();
        request
    }

    fn pod() -> Pod {
        let owner =
            OwnerRef { api_version: "apps/v1".into(), kind: "DaemonSet".into(), ..Default::default() };
        Pod { uid: "u".into(), node_name: "n".into(), controller: Some(owner), ..Default::default() }
    }

    fn covered() -> [Arc<NodeMaintenance>; 1] {
        let mut m = NodeMaintenance::default();
        m.spec.stage = Stage::Drain;
        m.status.node_statuses = vec![NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: "n".into() },
            drain_targets: vec![DrainPlanEntry {
                pod_priority: i32::MAX,
                pod_type: PodType::DaemonSet,
                ..Default::default()
            }],
            ..Default::default()
        }];
        [Arc::new(m)]
    }

    fn deed(request: &EvictionRequest, pod: Option<&Pod>) -> Deed {
        decide(request, pod, &covered(), &Returns::default(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_covered_pod_is_deleted_in_our_turn_and_after_it_was_passed_over() {
        assert_eq!(deed(&request(NAME, &[OTHER]), Some(&pod())), Deed::Delete);
        assert_eq!(deed(&request(IMPERATIVE_EVICTION, &[OTHER, NAME]), Some(&pod())), Deed::Delete);
    }

    /// A pod that was covered was deleted at once, whoever's turn it was: an interceptor that was to move the pod's data
    /// first was cut off.
    #[test]
    fn nothing_is_done_while_another_interceptor_has_its_turn() {
        assert_eq!(deed(&request(OTHER, &[]), Some(&pod())), Deed::Nothing);
        assert_eq!(deed(&request(OTHER, &[NAME]), Some(&pod())), Deed::Nothing);
        assert_eq!(deed(&request(IMPERATIVE_EVICTION, &[OTHER]), Some(&pod())), Deed::Nothing);
    }

    #[test]
    fn a_request_that_was_withdrawn_is_not_ours() {
        let mut request = request(NAME, &[]);
        assert!(is_ours(&request));
        request.spec.requesters.clear();
        assert!(!is_ours(&request));
    }

    #[test]
    fn a_pod_that_is_not_covered_is_left_alone() {
        let deed = decide(&request(NAME, &[]), Some(&pod()), &[], &Returns::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(deed, Deed::Nothing);
    }

    #[test]
    fn a_pod_of_no_daemon_set_is_declined_at_once() {
        let stray = Pod { controller: None, ..pod() };
        assert_eq!(deed(&request(NAME, &[]), Some(&stray)), Deed::Decline);
    }

    #[test]
    fn terminating_and_vanished_pods_are_told_apart() {
        let going = Pod { deletion_timestamp: Some(Timestamp::UNIX_EPOCH), ..pod() };
        assert_eq!(deed(&request(NAME, &[]), Some(&going)), Deed::Terminating);
        assert_eq!(deed(&request(NAME, &[]), None), Deed::Gone);
    }
}
