//! Decides what is to be done about one request that has daemonset.apps.k8s.io among its interceptors. Pure.

use drydock_api::eviction_request::EvictionRequest;
use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_runtime::Pod;
use jiff::Timestamp;

use super::NAME;
use super::deletions::{DeletionTime, Deletions};
use crate::node_targets::NodeTargets;
use crate::target_pod::responsible;

/// What is to be done about the pod of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodAction {
    /// Nothing: we may not act, or the drain targets do not cover the pod.
    Nothing,
    /// The pod belongs to no DaemonSet that is alive: the request names us by mistake, or the DaemonSet is gone.
    Decline,
    /// The pod is gone.
    Gone,
    /// The pod is terminating.
    Terminating,
    /// The pod waits for our taint, which keeps the DaemonSet from putting the pod back, and which the node
    /// does not have yet.
    AwaitTaint,
    /// The pod is to be deleted at this time.
    Delete(DeletionTime),
}

/// Whether we may act on a request. We may in our own turn. We also may in the turn of imperative-eviction,
/// which leaves DaemonSet pods to us, if our turn is over, or if we never had one because a DaemonSet adopted
/// the pod after the interceptors were chosen. In the turn of any other interceptor (which may move data,
/// say) we do not touch the pod. `pod` is none when it is not cached.
pub(super) fn is_ours(request: &EvictionRequest, pod: Option<&Pod>) -> bool {
    let status = &request.status;
    let had_turn = || status.processed_interceptors.iter().any(|p| p == NAME);
    let has_turn = || status.target_interceptors.iter().any(|i| i.name == NAME);
    request.is_wanted()
        && match request.active_interceptor() {
            Some(NAME) => true,
            Some(IMPERATIVE_EVICTION) => {
                pod.is_some_and(|pod| responsible(pod) == Some(NAME)) && (had_turn() || !has_turn())
            }
            _ => false,
        }
}

/// Returns the action. `pod` is the target, none when it is gone or terminal; `on_node` says which pods are
/// being drained from its node; `awaits_taint` says whether the node needs our taint and does not have it
/// yet.
pub(super) fn decide(
    request: &EvictionRequest,
    pod: Option<&Pod>,
    on_node: &NodeTargets,
    awaits_taint: bool,
    deletions: &Deletions,
    now: Timestamp,
) -> PodAction {
    if !is_ours(request, pod) {
        return PodAction::Nothing;
    }
    let Some(pod) = pod else { return PodAction::Gone };
    match responsible(pod) {
        Some(NAME) => {}
        Some(_) => return PodAction::Decline,
        None => return PodAction::Nothing,
    }
    if pod.is_terminating() {
        return PodAction::Terminating;
    }
    if !on_node.covers(pod) {
        return PodAction::Nothing;
    }
    if awaits_taint && !pod.tolerates_drain_taint {
        return PodAction::AwaitTaint;
    }
    PodAction::Delete(deletions.when(pod, now))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use drydock_api::eviction_request::{Interceptor, Requester};
    use drydock_api::node_maintenance::{
        DrainPlanEntry, NodeMaintenance, NodeMaintenanceNodeStatus, NodeMaintenanceStage, NodeReference,
        PodType,
    };
    use drydock_runtime::cache::{DaemonSetOwner, OwnerRef};
    use drydock_runtime::testing::{mirror, of_daemon_set};

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
        of_daemon_set("agent", "ds", Pod { uid: "u".into(), node_name: "n".into(), ..Default::default() })
    }

    fn covered() -> NodeTargets {
        let mut m = NodeMaintenance::default();
        m.spec.stage = NodeMaintenanceStage::Drain;
        m.status.node_statuses = vec![NodeMaintenanceNodeStatus {
            node_ref: NodeReference { name: "n".into() },
            drain_targets: vec![DrainPlanEntry {
                pod_priority: i32::MAX,
                pod_type: PodType::DaemonSet,
                ..Default::default()
            }],
            ..Default::default()
        }];
        NodeTargets::of("n", &[Arc::new(m)])
    }

    fn action(request: &EvictionRequest, pod: Option<&Pod>) -> PodAction {
        decide(request, pod, &covered(), false, &Deletions::default(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_covered_pod_is_deleted_in_our_turn_and_after_it_was_passed_over() {
        assert_eq!(action(&request(NAME, &[OTHER]), Some(&pod())), PodAction::Delete(DeletionTime::Now));
        assert_eq!(
            action(&request(IMPERATIVE_EVICTION, &[OTHER, NAME]), Some(&pod())),
            PodAction::Delete(DeletionTime::Now)
        );
    }

    /// A pod that was covered was deleted at once, in any interceptor's turn: an interceptor that was to move
    /// the pod's data first was cut off.
    #[test]
    fn nothing_is_done_while_another_interceptor_has_its_turn() {
        assert_eq!(action(&request(OTHER, &[]), Some(&pod())), PodAction::Nothing);
        assert_eq!(action(&request(OTHER, &[NAME]), Some(&pod())), PodAction::Nothing);
        assert_eq!(action(&request(IMPERATIVE_EVICTION, &[OTHER]), Some(&pod())), PodAction::Nothing);
    }

    #[test]
    fn a_request_that_was_withdrawn_is_not_ours() {
        let mut request = request(NAME, &[]);
        assert!(is_ours(&request, None));
        request.spec.requesters.clear();
        assert!(!is_ours(&request, None));
    }

    /// This happens after `kubectl delete daemonset --cascade=orphan`, when another DaemonSet adopts the pod:
    /// imperative-eviction left the pod to us, and we did not act because we were not among its interceptors.
    #[test]
    fn a_pod_that_was_adopted_after_its_interceptors_were_chosen_is_deleted() {
        let mut adopted = request(IMPERATIVE_EVICTION, &[OTHER]);
        adopted.status.target_interceptors.retain(|i| i.name != NAME);
        assert_eq!(action(&adopted, Some(&pod())), PodAction::Delete(DeletionTime::Now));
        let free = Pod { controller: None, ..pod() };
        assert_eq!(action(&adopted, Some(&free)), PodAction::Nothing);
        adopted.status.active_interceptors = vec![OTHER.into()];
        assert_eq!(action(&adopted, Some(&pod())), PodAction::Nothing);
    }

    /// The creator of a pod may name any owner. If the host does not serve the owner's version, its garbage
    /// collector does not delete the pod: the pod is evicted like any other.
    #[test]
    fn a_pod_of_a_daemon_set_of_a_version_that_does_not_exist_is_none_of_ours() {
        let owner = OwnerRef { api_version: "apps/v9".into(), ..(*pod().controller.unwrap()).clone() };
        let stray = Pod { controller: Some(owner.into()), ..pod() };
        assert_eq!(stray.pod_type(), PodType::Default);
        assert_eq!(action(&request(NAME, &[OTHER]), Some(&stray)), PodAction::Decline);
        assert_eq!(action(&request(IMPERATIVE_EVICTION, &[OTHER, NAME]), Some(&stray)), PodAction::Nothing);
    }

    /// A DaemonSet that a finalizer keeps looks after no pod: one that named it stayed on a node that was said to be drained.
    #[test]
    fn a_pod_whose_daemon_set_is_gone_is_none_of_ours_and_one_that_is_undecided_is_left_alone() {
        let of = |daemon_set_owner| Pod { daemon_set_owner, ..pod() };
        let ours = request(NAME, &[OTHER]);
        assert_eq!(action(&ours, Some(&of(DaemonSetOwner::Gone))), PodAction::Decline);
        assert_eq!(action(&ours, Some(&of(DaemonSetOwner::Undecided))), PodAction::Nothing);
        let last = request(IMPERATIVE_EVICTION, &[OTHER, NAME]);
        assert_eq!(action(&last, Some(&of(DaemonSetOwner::Undecided))), PodAction::Nothing);
    }

    /// The plan treats it as a static pod: if we deleted it, it would leave in the wrong tier.
    #[test]
    fn a_mirror_pod_is_left_to_the_kubelets_interceptor() {
        let mirror = mirror(pod());
        assert_eq!(action(&request(NAME, &[OTHER]), Some(&mirror)), PodAction::Decline);
        assert_eq!(action(&request(IMPERATIVE_EVICTION, &[OTHER, NAME]), Some(&mirror)), PodAction::Nothing);
    }

    #[test]
    fn a_pod_that_is_not_covered_is_left_alone() {
        let (request, now) = (request(NAME, &[]), Timestamp::UNIX_EPOCH);
        assert_eq!(
            decide(&request, Some(&pod()), &NodeTargets::default(), false, &Deletions::default(), now),
            PodAction::Nothing
        );
    }

    /// The pod was deleted before the taint was set. It came back, was deleted again, and its DaemonSet was
    /// blamed.
    #[test]
    fn a_pod_that_our_taint_keeps_away_is_deleted_when_it_stands() {
        let (request, now) = (request(NAME, &[]), Timestamp::UNIX_EPOCH);
        let action = |pod: Pod| decide(&request, Some(&pod), &covered(), true, &Deletions::default(), now);
        assert_eq!(action(pod()), PodAction::AwaitTaint);
        assert_eq!(
            action(Pod { tolerates_drain_taint: true, ..pod() }),
            PodAction::Delete(DeletionTime::Now)
        );
    }

    #[test]
    fn a_pod_of_no_daemon_set_is_declined_at_once() {
        let stray = Pod { controller: None, ..pod() };
        assert_eq!(action(&request(NAME, &[]), Some(&stray)), PodAction::Decline);
    }

    #[test]
    fn terminating_and_vanished_pods_are_told_apart() {
        let going = Pod { deletion_timestamp: Some(Timestamp::UNIX_EPOCH), ..pod() };
        assert_eq!(action(&request(NAME, &[]), Some(&going)), PodAction::Terminating);
        assert_eq!(action(&request(NAME, &[]), None), PodAction::Gone);
    }
}
