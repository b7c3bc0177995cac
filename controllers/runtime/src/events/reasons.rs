//! Reasons of events. Where a condition or a blocker tells the same, the event has its reason.

/// Every selected node is unschedulable.
pub const CORDONED: &str = "Cordoned";
/// The first pods of a maintenance are asked to leave.
pub const DRAIN_STARTED: &str = "DrainStarted";
/// All pods that a maintenance drains have left a node.
pub const NODE_DRAINED: &str = "NodeDrained";
/// A maintenance has released its nodes, but for those that others hold.
pub const COMPLETED: &str = "Completed";
/// Somebody makes a node schedulable that is under maintenance.
pub const CORDON_CONFLICT: &str = "CordonConflict";
/// A maintenance goes further than its own plan says.
pub const DRAIN_FAST_FORWARDED: &str = "DrainFastForwarded";
/// The pods that replace evicted ones find no node.
pub const PODS_UNSCHEDULABLE: &str = "PodsUnschedulable";
/// Something keeps a pod from leaving.
pub const EVICTION_BLOCKED: &str = "EvictionBlocked";
/// Nothing keeps the pod any more.
pub const EVICTION_UNBLOCKED: &str = "EvictionUnblocked";
/// What a drain needs does not fit into the status of its maintenance; also the reason of its condition.
pub const STATUS_TOO_LARGE: &str = "StatusTooLarge";
/// Others take the taint of a node away again and again while DaemonSet pods are drained from it.
pub const TAINT_CONFLICT: &str = "TaintConflict";
/// The clocks of the API server and of this program differ by too much.
pub const CLOCK_SKEW: &str = "ClockSkew";
/// An interceptor of others has begun.
pub const INTERCEPTOR_STARTED: &str = "InterceptorStarted";
/// An interceptor was silent for too long, and is passed over.
pub const INTERCEPTOR_TIMED_OUT: &str = "InterceptorTimedOut";
/// What should register an interceptor is wrong.
pub const INVALID_INTERCEPTOR: &str = "InvalidInterceptor";
