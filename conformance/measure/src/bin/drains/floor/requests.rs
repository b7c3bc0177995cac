//! The statuses that our controllers write for a plain pod (`controllers/eviction`).

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// The interceptor of a plain pod (KEP-4563).
const INTERCEPTOR: &str = "imperative-eviction.k8s.io";

/// The first turn: that of the only interceptor.
pub fn first_turn(pod: &Pod, generation: Option<i64>) -> Value {
    json!({
        "targetInterceptors": [{"name": INTERCEPTOR}],
        "interceptors": [{"name": INTERCEPTOR, "message": ""}],
        "activeInterceptors": [INTERCEPTOR],
        "activationTime": now(6),
        "observedGeneration": generation,
        "podInfo": {"nodeName": node(pod), "priority": 0, "podType": "Default"},
    })
}

/// The end: the pod is gone.
pub fn end(generation: Option<i64>) -> Value {
    let evicted = json!({
        "type": "Evicted", "status": "True", "reason": "PodDeleted", "message": "Target Pod has been deleted.",
        "observedGeneration": generation, "lastTransitionTime": now(0),
    });
    json!({"activeInterceptors": null, "processedInterceptors": [INTERCEPTOR], "conditions": [evicted]})
}

/// The node of a pod.
pub fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// The present time, with so many digits of the second.
fn now(digits: usize) -> String {
    format!("{:.digits$}", Timestamp::now())
}
