//! What kubectl shows of an EvictionRequest.

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::interceptors::IMPERATIVE_EVICTION;
use super::types::{CANCELED, EVICTED, EvictionRequest};
use crate::cells::{NONE, age, names, until};

const fn column(name: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, type_: "string", format: "", description, priority }
}

/// Headers.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "Name",
        type_: "string",
        format: "name",
        description: "Name of the request: the pod's UID",
        priority: 0,
    },
    column("Pod", "Pod to be evicted", 0),
    column("Requesters", "Who asks for the eviction", 0),
    column("Active", "Interceptor whose turn it is", 0),
    column("State", "Pending, Intercepting, Evicting, Blocked, Evicted or Canceled", 0),
    column("ETA", "Time until the active interceptor expects to be done", 0),
    column("Age", "Time since the request was made", 0),
    column("Node", "Node of the pod when the first interceptor got its turn", 1),
    column("Heartbeat", "Time since the active interceptor last reported", 1),
    column("Processed", "Interceptors whose turn is over", 1),
    column("Message", "What the active interceptor, or the condition that ended the request, says", 1),
];

/// One cell per column.
pub fn cells(request: &EvictionRequest, now: Timestamp) -> Vec<Value> {
    let active = request.active_interceptor_status();
    let pod = request.spec.target.pod.as_ref().map_or(NONE, |p| p.name.as_str());
    let cells = [
        request.metadata.name.clone(),
        pod.to_owned(),
        names(request.spec.requesters.iter().map(|r| r.name.as_str())),
        request.active_interceptor().unwrap_or(NONE).to_owned(),
        state(request).to_owned(),
        until(active.and_then(|a| a.expected_finish_time), now),
        age(request.metadata.creation_timestamp, now),
        request.status.pod_info.as_ref().map_or(NONE, |pod| shown(&pod.node_name)).to_owned(),
        age(active.and_then(|a| a.heartbeat_time), now),
        names(request.status.processed_interceptors.iter().map(String::as_str)),
        message(request).to_owned(),
    ];
    cells.into_iter().map(Value::from).collect()
}

fn shown(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

/// The request's state in a word.
pub fn state(request: &EvictionRequest) -> &'static str {
    if request.is_evicted() {
        return "Evicted";
    }
    if request.is_canceled() {
        return "Canceled";
    }
    match request.active_interceptor() {
        None => "Pending",
        Some(_) if request.active_interceptor_status().is_some_and(|a| a.blocked.is_some()) => "Blocked",
        Some(IMPERATIVE_EVICTION) => "Evicting",
        Some(_) => "Intercepting",
    }
}

/// What ended the request, or else what the active interceptor says: conditions of other types are an interceptor's own.
fn message(request: &EvictionRequest) -> &str {
    let conditions = &request.status.conditions;
    let ended = conditions.iter().find(|c| c.is_true() && [EVICTED, CANCELED].contains(&c.type_.as_str()));
    ended.map_or_else(|| said(request), |c| c.message.as_str())
}

/// What the active interceptor says.
fn said(request: &EvictionRequest) -> &str {
    request.active_interceptor_status().map_or("", |active| active.message.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// An interceptor may set conditions of its own, and one of them hid that the eviction was blocked.
    #[test]
    fn a_condition_of_an_interceptor_hides_neither_state_nor_message() {
        let message_of_it = "PodDisruptionBudget b allows 0";
        let status = json!({
            "activeInterceptors": [IMPERATIVE_EVICTION],
            "interceptors": [{ "name": IMPERATIVE_EVICTION, "message": message_of_it, "blocked": { "reason": "PodDisruptionBudget" } }],
            "conditions": [{ "type": "a.example.com/Done", "status": "True", "reason": "Done", "message": "it is leaving" }],
        });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!((state(&request), message(&request)), ("Blocked", message_of_it));
        request.status.conditions[0].type_ = CANCELED.into();
        assert_eq!((state(&request), message(&request)), ("Canceled", "it is leaving"));
    }

    /// What imperative eviction said was read: another interceptor that said it was not blocked, and was shown so.
    #[test]
    fn state_and_node_are_those_that_the_status_has_for_programs() {
        let words = "Could not evict a pod due to failing eviction requests, number of retries: 7";
        let status = json!({
            "activeInterceptors": [IMPERATIVE_EVICTION],
            "interceptors": [{ "name": IMPERATIVE_EVICTION, "message": words }],
            "podInfo": { "nodeName": "n1", "priority": 5, "podType": "Default" },
        });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!(state(&request), "Evicting");
        let node = COLUMNS.iter().position(|column| column.name == "Node").unwrap();
        assert_eq!(cells(&request, Timestamp::UNIX_EPOCH)[node], "n1");
        assert_eq!(cells(&EvictionRequest::default(), Timestamp::UNIX_EPOCH)[node], NONE);
    }
}
