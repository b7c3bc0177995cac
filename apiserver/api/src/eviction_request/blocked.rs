//! The values of `blocked` that Drydock writes: what keeps an interceptor from evicting the pod, for programs. Other
//! interceptors may write other values, and readers must accept values that they do not know.

/// The reasons that Drydock's interceptors give. `name` is that of the budget (with its `state`), webhook or policy,
/// DaemonSet or node, or of the first finalizer.
pub use crate::node_maintenance::blocker::{
    ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, FINALIZER, NODE_UPDATE_REFUSED, OTHER, POD_DISRUPTION_BUDGET,
    TERMINATING,
};

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

/// All states of a budget.
pub const STATES: [&str; 5] = [SHORT_NOW, NEVER_ALLOWS, SEVERAL_BUDGETS, NOT_OBSERVED, KEEPS_UNHEALTHY];

/// Maximum number of characters of a reason, a state and a pod type.
pub const MAX_REASON: usize = 64;
/// Maximum number of characters of a name, which can be those of two budgets, or that of a finalizer.
pub const MAX_NAME: usize = 512;
