//! An EvictionRequest as subscribers see it, made from the request alone.

use std::time::Duration;

use drydock_api::eviction_request::believed_block::{BelievedBlock, believed_block};
use drydock_api::eviction_request::columns::state;
use drydock_api::eviction_request::transitions::{active_deadline, passed_over};
use drydock_api::eviction_request::{CANCELED, EVICTED, EvictionRequest, InterceptorStatus, maintenances};
use drydock_api::metav1::{Condition, find_condition};
use drydock_proto::status::v1alpha1::{
    ActiveInterceptor, Block, Eviction, EvictionState, MaintenanceReference,
};
use jiff::Timestamp;

use super::values::{self, timestamp};

/// Returns the message of a request. An interceptor that is silent for `heartbeat_deadline` is passed over.
pub fn message(request: &EvictionRequest, heartbeat_deadline: Duration) -> Eviction {
    let (status, pod) = (&request.status, request.status.pod_info.as_ref());
    let ended = ended(request);
    Eviction {
        namespace: request.metadata.namespace.clone(),
        name: request.metadata.name.clone(),
        pod: request.spec.target.pod.as_ref().map_or_else(String::new, |pod| pod.name.clone()),
        node: pod.map_or_else(String::new, |pod| pod.node_name.clone()),
        priority: pod.map_or(0, |pod| pod.priority),
        pod_type: pod.map_or(0, |pod| values::pod_type_of(&pod.pod_type).into()),
        state: state_of(request).into(),
        maintenances: maintenances::of(request).into_iter().map(reference).collect(),
        requesters: request.spec.requesters.iter().map(|requester| requester.name.clone()).collect(),
        active_interceptor: active_interceptor(request, heartbeat_deadline),
        processed_interceptors: status.processed_interceptors.clone(),
        passed_over_interceptors: passed_over(request).map(str::to_owned).collect(),
        block: believed_block(request).filter(|_| !request.is_finished()).map(block),
        create_time: request.metadata.creation_timestamp.map(timestamp),
        finish_time: ended.and_then(|ended| ended.last_transition_time).map(timestamp),
        finish_message: ended.map_or_else(String::new, words_of),
    }
}

/// The state of a request.
pub fn state_of(request: &EvictionRequest) -> EvictionState {
    values::eviction_state(state(request))
}

/// Returns when the active interceptor expects to be done; `None` if the request has ended.
pub fn expected_finish_time(request: &EvictionRequest) -> Option<Timestamp> {
    active(request)?.expected_finish_time
}

fn reference(maintenance: maintenances::MaintenanceReference) -> MaintenanceReference {
    MaintenanceReference { name: maintenance.name, reason: maintenance.reason }
}

/// Returns the condition that ended the request. If both are true, `Evicted` takes precedence over `Canceled`.
fn ended(request: &EvictionRequest) -> Option<&Condition> {
    let is_true = |name| find_condition(&request.status.conditions, name).filter(|found| found.is_true());
    is_true(EVICTED).or_else(|| is_true(CANCELED))
}

fn words_of(ended: &Condition) -> String {
    if ended.message.is_empty() { ended.reason.clone() } else { ended.message.clone() }
}

/// Returns what the active interceptor reports; `None` if the request has ended.
fn active(request: &EvictionRequest) -> Option<&InterceptorStatus> {
    request.active_interceptor_status().filter(|_| !request.is_finished())
}

fn active_interceptor(request: &EvictionRequest, heartbeat_deadline: Duration) -> Option<ActiveInterceptor> {
    let name = request.active_interceptor().filter(|_| !request.is_finished())?;
    let reported = active(request);
    let time = |of: fn(&InterceptorStatus) -> Option<Timestamp>| reported.and_then(of).map(timestamp);
    Some(ActiveInterceptor {
        name: name.to_owned(),
        start_time: time(|reported| reported.start_time),
        heartbeat_time: time(|reported| reported.heartbeat_time),
        expected_finish_time: time(|reported| reported.expected_finish_time),
        deadline: active_deadline(request, heartbeat_deadline).map(timestamp),
        message: reported.map_or_else(String::new, |reported| reported.message.clone()),
    })
}

fn block(believed: BelievedBlock<'_>) -> Block {
    Block {
        reason: values::block_reason(believed.reason).into(),
        name: believed.name.to_owned(),
        budget_state: values::budget_state(believed.state).into(),
        since_time: believed.since_time.map(timestamp),
    }
}

#[cfg(test)]
mod tests {
    use drydock_proto::status::v1alpha1::{BlockReason, BudgetState, PodType};
    use serde_json::json;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(1200);

    fn blocked_request() -> EvictionRequest {
        let object = json!({
            "metadata": {
                "namespace": "shop", "name": "uid-1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"nodemaintenance.k8s.io/maintenances": "[{\"name\":\"rack-7\",\"reason\":\"firmware\"}]"},
            },
            "spec": {
                "target": {"pod": {"name": "web-0", "uid": "uid-1"}},
                "requesters": [{"name": "nodemaintenance.k8s.io"}],
            },
            "status": {
                "podInfo": {"nodeName": "n1", "priority": 5, "podType": "Default"},
                "targetInterceptors": [{"name": "a.example.com"}, {"name": "imperative-eviction.k8s.io"}],
                "activeInterceptors": ["imperative-eviction.k8s.io"], "processedInterceptors": ["a.example.com"],
                "interceptors": [
                    {"name": "a.example.com", "message": ""},
                    {"name": "imperative-eviction.k8s.io", "message": "budget web", "startTime": "2026-01-01T00:01:00Z",
                     "heartbeatTime": "2026-01-01T00:02:00Z", "expectedFinishTime": "2026-01-01T00:30:00Z",
                     "blocked": {"reason": "PodDisruptionBudget", "name": "web", "state": "ShortNow", "sinceTime": "2026-01-01T00:01:30Z"}},
                ],
            },
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_blocked_eviction_is_told_with_what_blocks_it() {
        let told = message(&blocked_request(), DEADLINE);
        assert_eq!(
            (told.namespace.as_str(), told.name.as_str(), told.pod.as_str()),
            ("shop", "uid-1", "web-0")
        );
        assert_eq!((told.node.as_str(), told.priority, told.pod_type()), ("n1", 5, PodType::Default));
        assert_eq!(told.state(), EvictionState::Blocked);
        assert_eq!(
            (told.maintenances[0].name.as_str(), told.maintenances[0].reason.as_str()),
            ("rack-7", "firmware")
        );
        assert_eq!(told.requesters, ["nodemaintenance.k8s.io"]);
        assert_eq!(
            (told.processed_interceptors.len(), told.passed_over_interceptors),
            (1, vec!["a.example.com".to_owned()])
        );
        let active = told.active_interceptor.unwrap();
        assert_eq!(
            (active.name.as_str(), active.message.as_str()),
            ("imperative-eviction.k8s.io", "budget web")
        );
        let heartbeat = active.heartbeat_time.unwrap().seconds;
        assert_eq!(heartbeat - active.start_time.unwrap().seconds, 60);
        assert_eq!(active.deadline, None, "no interceptor is after the last one");
        let block = told.block.unwrap();
        assert_eq!(
            (block.reason(), block.budget_state(), block.name.as_str()),
            (BlockReason::PodDisruptionBudget, BudgetState::ShortNow, "web")
        );
        assert_eq!((told.finish_time, told.finish_message.as_str()), (None, ""));
    }

    /// Regression: the name that an interceptor of others had chosen was told as that of a budget.
    #[test]
    fn an_interceptor_of_others_is_told_as_what_blocks_whatever_it_reports() {
        let mut request = blocked_request();
        request.status.active_interceptors = vec!["b.example.com".to_owned()];
        request.status.interceptors[1].name = "b.example.com".to_owned();
        let block = message(&request, DEADLINE).block.unwrap();
        assert_eq!(
            (block.reason(), block.budget_state(), block.name.as_str()),
            (BlockReason::Interceptor, BudgetState::Unspecified, "b.example.com")
        );
    }

    #[test]
    fn an_interceptor_with_another_after_it_has_a_deadline() {
        let mut request = blocked_request();
        request.status.processed_interceptors.clear();
        request.status.active_interceptors = vec!["a.example.com".to_owned()];
        let heartbeat = "2026-01-01T00:02:00Z".parse::<Timestamp>().unwrap();
        request.status.interceptors[0].heartbeat_time = Some(heartbeat);
        let active = message(&request, DEADLINE).active_interceptor.unwrap();
        assert_eq!(active.deadline.unwrap().seconds - heartbeat.as_second(), 1200);
    }

    #[test]
    fn a_request_that_ended_has_no_active_interceptor_and_nothing_blocks_it() {
        let mut request = blocked_request();
        let ended = json!([{"type": "Evicted", "status": "True", "reason": "PodDeleted", "message": "", "lastTransitionTime": "2026-01-01T00:05:00Z"}]);
        request.status.conditions = serde_json::from_value(ended).unwrap();
        let told = message(&request, DEADLINE);
        assert_eq!(
            (told.state(), told.active_interceptor.is_none(), told.block.is_none()),
            (EvictionState::Evicted, true, true)
        );
        assert_eq!(
            (told.finish_time.unwrap().seconds, told.finish_message.as_str()),
            (1_767_225_900, "PodDeleted")
        );
        assert_eq!(expected_finish_time(&request), None);
    }

    #[test]
    fn a_new_request_is_pending_and_of_an_unknown_type() {
        let told = message(&EvictionRequest::named("shop", "uid-2"), DEADLINE);
        assert_eq!(
            (told.state(), told.pod_type(), told.node.as_str()),
            (EvictionState::Pending, PodType::Unspecified, "")
        );
    }
}
