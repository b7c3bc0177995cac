//! Converts values of our objects to protobuf: times, texts cut to their limits, and enums, of which a value that this
//! server does not know becomes `Unspecified` or `Other`.
//!
//! gRPC clients accept messages of 4 MiB by default; an object, or all objects that concern one node, may be larger.

use drydock_api::node_maintenance;
use drydock_api::reasons::{self, KEEPS_UNHEALTHY, NEVER_ALLOWS, NOT_OBSERVED, SEVERAL_BUDGETS, SHORT_NOW};
use drydock_proto::prost_types;
use drydock_proto::status::v1alpha1::{BlockReason, BudgetState, EvictionState, PodType, Stage};
use jiff::Timestamp;
use prost::Message;

/// Maximum bytes of a text for people, as of the message of a condition in Kubernetes.
const TEXT_MAX: usize = 32 << 10;
/// Maximum bytes of a name in Kubernetes.
const NAME_MAX: usize = 253;
/// Maximum bytes of the list of pods left by plan entry.
pub(super) const PODS_LEFT_MAX: usize = 256 << 10;
/// Maximum bytes of the progress of all maintenances on a node.
pub(super) const PROGRESS_MAX: usize = 3 << 20;

pub(super) fn stage(stage: node_maintenance::NodeMaintenanceStage) -> Stage {
    match stage {
        node_maintenance::NodeMaintenanceStage::Idle => Stage::Idle,
        node_maintenance::NodeMaintenanceStage::Cordon => Stage::Cordon,
        node_maintenance::NodeMaintenanceStage::Drain => Stage::Drain,
        node_maintenance::NodeMaintenanceStage::Complete => Stage::Complete,
        node_maintenance::NodeMaintenanceStage::Unknown => Stage::Unspecified,
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
        reasons::POD_DISRUPTION_BUDGET => BlockReason::PodDisruptionBudget,
        reasons::ADMISSION_WEBHOOK => BlockReason::AdmissionWebhook,
        reasons::INTERCEPTOR => BlockReason::Interceptor,
        reasons::TERMINATING => BlockReason::Terminating,
        reasons::FINALIZER => BlockReason::Finalizer,
        reasons::WORKLOAD_POD => BlockReason::WorkloadPod,
        reasons::WORKLOAD_RETURNS => BlockReason::WorkloadReturns,
        reasons::DAEMON_SET_RETURNS => BlockReason::DaemonSetReturns,
        reasons::NODE_UNREACHABLE => BlockReason::NodeUnreachable,
        reasons::NODE_UPDATE_REFUSED => BlockReason::NodeUpdateRefused,
        reasons::NO_NODE_AGENT => BlockReason::NoNodeAgent,
        reasons::REQUEST_WITHDRAWN => BlockReason::RequestWithdrawn,
        reasons::WRONG_TARGET => BlockReason::WrongTarget,
        reasons::NO_SCHEDULABLE_NODE => BlockReason::NoSchedulableNode,
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

/// Converts a time to protobuf.
pub fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

/// Returns the sum of counts, which saturates.
pub(super) fn count(of: impl Iterator<Item = i32>) -> i32 {
    of.fold(0, i32::saturating_add)
}

/// Returns a text for people, cut if it is too long.
pub(super) fn text(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT_MAX)].to_owned()
}

/// Returns a name, cut if it is too long for one.
pub(super) fn name(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_MAX)].to_owned()
}

/// Whether a name is not too long for one.
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX
}

/// Returns as many of the first messages as have at most `most` bytes together.
pub(super) fn first<M: Message>(messages: impl IntoIterator<Item = M>, most: usize) -> Vec<M> {
    let mut bytes = 0;
    let has_room = |message: &M| {
        // Its tag and its length.
        bytes += message.encoded_len() + 6;
        bytes <= most
    };
    messages.into_iter().take_while(has_room).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_ours_has_a_value() {
        for reason in reasons::REASONS.iter().filter(|reason| **reason != reasons::OTHER) {
            assert_ne!(block_reason(reason), BlockReason::Other, "{reason}");
        }
        for state in reasons::STATES {
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
