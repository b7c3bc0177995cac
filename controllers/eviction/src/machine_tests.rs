//! The eviction request machine, step by step.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use drydock_api::eviction_request::interceptors::IMPERATIVE_EVICTION;
use drydock_api::eviction_request::status_validation::StatusUpdate;
use drydock_api::eviction_request::{EvictionTarget, LocalPodReference, Requester};
use drydock_api::meta::{Condition, find_condition};
use drydock_runtime::cache::{OwnerRef, Phase};
use serde_json::json;

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
        phase: Phase::Running,
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
pub(super) fn advance(request: &mut EvictionRequest, target: Target<'_>, now: Timestamp) -> Decision {
    let config = Config::default();
    let decision = step(request, target, now, &config);
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

fn begun(pod: &Pod) -> EvictionRequest {
    let mut request = request();
    advance(&mut request, Target::Present(pod), at(0));
    request
}

fn reason(request: &EvictionRequest, type_: &str) -> Option<(String, String)> {
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
fn daemon_set_pod_gets_its_own_interceptor_before_the_last() {
    let owner = OwnerRef { api_version: "apps/v1".into(), kind: "DaemonSet".into(), ..Default::default() };
    let request = begun(&Pod { controller: Some(owner), ..pod(&[]) });
    let targets: Vec<&str> = request.status.target_interceptors.iter().map(|i| i.name.as_str()).collect();
    assert_eq!(targets, ["daemonset.apps.k8s.io", IMPERATIVE_EVICTION]);
}

#[test]
fn invalid_interceptor_is_warned_of_and_the_rest_proceeds() {
    let pod = pod(&["not-qualified", A, "made-up.k8s.io"]);
    let mut request = request();
    let decision = advance(&mut request, Target::Present(&pod), at(0));
    assert_eq!(decision.warnings.len(), 2);
    assert_eq!(request.active_interceptor(), Some(A));
}

#[test]
fn missing_pod_is_confirmed_before_anything_is_said() {
    let decision = step(&request(), Target::NotCached, at(0), &Config::default());
    assert_eq!(decision, Decision { confirm: true, ..Decision::default() });
}

#[test]
fn pod_that_never_was_cancels_with_the_words_of_the_kep() {
    let mut request = request();
    advance(&mut request, Target::Absent, at(0));
    let expected = ("ValidationFailed".into(), "Target Pod p was not found.".into());
    assert_eq!(reason(&request, "Canceled"), Some(expected));
}

#[test]
fn pod_of_a_group_cancels_with_the_words_of_the_kep() {
    let pod = Pod { in_group: true, ..pod(&[]) };
    let mut request = request();
    advance(&mut request, Target::Present(&pod), at(0));
    let message =
        "Target Pod p is part of a Workload/PodGroup. Eviction of such pods is currently not supported.";
    assert_eq!(reason(&request, "Canceled"), Some(("ValidationFailed".into(), message.into())));
}

#[test]
fn terminal_pod_is_evicted_from_the_start() {
    for phase in [Phase::Succeeded, Phase::Failed] {
        let pod = Pod { phase, ..pod(&[]) };
        let request = begun(&pod);
        assert_eq!(reason(&request, "Evicted").unwrap().0, "PodTerminated");
        assert!(request.status.active_interceptors.is_empty());
    }
}

#[test]
fn vanished_pod_is_evicted_once_confirmed_and_no_completion_is_invented() {
    let mut request = begun(&pod(&[A]));
    assert!(advance(&mut request, Target::NotCached, at(5)).confirm);
    advance(&mut request, Target::Absent, at(5));
    assert_eq!(reason(&request, "Evicted").unwrap().0, "PodDeleted");
    assert_eq!(request.status.processed_interceptors, [A]);
    assert!(request.status.active_interceptors.is_empty());
    assert!(request.interceptor(A).unwrap().completion_time.is_none());
}

#[test]
fn evicted_wins_over_a_withdrawal_that_came_as_late_as_the_end() {
    let mut request = begun(&pod(&[A]));
    request.spec.requesters.clear();
    advance(&mut request, Target::Absent, at(5));
    assert!(request.is_evicted() && !request.is_canceled());
}

#[test]
fn last_withdrawal_cancels_and_clears_the_turn() {
    let pod = pod(&[A]);
    let mut request = begun(&pod);
    request.spec.requesters.clear();
    request.metadata.generation = 2;
    advance(&mut request, Target::Present(&pod), at(5));
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
    assert_eq!(advance(&mut request, Target::Present(&pod), at(5)).status, None);
}

#[test]
fn silent_interceptor_is_passed_over_at_its_deadline_and_never_before() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    let decision = advance(&mut request, Target::Present(&pod), at(1199));
    assert_eq!((decision.status, decision.wake), (None, Some(at(1200))));
    advance(&mut request, Target::Present(&pod), at(1200));
    assert_eq!(request.active_interceptor(), Some(B));
    assert_eq!(request.status.processed_interceptors, [A]);
    assert_eq!(request.status.activation_time, Some(at(1200)));
    let decision = advance(&mut request, Target::Present(&pod), at(1201));
    assert_eq!(decision.wake, Some(at(2400)), "the second one has its own twenty minutes");
}

#[test]
fn heartbeat_moves_the_deadline() {
    let pod = pod(&[A]);
    let mut request = begun(&pod);
    request.status.interceptors[0].heartbeat_time = Some(at(600));
    let decision = advance(&mut request, Target::Present(&pod), at(1500));
    assert_eq!((decision.status, decision.wake), (None, Some(at(1800))));
}

#[test]
fn completion_hands_over_at_once() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    request.status.interceptors[0].completion_time = Some(at(3));
    advance(&mut request, Target::Present(&pod), at(4));
    assert_eq!(request.active_interceptor(), Some(B));
    assert_eq!(request.interceptor(A).unwrap().completion_time, Some(at(3)));
}

#[test]
fn terminating_pod_keeps_the_turn_until_its_grace_period_is_over() {
    let running = pod(&[A, B]);
    let mut request = begun(&running);
    request.status.interceptors[0].completion_time = Some(at(3));
    let terminating = Pod { deletion_timestamp: Some(at(33)), ..running };
    let decision = advance(&mut request, Target::Present(&terminating), at(4));
    assert_eq!((decision.status, decision.wake), (None, Some(at(33))));
    advance(&mut request, Target::Present(&terminating), at(33));
    assert_eq!(request.active_interceptor(), Some(B));
}

#[test]
fn last_interceptor_has_no_deadline() {
    let pod = pod(&[]);
    let mut request = begun(&pod);
    assert_eq!(request.active_interceptor(), Some(IMPERATIVE_EVICTION));
    let decision = advance(&mut request, Target::Present(&pod), at(100_000));
    assert_eq!(decision, Decision::default());
}

#[test]
fn labels_of_the_pod_win_and_absent_ones_leave_only_if_they_came_from_the_pod() {
    let mut pod = pod(&[A]);
    pod.labels = [("app".to_owned(), "new".to_owned())].into();
    let mut request = begun(&pod);
    request.metadata.labels =
        [("app", "old"), ("own", "kept"), ("gone", "x")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let decision = advance(&mut request, Target::Present(&pod), at(1));
    assert_eq!(decision.labels, Some(pod.labels.clone()));
    request.metadata.labels.insert("app".into(), "new".into());
    assert_eq!(advance(&mut request, Target::Present(&pod), at(1)).labels, None);
    request.metadata.managed_fields = vec![json!({
        "manager": labels::MANAGER, "operation": "Apply",
        "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}, "f:gone": {}}}}
    })];
    assert_eq!(advance(&mut request, Target::Present(&pod), at(1)).labels, Some(pod.labels.clone()));
}

/// A pod may have labels of a megabyte in all: the controller copied them onto the request, which then had no room left
/// for its status.
#[test]
fn labels_of_the_pod_are_synchronized_up_to_a_bound() {
    let mut pod = pod(&[A]);
    pod.labels = (0..10_000).map(|i| (format!("example.com/{i:05}"), "v".repeat(63))).collect();
    let mut request = begun(&pod);
    let applied = advance(&mut request, Target::Present(&pod), at(1)).labels.unwrap();
    let bytes: usize = applied.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert!((15 << 10..=16 << 10).contains(&bytes), "{bytes}");
    request.metadata.labels = applied;
    assert_eq!(advance(&mut request, Target::Present(&pod), at(1)).labels, None, "it comes to rest");
}

fn ended(type_: &str, reason: &str, requesters: usize) -> EvictionRequest {
    let mut request = request();
    request.spec.requesters.truncate(requesters);
    request.status.observed_generation = 1;
    request.status.conditions = vec![Condition {
        type_: type_.into(),
        status: "True".into(),
        last_transition_time: Some(at(0)),
        reason: reason.into(),
        ..Default::default()
    }];
    request
}

#[test]
fn evicted_request_goes_when_its_last_requester_withdraws_or_after_the_retention() {
    let config = Config::default();
    let kept = step(&ended("Evicted", "PodDeleted", 1), Target::NotCached, at(10), &config);
    assert_eq!((kept.delete, kept.wake), (false, Some(at(86_400))));
    assert!(step(&ended("Evicted", "PodDeleted", 1), Target::NotCached, at(86_400), &config).delete);
    assert!(step(&ended("Evicted", "PodDeleted", 0), Target::NotCached, at(10), &config).delete);
}

#[test]
fn zero_retention_keeps_evicted_requests_of_requesters_that_stay() {
    let config = Config { retention: None, ..Config::default() };
    let kept = step(&ended("Evicted", "PodDeleted", 1), Target::NotCached, at(10_000_000), &config);
    assert_eq!(kept, Decision::default());
}

#[test]
fn withdrawn_request_goes_after_a_short_grace() {
    let config = Config::default();
    let request = ended("Canceled", "NoRequesters", 0);
    let kept = step(&request, Target::NotCached, at(299), &config);
    assert_eq!((kept.delete, kept.wake), (false, Some(at(300))));
    assert!(step(&request, Target::NotCached, at(300), &config).delete);
}

/// A mistyped pod name under the right UID shut every other requester out of that pod: for the whole retention, and for
/// ever where that was 0.
#[test]
fn request_that_failed_validation_goes_after_a_short_grace_whatever_the_retention() {
    for retention in [None, Some(Duration::from_secs(24 * 3600))] {
        let config = Config { retention, ..Config::default() };
        let request = ended("Canceled", "ValidationFailed", 1);
        let kept = step(&request, Target::NotCached, at(299), &config);
        assert_eq!((kept.delete, kept.wake), (false, Some(at(300))));
        assert!(step(&request, Target::NotCached, at(300), &config).delete);
    }
}

#[test]
fn finished_request_still_observes_generations() {
    let mut request = ended("Evicted", "PodDeleted", 1);
    request.metadata.generation = 4;
    let decision = step(&request, Target::NotCached, at(10), &Config::default());
    assert_eq!(decision.status.unwrap().observed_generation, 4);
}

/// A request that a finalizer keeps after its deletion was looked at by nobody: an interceptor that reads its name in
/// activeInterceptors went on, and whoever held it waited for an end that never came.
#[test]
fn request_that_is_being_deleted_gets_no_turn_and_is_ended() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    request.metadata.deletion_timestamp = Some(at(1));
    request.status.interceptors[0].completion_time = Some(at(1));
    let decision = advance(&mut request, Target::Present(&pod), at(2));
    assert_eq!((decision.labels, decision.wake), (None, None));
    assert_eq!(reason(&request, "Canceled").unwrap().0, "RequestDeleted");
    assert_eq!(request.status.processed_interceptors, [A]);
    assert!(request.status.active_interceptors.is_empty());
    let config = Config::default();
    assert_eq!(
        step(&request, Target::Present(&pod), at(1_000_000), &config),
        Decision::default(),
        "it is over"
    );
}

#[test]
fn request_that_is_being_deleted_is_evicted_when_its_pod_is_gone_or_terminal() {
    let terminal = Pod { phase: Phase::Failed, ..pod(&[A]) };
    for (target, why) in [(Target::Absent, "PodDeleted"), (Target::Present(&terminal), "PodTerminated")] {
        let mut request = begun(&pod(&[A]));
        request.metadata.deletion_timestamp = Some(at(1));
        assert!(advance(&mut request, Target::NotCached, at(2)).confirm, "a cache may lag");
        advance(&mut request, target, at(2));
        assert_eq!(reason(&request, "Evicted").unwrap().0, why);
        assert!(request.status.active_interceptors.is_empty());
    }
}

#[test]
fn request_that_is_deleted_before_it_is_taken_up_never_gets_a_first_turn() {
    let pod = pod(&[A]);
    for (target, why) in [(Target::Present(&pod), "RequestDeleted"), (Target::Absent, "ValidationFailed")] {
        let mut request = request();
        request.metadata.deletion_timestamp = Some(at(1));
        advance(&mut request, target, at(2));
        assert_eq!(reason(&request, "Canceled").unwrap().0, why);
        assert!(request.status.target_interceptors.is_empty());
    }
}

#[test]
fn finished_request_that_is_being_deleted_is_not_deleted_again() {
    let mut request = ended("Evicted", "PodDeleted", 0);
    request.metadata.deletion_timestamp = Some(at(1));
    assert_eq!(step(&request, Target::Absent, at(1_000_000), &Config::default()), Decision::default());
}
