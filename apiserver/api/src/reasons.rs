//! Reasons why a pod stays on its node, and states of the budgets that keep it there. Both kinds use them: `reason` of a
//! blocker of a NodeMaintenance, and `reason` and `state` of `blocked` in an EvictionRequest. Interceptors of others may
//! write other values, and readers must accept values that they do not know.

/// A PodDisruptionBudget allows no eviction, or several cover the pod.
pub const POD_DISRUPTION_BUDGET: &str = "PodDisruptionBudget";
/// An admission webhook or policy refuses the eviction.
pub const ADMISSION_WEBHOOK: &str = "AdmissionWebhook";
/// An interceptor is silent or late, or reports that it is blocked.
pub const INTERCEPTOR: &str = "Interceptor";
/// The pod has been terminating for longer than its grace period, or its grace period is very long.
pub const TERMINATING: &str = "Terminating";
/// Finalizers keep the terminating pod, or keep its EvictionRequest that is being deleted.
pub const FINALIZER: &str = "Finalizer";
/// The pod belongs to a group that cannot be evicted pod by pod.
pub const WORKLOAD_POD: &str = "WorkloadPod";
/// A workload, or an unknown creator, puts new pods on the node.
pub const WORKLOAD_RETURNS: &str = "WorkloadReturns";
/// A DaemonSet that tolerates the drain taint puts new pods on the node.
pub const DAEMON_SET_RETURNS: &str = "DaemonSetReturns";
/// The kubelet of the node does not respond, and the pod cannot finish terminating.
pub const NODE_UNREACHABLE: &str = "NodeUnreachable";
/// The node cannot be made unschedulable, or cannot be given the drain taint.
pub const NODE_UPDATE_REFUSED: &str = "NodeUpdateRefused";
/// No agent on the node stops static pods.
pub const NO_NODE_AGENT: &str = "NoNodeAgent";
/// Other clients remove the requester from the pod's EvictionRequest, or delete the request.
pub const REQUEST_WITHDRAWN: &str = "RequestWithdrawn";
/// The EvictionRequest with the name that this pod needs is for another pod.
pub const WRONG_TARGET: &str = "WrongTarget";
/// The pod belongs to Drydock, and no other node accepts pods.
pub const NO_SCHEDULABLE_NODE: &str = "NoSchedulableNode";
/// Something else.
pub const OTHER: &str = "Other";

/// All reasons. `kubectl explain`, the guide ('Stuck: what now') and the status stream list them too; tests name the place
/// that misses one, and `conformance/stream-clients/generate` makes the clients again.
pub const REASONS: [&str; 15] = [
    POD_DISRUPTION_BUDGET,
    ADMISSION_WEBHOOK,
    INTERCEPTOR,
    TERMINATING,
    FINALIZER,
    WORKLOAD_POD,
    WORKLOAD_RETURNS,
    DAEMON_SET_RETURNS,
    NODE_UNREACHABLE,
    NODE_UPDATE_REFUSED,
    NO_NODE_AGENT,
    REQUEST_WITHDRAWN,
    WRONG_TARGET,
    NO_SCHEDULABLE_NODE,
    OTHER,
];

/// State of a budget: too few of its pods are healthy at present.
pub const SHORT_NOW: &str = "ShortNow";
/// State of a budget: it requires at least as many healthy pods as exist.
pub const NEVER_ALLOWS: &str = "NeverAllows";
/// State of budgets: more than one covers the pod, which the eviction API does not support.
pub const SEVERAL_BUDGETS: &str = "SeveralBudgets";
/// State of a budget: its controller has not observed its current spec.
pub const NOT_OBSERVED: &str = "NotObserved";
/// State of a budget: the pod is not ready, and unhealthyPodEvictionPolicy does not allow its eviction until the
/// budget is met.
pub const KEEPS_UNHEALTHY: &str = "KeepsUnhealthy";

/// All states of budgets.
pub const STATES: [&str; 5] = [SHORT_NOW, NEVER_ALLOWS, SEVERAL_BUDGETS, NOT_OBSERVED, KEEPS_UNHEALTHY];
