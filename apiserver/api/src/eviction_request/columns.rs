//! What kubectl shows of an EvictionRequest.

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::interceptors::IMPERATIVE_EVICTION;
use super::types::EvictionRequest;
use crate::cells::{NONE, age, names, until};

/// Beginning of the message with which imperative eviction says that it is refused (KEP-4563, Eviction).
pub const BLOCKED_MESSAGE: &str =
    "Could not evict a pod due to failing eviction requests, number of retries: ";

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
        age(active.and_then(|a| a.heartbeat_time), now),
        names(request.status.processed_interceptors.iter().map(String::as_str)),
        message(request).to_owned(),
    ];
    cells.into_iter().map(Value::from).collect()
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
        Some(IMPERATIVE_EVICTION) if message(request).starts_with(BLOCKED_MESSAGE) => "Blocked",
        Some(IMPERATIVE_EVICTION) => "Evicting",
        Some(_) => "Intercepting",
    }
}

fn message(request: &EvictionRequest) -> &str {
    let ended = request.status.conditions.iter().find(|c| c.is_true());
    let active = request.active_interceptor_status().map(|a| a.message.as_str());
    ended.map(|c| c.message.as_str()).or(active).unwrap_or_default()
}
