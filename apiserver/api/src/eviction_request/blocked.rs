//! What keeps an interceptor from evicting the pod, in words for programs: the values of `blocked` that are ours. Others may
//! write more, and readers accept what they do not know.

/// The reasons that our interceptors give. `name` says which budget (with its `state`), webhook or policy, DaemonSet or node it
/// is, or names the first finalizer.
pub use crate::node_maintenance::blocker::{
    ADMISSION_WEBHOOK, DAEMON_SET_RETURNS, FINALIZER, NODE_UPDATE_REFUSED, OTHER, POD_DISRUPTION_BUDGET,
    TERMINATING,
};

/// State of a budget: too few of its pods are healthy now.
pub const SHORT_NOW: &str = "ShortNow";
/// State of a budget: it wants as many healthy pods as there are, or more.
pub const NEVER_ALLOWS: &str = "NeverAllows";
/// State of budgets: more than one covers the pod, which the eviction API does not support.
pub const SEVERAL_BUDGETS: &str = "SeveralBudgets";
/// State of a budget: its controller has not seen its spec.
pub const NOT_OBSERVED: &str = "NotObserved";
/// State of a budget: the pod is not ready, and unhealthyPodEvictionPolicy keeps it until the budget is met.
pub const KEEPS_UNHEALTHY: &str = "KeepsUnhealthy";

/// All states of a budget.
pub const STATES: [&str; 5] = [SHORT_NOW, NEVER_ALLOWS, SEVERAL_BUDGETS, NOT_OBSERVED, KEEPS_UNHEALTHY];

/// Most characters of a reason, a state and a type of pods.
pub const MAX_WORD: usize = 64;
/// Most characters of a name: of two budgets, or of a finalizer.
pub const MAX_NAME: usize = 512;
