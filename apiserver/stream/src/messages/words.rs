//! Converts values of our objects to protobuf enums. A value that this server does not know becomes `Unspecified` or
//! `Other`.

use drydock_api::eviction_request::blocked::{
    KEEPS_UNHEALTHY, NEVER_ALLOWS, NOT_OBSERVED, SEVERAL_BUDGETS, SHORT_NOW,
};
use drydock_api::node_maintenance::{self, blocker};
use drydock_proto::status::v1alpha1::{BlockReason, BudgetState, EvictionState, PodType, Stage};

pub(super) fn stage(stage: node_maintenance::Stage) -> Stage {
    match stage {
        node_maintenance::Stage::Idle => Stage::Idle,
        node_maintenance::Stage::Cordon => Stage::Cordon,
        node_maintenance::Stage::Drain => Stage::Drain,
        node_maintenance::Stage::Complete => Stage::Complete,
        node_maintenance::Stage::Unknown => Stage::Unspecified,
    }
}

pub(super) fn pod_type(pod_type: node_maintenance::PodType) -> PodType {
    match pod_type {
        node_maintenance::PodType::Default => PodType::Default,
        node_maintenance::PodType::DaemonSet => PodType::DaemonSet,
        node_maintenance::PodType::Static => PodType::Static,
        node_maintenance::PodType::Unknown => PodType::Unspecified,
    }
}

/// Converts the pod type in an EvictionRequest's podInfo.
pub(super) fn pod_type_of(text: &str) -> PodType {
    node_maintenance::PodType::parse(text).map_or(PodType::Unspecified, pod_type)
}

/// Converts the state that `kubectl get` shows too.
pub(super) fn eviction_state(text: &str) -> EvictionState {
    match text {
        "Pending" => EvictionState::Pending,
        "Intercepting" => EvictionState::Intercepting,
        "Evicting" => EvictionState::Evicting,
        "Blocked" => EvictionState::Blocked,
        "Evicted" => EvictionState::Evicted,
        "Canceled" => EvictionState::Canceled,
        _ => EvictionState::Unspecified,
    }
}

pub(super) fn block_reason(text: &str) -> BlockReason {
    match text {
        blocker::POD_DISRUPTION_BUDGET => BlockReason::PodDisruptionBudget,
        blocker::ADMISSION_WEBHOOK => BlockReason::AdmissionWebhook,
        blocker::INTERCEPTOR => BlockReason::Interceptor,
        blocker::TERMINATING => BlockReason::Terminating,
        blocker::FINALIZER => BlockReason::Finalizer,
        blocker::WORKLOAD_POD => BlockReason::WorkloadPod,
        blocker::WORKLOAD_RETURNS => BlockReason::WorkloadReturns,
        blocker::DAEMON_SET_RETURNS => BlockReason::DaemonSetReturns,
        blocker::NODE_UNREACHABLE => BlockReason::NodeUnreachable,
        blocker::NODE_UPDATE_REFUSED => BlockReason::NodeUpdateRefused,
        blocker::NO_NODE_AGENT => BlockReason::NoNodeAgent,
        blocker::REQUEST_WITHDRAWN => BlockReason::RequestWithdrawn,
        blocker::WRONG_TARGET => BlockReason::WrongTarget,
        blocker::NO_SCHEDULABLE_NODE => BlockReason::NoSchedulableNode,
        _ => BlockReason::Other,
    }
}

pub(super) fn budget_state(text: &str) -> BudgetState {
    match text {
        SHORT_NOW => BudgetState::ShortNow,
        NEVER_ALLOWS => BudgetState::NeverAllows,
        SEVERAL_BUDGETS => BudgetState::SeveralBudgets,
        NOT_OBSERVED => BudgetState::NotObserved,
        KEEPS_UNHEALTHY => BudgetState::KeepsUnhealthy,
        _ => BudgetState::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_ours_has_a_value() {
        for reason in blocker::REASONS.iter().filter(|reason| **reason != blocker::OTHER) {
            assert_ne!(block_reason(reason), BlockReason::Other, "{reason}");
        }
        for state in drydock_api::eviction_request::blocked::STATES {
            assert_ne!(budget_state(state), BudgetState::Unspecified, "{state}");
        }
        assert_eq!(pod_type_of("DaemonSet"), PodType::DaemonSet);
    }

    #[test]
    fn a_word_of_a_later_version_has_a_value_that_says_so() {
        assert_eq!(block_reason("Haunted"), BlockReason::Other);
        assert_eq!(budget_state("Haunted"), BudgetState::Unspecified);
        assert_eq!(pod_type_of("Haunted"), PodType::Unspecified);
    }
}
