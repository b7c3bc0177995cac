//! Decides which finished requests are kept for a while after the pod is gone, because its owner was notified of
//! them. The decision uses stored data only, so a new leader makes the same one.

use std::time::Duration;

use jiff::Timestamp;

use super::conditions::EVICTED;
use super::interceptors::{KUBELET, is_default};
use super::transitions::passed_over;
use super::types::EvictionRequest;
use drydock_machinery::metav1::find_condition;

/// How long an interceptor may be silent from the beginning of its turn before messages say that it has never
/// reported. A node agent counts as missing after this time.
pub const FIRST_REPORT: Duration = Duration::from_secs(10);

/// Until when an evicted request is kept because the pod's owner was notified of it. `None` for any other request,
/// which is deleted at once. For `silent_after` see [`agent_is_missing`].
pub fn kept_until(
    request: &EvictionRequest,
    retention: Duration,
    silent_after: Duration,
) -> Option<Timestamp> {
    let evicted_at = request.evicted_at().filter(|_| owner_was_notified(request, silent_after))?;
    Some(evicted_at.checked_add(retention).unwrap_or(Timestamp::MAX))
}

/// Whether the pod's owner was notified by an event: a default interceptor reported that it was blocked, an
/// interceptor that is not a default one had a turn, or no node agent responded for a static pod.
fn owner_was_notified(request: &EvictionRequest, silent_after: Duration) -> bool {
    let status = &request.status;
    let mut had_a_turn = status.processed_interceptors.iter().chain(&status.active_interceptors);
    had_a_turn.any(|name| !is_default(name))
        || status.interceptors.iter().any(|entry| entry.last_blocked.is_some())
        || lacked_an_agent(request, silent_after)
}

fn lacked_an_agent(request: &EvictionRequest, silent_after: Duration) -> bool {
    request.evicted_at().is_some_and(|end| agent_is_missing(request, silent_after, end))
}

/// Whether, at the time `at`, the node agent had been passed over, or had been active for `silent_after` without
/// starting. The pod's owner is then notified.
pub fn agent_is_missing(request: &EvictionRequest, silent_after: Duration, at: Timestamp) -> bool {
    if passed_over(request).any(|name| name == KUBELET) {
        return true;
    }
    // A request that ends also ends the turn of the active interceptor.
    let status = &request.status;
    let turn = status.active_interceptors.first().or(status.processed_interceptors.last());
    let is_silent = request
        .interceptor(KUBELET)
        .is_some_and(|entry| entry.start_time.is_none() && entry.completion_time.is_none());
    let missing_at = status.activation_time.and_then(|begun| begun.checked_add(silent_after).ok());
    turn.is_some_and(|name| name == KUBELET) && is_silent && missing_at.is_some_and(|missing| missing <= at)
}

impl EvictionRequest {
    /// When the pod was gone; `None` if it is not. A condition without a time counts as the oldest.
    pub fn evicted_at(&self) -> Option<Timestamp> {
        let evicted = find_condition(&self.status.conditions, EVICTED).filter(|c| c.is_true())?;
        Some(evicted.last_transition_time.unwrap_or(Timestamp::MIN))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::super::interceptors::{DAEMON_SET, IMPERATIVE_EVICTION};
    use super::*;

    const END: &str = "2026-01-01T12:01:00Z";

    fn until(mut status: Value) -> Option<String> {
        let mut request = EvictionRequest::named("ns", "uid");
        status["activationTime"] = "2026-01-01T12:00:00.000000Z".into();
        if status.get("conditions").is_none() {
            status["conditions"] =
                json!([{ "type": "Evicted", "status": "True", "lastTransitionTime": END }]);
        }
        request.status = serde_json::from_value(status).unwrap();
        kept_until(&request, Duration::from_secs(3600), FIRST_REPORT).map(|at| at.to_string())
    }

    fn kept() -> Option<String> {
        Some("2026-01-01T13:01:00Z".to_owned())
    }

    #[test]
    fn a_plain_eviction_and_a_queue_are_not_kept() {
        let queued = json!({ "reason": "PodDisruptionBudget", "state": "ShortNow" });
        let entry = json!({ "name": IMPERATIVE_EVICTION, "message": "m", "blocked": queued });
        assert_eq!(until(json!({ "processedInterceptors": [DAEMON_SET, IMPERATIVE_EVICTION] })), None);
        let status = json!({ "processedInterceptors": [IMPERATIVE_EVICTION], "interceptors": [entry] });
        assert_eq!(until(status), None);
    }

    #[test]
    fn what_was_told_is_kept_when_it_is_over_and_from_the_eviction_alone() {
        let told = json!({ "reason": "AdmissionWebhook" });
        let entry = json!({ "name": IMPERATIVE_EVICTION, "message": "m", "lastBlocked": told });
        let mut status = json!({ "processedInterceptors": [IMPERATIVE_EVICTION], "interceptors": [entry] });
        assert_eq!(until(status.clone()), kept());
        for (type_, value) in [("Evicted", "False"), ("Canceled", "True")] {
            status["conditions"] = json!([{ "type": type_, "status": value, "lastTransitionTime": END }]);
            assert_eq!(until(status.clone()), None);
        }
    }

    #[test]
    fn an_interceptor_of_others_is_reported_from_its_turn_on() {
        assert_eq!(until(json!({ "processedInterceptors": ["deployment.apps.k8s.io"] })), kept());
        assert_eq!(until(json!({ "activeInterceptors": ["saver.example.com"] })), kept());
        assert_eq!(until(json!({ "targetInterceptors": [{ "name": "saver.example.com" }] })), None);
    }

    #[test]
    fn a_static_pod_without_an_agent_is_kept_and_one_whose_agent_was_quick_is_not() {
        let agent = |processed: Value, entry: Value, end: &str| {
            let evicted = json!([{ "type": "Evicted", "status": "True", "lastTransitionTime": end }]);
            let status =
                json!({ "processedInterceptors": processed, "interceptors": [entry], "conditions": evicted });
            until(status).is_some()
        };
        let silent = json!({ "name": KUBELET, "message": "" });
        let quick = json!({ "name": KUBELET, "message": "", "startTime": "2026-01-01T12:00:01Z" });
        let declined = json!({ "name": KUBELET, "message": "", "completionTime": "2026-01-01T12:00:01Z" });
        let (soon, late) = ("2026-01-01T12:00:05Z", "2026-01-01T12:00:11Z");
        assert!(agent(json!([KUBELET]), silent.clone(), late));
        assert!(agent(json!([KUBELET, IMPERATIVE_EVICTION]), silent.clone(), soon));
        assert!(!agent(json!([KUBELET]), silent, soon));
        assert!(!agent(json!([KUBELET]), quick, late));
        assert!(!agent(json!([KUBELET, IMPERATIVE_EVICTION]), declined, late), "it has answered");
    }
}
