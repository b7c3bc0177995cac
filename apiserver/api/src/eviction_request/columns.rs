//! What kubectl shows of an EvictionRequest.

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::interceptors::IMPERATIVE_EVICTION;
use super::refusal;
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
        Some(IMPERATIVE_EVICTION) if refusal::read(said(request)).is_some() => "Blocked",
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

    use super::super::refusal::RefusedBy;
    use super::*;

    /// An interceptor may set conditions of its own, and one of them hid that the eviction was blocked.
    #[test]
    fn a_condition_of_an_interceptor_hides_neither_state_nor_message() {
        let blocked = refusal::message(3, Some((RefusedBy::Budget, "PodDisruptionBudget b allows 0")));
        let status = json!({
            "activeInterceptors": [IMPERATIVE_EVICTION],
            "interceptors": [{ "name": IMPERATIVE_EVICTION, "message": blocked }],
            "conditions": [{ "type": "a.example.com/Done", "status": "True", "reason": "Done", "message": "it is leaving" }],
        });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!((state(&request), message(&request)), ("Blocked", blocked.as_str()));
        request.status.conditions[0].type_ = CANCELED.into();
        assert_eq!((state(&request), message(&request)), ("Canceled", "it is leaving"));
    }
}
