//! The statuses that our controllers write for a plain pod (`controllers/eviction`).

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::{EVICTED, REASON_POD_DELETED};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// The first turn: that of the only interceptor.
pub fn first_turn(pod: &Pod, generation: Option<i64>) -> Value {
    json!({
        "targetInterceptors": [{"name": IMPERATIVE_EVICTION}],
        "interceptors": [{"name": IMPERATIVE_EVICTION, "message": ""}],
        "activeInterceptors": [IMPERATIVE_EVICTION],
        "activationTime": now(6),
        "observedGeneration": generation,
        "podInfo": {"nodeName": node(pod), "priority": 0, "podType": "Default"},
    })
}

/// The end: the pod is gone.
pub fn end(generation: Option<i64>) -> Value {
    let evicted = json!({
        "type": EVICTED, "status": "True", "reason": REASON_POD_DELETED, "message": "Target Pod has been deleted.",
        "observedGeneration": generation, "lastTransitionTime": now(0),
    });
    json!({"activeInterceptors": null, "processedInterceptors": [IMPERATIVE_EVICTION], "conditions": [evicted]})
}

/// The node of a pod.
pub fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The present time, with so many digits of the second.
fn now(digits: usize) -> String {
    format!("{:.digits$}", Timestamp::now())
}
