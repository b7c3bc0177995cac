//! The eviction request machine, step by step.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::status_validation::StatusUpdate;
use drydock_api::eviction_request::{EvictionTarget, LocalPodReference, Requester};
use drydock_api::metav1::find_condition;
use drydock_runtime::cache::{DaemonSetOwner, PodPhase};
use drydock_runtime::testing::{mirror, of_daemon_set};

use super::*;

pub(super) const A: &str = "a.example.com";
pub(super) const B: &str = "b.example.com";

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

pub(super) fn pod(interceptors: &[&str]) -> Pod {
    Pod {
        name: "p".into(),
        namespace: "ns".into(),
        uid: "uid".into(),
        resource_version: "1".into(),
        interceptors: Some(interceptors.iter().map(|s| (*s).to_owned()).collect()),
        phase: PodPhase::Running,
        ..Default::default()
    }
}

pub(super) fn request() -> EvictionRequest {
    let mut request = EvictionRequest::named("ns", "uid");
    request.metadata.generation = 1;
    request.metadata.creation_timestamp = Some(at(0));
    request.spec.target =
        EvictionTarget { pod: Some(LocalPodReference { name: "p".into(), uid: "uid".into() }) };
    request.spec.requesters = vec![Requester { name: "r.example.com".into() }];
    request
}

/// Decides, checks the written status by the rules of admission, and writes it.
pub(super) fn advance(
    request: &mut EvictionRequest,
    target: TargetPod<'_>,
    now: Timestamp,
) -> RequestDecision {
    advance_with(request, target, now, &Config::default())
}

/// The same with these settings.
pub(super) fn advance_with(
    request: &mut EvictionRequest,
    target: TargetPod<'_>,
    now: Timestamp,
    config: &Config,
) -> RequestDecision {
    let decision = step(request, target, now, config);
    if let Some(status) = decision.status.clone() {
        let old = request.clone();
        request.status = status;
        let update = StatusUpdate {
            new: request,
            old: &old,
            now,
            heartbeat_deadline: config.heartbeat_deadline,
            allowed: &config.allowed,
        };
        assert_eq!(update.validate(), vec![], "admission refuses what the controller decided");
    }
    decision
}

pub(super) fn begun(pod: &Pod) -> EvictionRequest {
    let mut request = request();
    advance(&mut request, TargetPod::Present(pod), at(0));
    request
}

pub(super) fn reason(request: &EvictionRequest, type_: &str) -> Option<(String, String)> {
    let condition = find_condition(&request.status.conditions, type_)?;
    assert_eq!(condition.status, "True");
    Some((condition.reason.clone(), condition.message.clone()))
}

#[test]
fn first_pass_sets_targets_entries_and_the_first_turn_in_one_write() {
    let pod = pod(&[A]);
    let request = begun(&pod);
    let targets: Vec<&str> = request.status.target_interceptors.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(targets, [A, IMPERATIVE_EVICTION]);
    assert_eq!(request.status.interceptors.len(), 2);
    assert_eq!(request.active_interceptor(), Some(A));
    assert_eq!(request.status.activation_time, Some(at(0)));
    assert_eq!(request.status.observed_generation, 1);
}

#[test]
fn first_pass_says_where_the_pod_is_and_what_it_is_and_nothing_changes_that() {
    let of = |pod: Pod| begun(&pod).status.pod_info.unwrap();
    let here = || Pod { node_name: "n1".into(), priority: 7, ..pod(&[A]) };
    let info = |pod_type: &str| PodInfo { node_name: "n1".into(), priority: 7, pod_type: pod_type.into() };
    assert_eq!(of(here()), info("Default"));
    assert_eq!(of(of_daemon_set("agent", "ds", here())), info("DaemonSet"));
    assert_eq!(of(mirror(Pod { annotations: Default::default(), ..here() })), info("Static"));
    let mut request = begun(&here());
    advance(&mut request, TargetPod::Present(&Pod { priority: 8, ..here() }), at(3600));
    assert_eq!(
        (request.status.pod_info.clone(), request.active_interceptor()),
        (Some(info("Default")), Some(IMPERATIVE_EVICTION))
    );
}

#[test]
fn daemon_set_pod_gets_its_own_interceptor_before_the_last() {
    let request = begun(&of_daemon_set("agent", "ds", pod(&[])));
    let targets: Vec<&str> = request.status.target_interceptors.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(targets, ["daemonset.apps.k8s.io", IMPERATIVE_EVICTION]);
}

/// The list of interceptors is chosen once.
#[test]
fn the_interceptors_are_chosen_when_it_is_known_whether_the_daemon_set_of_the_pod_is_alive() {
    let of = |daemon_set_owner| Pod { daemon_set_owner, ..of_daemon_set("agent", "ds", pod(&[])) };
    let undecided = of(DaemonSetOwner::Undecided);
    let mut waiting = request();
    let decision = advance(&mut waiting, TargetPod::Present(&undecided), at(0));
    assert!(waiting.status.target_interceptors.is_empty() && !decision.confirm && !decision.ends);
    let request = begun(&of(DaemonSetOwner::Gone));
    let targets: Vec<&str> = request.status.target_interceptors.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(targets, [IMPERATIVE_EVICTION]);
}

/// A tenant's annotations may be 256 KiB: each wrong entry was an event on the request and on the pod.
#[test]
fn of_many_invalid_interceptors_the_first_are_warned_of() {
    let names: Vec<String> = (0..1000).map(|i| format!("n{i}")).collect();
    let pod = pod(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let decision = advance(&mut request(), TargetPod::Present(&pod), at(0));
    assert_eq!(decision.warnings.len(), 20);
}

/// A pod with more interceptors than the cache keeps lost some, and nothing said so.
#[test]
fn annotations_that_the_cache_does_not_keep_are_warned_of_first() {
    let names: Vec<String> = (0..30).map(|i| format!("n{i}")).collect();
    let pod = Pod { annotations_left_out: 7, ..pod(&names.iter().map(String::as_str).collect::<Vec<_>>()) };
    let warnings = advance(&mut request(), TargetPod::Present(&pod), at(0)).warnings;
    let first = &warnings[0].message;
    assert!(
        first.starts_with("7 annotations about interceptors are ignored") && first.contains("at most 15"),
        "{first}"
    );
    assert_eq!(warnings.len(), 20);
}

#[test]
fn invalid_interceptor_is_warned_of_and_the_rest_proceeds() {
    let pod = pod(&["not-qualified", A, "made-up.k8s.io"]);
    let mut request = request();
    let decision = advance(&mut request, TargetPod::Present(&pod), at(0));
    assert_eq!(decision.warnings.len(), 2);
    assert_eq!(request.active_interceptor(), Some(A));
}

#[test]
fn missing_pod_is_confirmed_before_anything_is_said() {
    let decision = step(&request(), TargetPod::NotCached, at(0), &Config::default());
    assert_eq!(decision, RequestDecision { confirm: true, ..RequestDecision::default() });
}

#[test]
fn pod_that_never_was_cancels_with_the_words_of_the_kep() {
    let mut request = request();
    advance(&mut request, TargetPod::Absent, at(0));
    let expected = ("ValidationFailed".into(), "Target Pod p was not found.".into());
    assert_eq!(reason(&request, "Canceled"), Some(expected));
}

/// The message said that the pod was not found, although a pod of that name was there.
#[test]
fn a_pod_that_has_been_replaced_under_its_name_is_reported_with_both_uids() {
    let mut request = request();
    advance(&mut request, TargetPod::Replaced("other"), at(0));
    let told = "Target Pod p with UID uid was not found: the pod of this name has UID other.";
    assert_eq!(reason(&request, "Canceled"), Some(("ValidationFailed".into(), told.into())));
}

#[test]
fn pod_of_a_group_cancels_with_the_words_of_the_kep() {
    let pod = Pod { in_group: true, ..pod(&[]) };
    let mut request = request();
    advance(&mut request, TargetPod::Present(&pod), at(0));
    let message =
        "Target Pod p is part of a Workload/PodGroup. Eviction of such pods is currently not supported.";
    assert_eq!(reason(&request, "Canceled"), Some(("ValidationFailed".into(), message.into())));
}

#[test]
fn terminal_pod_is_evicted_from_the_start() {
    for phase in [PodPhase::Succeeded, PodPhase::Failed] {
        let pod = Pod { phase, ..pod(&[]) };
        let request = begun(&pod);
        assert_eq!(reason(&request, "Evicted").unwrap().0, "PodTerminated");
        assert!(request.status.active_interceptors.is_empty());
    }
}

#[test]
fn vanished_pod_is_evicted_once_confirmed_and_no_completion_is_invented() {
    let mut request = begun(&pod(&[A]));
    assert!(advance(&mut request, TargetPod::NotCached, at(5)).confirm);
    advance(&mut request, TargetPod::Absent, at(5));
    assert_eq!(reason(&request, "Evicted").unwrap().0, "PodDeleted");
    assert_eq!(request.status.processed_interceptors, [A]);
    assert!(request.status.active_interceptors.is_empty());
    assert!(request.interceptor(A).unwrap().completion_time.is_none());
}

#[test]
fn evicted_wins_over_a_withdrawal_that_came_as_late_as_the_end() {
    let mut request = begun(&pod(&[A]));
    request.spec.requesters.clear();
    advance(&mut request, TargetPod::Absent, at(5));
    assert!(request.is_evicted() && !request.is_canceled());
}

#[test]
fn last_withdrawal_cancels_and_clears_the_turn() {
    let pod = pod(&[A]);
    let mut request = begun(&pod);
    request.spec.requesters.clear();
    request.metadata.generation = 2;
    advance(&mut request, TargetPod::Present(&pod), at(5));
    assert_eq!(reason(&request, "Canceled").unwrap().0, "NoRequesters");
    assert!(request.status.active_interceptors.is_empty());
    assert_eq!(request.status.activation_time, Some(at(0)));
    assert_eq!(request.status.observed_generation, 2);
}

#[test]
fn withdrawal_of_one_of_two_requesters_changes_nothing() {
    let pod = pod(&[A]);
    let mut request = begun(&pod);
    request.spec.requesters.push(Requester { name: "s.example.com".into() });
    assert_eq!(advance(&mut request, TargetPod::Present(&pod), at(5)).status, None);
}

#[test]
fn silent_interceptor_is_passed_over_at_its_deadline_and_never_before() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    let decision = advance(&mut request, TargetPod::Present(&pod), at(1199));
    assert_eq!((decision.status, decision.wake), (None, Some(at(1200))));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(1200));
    assert_eq!(request.active_interceptor(), Some(B));
    assert_eq!(request.status.processed_interceptors, [A]);
    let told = format!(
        "{A} has never reported; its turn began at {}. It is passed over, and the turn is {B}'s",
        at(0)
    );
    assert_eq!(decision.warnings, [Warning { reason: "InterceptorTimedOut", message: told }]);
    assert_eq!(request.status.activation_time, Some(at(1200)));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(1201));
    assert_eq!(decision.wake, Some(at(2400)), "the second one has its own twenty minutes");
}

#[test]
fn heartbeat_moves_the_deadline() {
    let pod = pod(&[A]);
    let mut request = begun(&pod);
    request.status.interceptors[0].heartbeat_time = Some(at(600));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(1500));
    assert_eq!((decision.status, decision.wake), (None, Some(at(1800))));
}

#[test]
fn completion_hands_over_at_once() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    request.status.interceptors[0].completion_time = Some(at(3));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(4));
    assert_eq!((request.active_interceptor(), decision.warnings), (Some(B), vec![]));
    assert_eq!(request.interceptor(A).unwrap().completion_time, Some(at(3)));
}

#[test]
fn terminating_pod_keeps_the_turn_until_its_grace_period_is_over() {
    let running = pod(&[A, B]);
    let mut request = begun(&running);
    request.status.interceptors[0].completion_time = Some(at(3));
    let terminating = Pod { deletion_timestamp: Some(at(33)), ..running };
    let decision = advance(&mut request, TargetPod::Present(&terminating), at(4));
    assert_eq!((decision.status, decision.wake), (None, Some(at(33))));
    advance(&mut request, TargetPod::Present(&terminating), at(33));
    assert_eq!(request.active_interceptor(), Some(B));
}

#[test]
fn last_interceptor_has_no_deadline() {
    let pod = pod(&[]);
    let mut request = begun(&pod);
    assert_eq!(request.active_interceptor(), Some(IMPERATIVE_EVICTION));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(100_000));
    assert_eq!(decision, RequestDecision::default());
}

#[test]
fn labels_of_a_request_that_differ_from_the_pods_are_changed() {
    let mut pod = pod(&[A]);
    pod.labels = BTreeMap::from([("app".to_owned(), "new".to_owned())]).into();
    let mut request = begun(&pod);
    request.metadata.labels = BTreeMap::from([("app".to_owned(), "old".to_owned())]).into();
    let decision = advance(&mut request, TargetPod::Present(&pod), at(1));
    assert_eq!(decision.labels, [("app".to_owned(), Some("new".to_owned()))].into());
    request.metadata.labels = pod.labels.clone();
    assert!(advance(&mut request, TargetPod::Present(&pod), at(1)).labels.is_empty());
}
