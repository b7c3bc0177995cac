//! The table columns of EvictionRequest, as kubectl shows them.

use std::borrow::Cow;
use std::time::Duration;

use drydock_machinery::kind::Column;
use jiff::Timestamp;
use serde_json::Value;

use super::conditions::{CANCELED, EVICTED};
use super::interceptors::{IMPERATIVE_EVICTION, is_default};
use super::maintenances::{self, with_clause, without_clause};
use super::transitions::{active_deadline, passed_over, ran_out_of_time};
use super::types::{EvictionRequest, InterceptorStatus};
use drydock_machinery::cells::{NONE, age, names, until};
use drydock_machinery::metav1::time::format_seconds;

const fn column(name: &'static str, description: &'static str, priority: i32) -> Column {
    Column { name, type_: "string", format: "", description, priority }
}

/// The columns, without their cells.
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
    column(
        "ETA",
        "Time until the active interceptor expects to be done, or is passed over if it never reports",
        0,
    ),
    column("Age", "Time since the request was made", 0),
    column("Node", "Node of the pod when the first interceptor got its turn", 1),
    column("Maintenance", "NodeMaintenances that the request was made for", 1),
    column("Heartbeat", "Time since the active interceptor last reported", 1),
    column("Processed", "Interceptors whose turn is over", 1),
    column(
        "Message",
        "Why there is a request, and what the active interceptor, or the condition that ended it, says",
        1,
    ),
];

/// Returns one cell for each column. `heartbeat_deadline` is how long an interceptor may be silent before it is
/// passed over.
pub fn cells(request: &EvictionRequest, now: Timestamp, heartbeat_deadline: Duration) -> Vec<Value> {
    let active = request.active_interceptor_status();
    let maintenances = maintenances::of(request);
    let pod = request.spec.target.pod.as_ref().map_or(NONE, |p| p.name.as_str());
    let cells = [
        request.metadata.name.clone(),
        pod.to_owned(),
        names(request.spec.requesters.iter().map(|r| r.name.as_str())),
        request.active_interceptor().unwrap_or(NONE).to_owned(),
        state(request).to_owned(),
        until(active.and_then(|a| expected(request, a, heartbeat_deadline)), now),
        age(request.metadata.creation_timestamp, now),
        request.status.pod_info.as_ref().map_or(NONE, |pod| shown(&pod.node_name)).to_owned(),
        names(maintenances.iter().map(|maintenance| maintenance.name.as_str())),
        age(active.and_then(|a| a.heartbeat_time), now),
        names(request.status.processed_interceptors.iter().map(String::as_str)),
        message(request),
    ];
    cells.into_iter().map(Value::from).collect()
}

fn shown(text: &str) -> &str {
    if text.is_empty() { NONE } else { text }
}

/// When the active interceptor expects to finish. If it has never reported, when it will be passed over.
fn expected(
    request: &EvictionRequest,
    active: &InterceptorStatus,
    heartbeat_deadline: Duration,
) -> Option<Timestamp> {
    let is_unheard = active.start_time.is_none() && !is_default(&active.name);
    let passed_over = || active_deadline(request, heartbeat_deadline).filter(|_| is_unheard);
    active.expected_finish_time.or_else(passed_over)
}

/// The state of the request, in one word.
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

/// Why the request exists, which interceptors were passed over, and the current state.
fn message(request: &EvictionRequest) -> String {
    let clause = maintenances::clause_of(request);
    let stands = state_message(request);
    // Reports of the default interceptors begin with the clause, even if it has changed since then. Other
    // interceptors could only pretend that theirs does.
    let stands = without_clause(&clause, &stands);
    if request.active_interceptor().is_some_and(is_default) && maintenances::has_clause(stands) {
        return stands.to_owned();
    }
    let over: Vec<&str> = passed_over(request).filter(|name| !is_default(name)).collect();
    if over.is_empty() {
        return with_clause(&clause, stands);
    }
    let why = match ran_out_of_time(&request.status) {
        true => "the time for interceptors was over",
        false => "nothing was heard",
    };
    let over = format!("passed over, as {why}: {}", names(over.into_iter()));
    let text = if stands.is_empty() { over } else { format!("{over}; {stands}") };
    with_clause(&clause, &text)
}

/// The message of the condition that ended the request, otherwise that of the active interceptor. Conditions of other
/// types belong to interceptors and are ignored.
fn state_message(request: &EvictionRequest) -> Cow<'_, str> {
    let conditions = &request.status.conditions;
    let ended = conditions.iter().find(|c| c.is_true() && [EVICTED, CANCELED].contains(&c.type_.as_str()));
    ended.map_or_else(|| interceptor_message(request), |c| c.message.as_str().into())
}

/// The message of the active interceptor. If it has never reported: since when it has been active. The default
/// interceptors need a moment before they report, and get no such text.
fn interceptor_message(request: &EvictionRequest) -> Cow<'_, str> {
    let Some(active) = request.active_interceptor_status() else { return "".into() };
    let is_silent = active.message.is_empty() && active.start_time.is_none() && !is_default(&active.name);
    match request.status.activation_time.filter(|_| is_silent) {
        Some(since) => {
            let since = format_seconds(since);
            format!("waiting for {}, which has never reported since its turn began at {since}", active.name)
                .into()
        }
        None => active.message.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    /// Regression: an interceptor may set its own conditions. Such a condition hid that the eviction was blocked.
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
        assert_eq!((state(&request), &*message(&request)), ("Blocked", message_of_it));
        request.status.conditions[0].type_ = CANCELED.into();
        assert_eq!((state(&request), &*message(&request)), ("Canceled", "it is leaving"));
    }

    /// Regression: the state was read from the message of imperative eviction. An interceptor whose message said that
    /// it was not blocked was shown as blocked.
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
        assert_eq!(cell(&request, "Node"), "n1");
        assert_eq!(cell(&EvictionRequest::default(), "Node"), NONE);
    }

    fn cell(request: &EvictionRequest, column: &str) -> Value {
        let at = COLUMNS.iter().position(|c| c.name == column).unwrap();
        cells(request, Timestamp::UNIX_EPOCH, Duration::from_secs(1200)).remove(at)
    }

    #[test]
    fn the_clause_is_shown_once_and_whoever_was_passed_over_is_named() {
        let entry = |name: &str, message: &str| json!({ "name": name, "message": message });
        let clause = "for NodeMaintenance tidy (RAM swap) on node n1";
        let status = json!({
            "activeInterceptors": [IMPERATIVE_EVICTION], "podInfo": { "nodeName": "n1" },
            "interceptors": [entry("gone.example.com", ""), entry(IMPERATIVE_EVICTION, &format!("{clause}: b allows 0"))],
        });
        let mut request = EvictionRequest::named("ns", "uid");
        let annotation = json!([{ "name": "tidy", "reason": "RAM swap" }]).to_string();
        Arc::make_mut(&mut request.metadata.annotations)
            .insert(maintenances::MAINTENANCES_ANNOTATION.to_owned(), annotation);
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!(cell(&request, "Message"), format!("{clause}: b allows 0"));
        assert_eq!(cell(&request, "Maintenance"), "tidy");
        request.status.interceptors[1].message = "for NodeMaintenance earlier: b allows 0".to_owned();
        assert_eq!(cell(&request, "Message"), "for NodeMaintenance earlier: b allows 0");
        request.status.interceptors[1].message = format!("{clause}: b allows 0");
        request.status.processed_interceptors = vec!["gone.example.com".to_owned()];
        let over = "passed over, as nothing was heard: gone.example.com; b allows 0";
        assert_eq!(cell(&request, "Message"), format!("{clause}: {over}"));
    }

    /// Regression: a name under k8s.io of a controller that no process implements was neither shown as passed over
    /// nor given an ETA, although the blocker had both.
    #[test]
    fn an_interceptor_of_the_cluster_that_is_no_default_one_is_shown_as_any_other() {
        let name = "deployment.apps.k8s.io";
        let targets = json!([{ "name": name }, { "name": IMPERATIVE_EVICTION }]);
        let status = json!({ "targetInterceptors": targets, "activeInterceptors": [name],
            "activationTime": "1970-01-01T00:00:00.000000Z",
            "interceptors": [{ "name": name, "message": "" }, { "name": IMPERATIVE_EVICTION, "message": "" }] });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!(cell(&request, "ETA"), "20m");
        request.status.active_interceptors = vec![IMPERATIVE_EVICTION.to_owned()];
        request.status.processed_interceptors = vec![name.to_owned()];
        assert_eq!(cell(&request, "Message"), format!("passed over, as nothing was heard: {name}"));
    }

    /// Of an interceptor that had reported each minute it was said that nothing was heard.
    #[test]
    fn an_interceptor_whose_time_is_over_is_shown_as_such() {
        let targets = json!([{ "name": "a.example.com" }, { "name": IMPERATIVE_EVICTION }]);
        let status = json!({ "targetInterceptors": targets, "activeInterceptors": [IMPERATIVE_EVICTION],
            "processedInterceptors": ["a.example.com"], "interceptionDeadline": "1970-01-01T00:00:10Z",
            "activationTime": "1970-01-01T00:00:10.500000Z",
            "interceptors": [{ "name": "a.example.com", "message": "" }, { "name": IMPERATIVE_EVICTION, "message": "" }] });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        let said = "passed over, as the time for interceptors was over: a.example.com";
        assert_eq!(cell(&request, "Message"), said);
        request.status.active_interceptors = vec!["a.example.com".to_owned()];
        assert_eq!(cell(&request, "ETA"), "10s", "it never reported");
    }

    #[test]
    fn an_interceptor_that_never_reported_is_shown_with_when_it_is_passed_over() {
        let targets = json!([{ "name": "a.example.com" }, { "name": IMPERATIVE_EVICTION }]);
        let status = json!({ "targetInterceptors": targets, "activeInterceptors": ["a.example.com"],
            "activationTime": "1970-01-01T00:00:00.000000Z", "interceptors": [{ "name": "a.example.com", "message": "" }] });
        let mut request = EvictionRequest::named("ns", "uid");
        request.status = serde_json::from_value(status).unwrap();
        assert_eq!(cell(&request, "ETA"), "20m");
        let silent = "waiting for a.example.com, which has never reported since its turn began at 1970-01-01T00:00:00Z";
        assert_eq!((state(&request), cell(&request, "Message")), ("Intercepting", silent.into()));
        request.status.interceptors[0].message = "soon".to_owned();
        assert_eq!(cell(&request, "Message"), "soon");
        request.status.interceptors[0].message = String::new();
        request.status.interceptors[0].start_time = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(cell(&request, "ETA"), "<unknown>", "it works, and has not said until when");
        assert_eq!(cell(&request, "Message"), "");
    }
}
