//! How a request ends, and what is done about one that has ended.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use drydock_api::metav1::Condition;
use drydock_runtime::cache::PodPhase;

use super::tests::{A, B, advance, at, begun, pod, reason, request};
use super::*;

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
    let kept = step(&ended("Evicted", "PodDeleted", 1), TargetPod::NotCached, at(10), &config);
    assert_eq!((kept.delete, kept.wake), (false, Some(at(86_400))));
    assert!(step(&ended("Evicted", "PodDeleted", 1), TargetPod::NotCached, at(86_400), &config).delete);
    assert!(step(&ended("Evicted", "PodDeleted", 0), TargetPod::NotCached, at(10), &config).delete);
}

#[test]
fn zero_retention_keeps_evicted_requests_of_requesters_that_stay() {
    let config = Config { retention: None, ..Config::default() };
    let kept = step(&ended("Evicted", "PodDeleted", 1), TargetPod::NotCached, at(10_000_000), &config);
    assert_eq!(kept, RequestDecision::default());
}

#[test]
fn withdrawn_request_goes_after_a_short_grace() {
    let config = Config::default();
    let request = ended("Canceled", "NoRequesters", 0);
    let kept = step(&request, TargetPod::NotCached, at(299), &config);
    assert_eq!((kept.delete, kept.wake), (false, Some(at(300))));
    assert!(step(&request, TargetPod::NotCached, at(300), &config).delete);
}

/// A request with the right UID and a mistyped pod name kept all other requesters away from that pod: for the whole
/// retention, and forever if the retention was 0.
#[test]
fn request_that_failed_validation_goes_after_a_short_grace_whatever_the_retention() {
    for retention in [None, Some(Duration::from_secs(24 * 3600))] {
        let config = Config { retention, ..Config::default() };
        let request = ended("Canceled", "ValidationFailed", 1);
        let kept = step(&request, TargetPod::NotCached, at(299), &config);
        assert_eq!((kept.delete, kept.wake), (false, Some(at(300))));
        assert!(step(&request, TargetPod::NotCached, at(300), &config).delete);
    }
}

#[test]
fn finished_request_still_observes_generations() {
    let mut request = ended("Evicted", "PodDeleted", 1);
    request.metadata.generation = 4;
    let decision = step(&request, TargetPod::NotCached, at(10), &Config::default());
    assert_eq!(decision.status.unwrap().observed_generation, 4);
}

/// The controller ignored a request that a finalizer keeps after its deletion: the interceptor in
/// activeInterceptors went on, and the owner of the finalizer waited for an end that never came.
#[test]
fn request_that_is_being_deleted_gets_no_turn_and_is_ended() {
    let pod = pod(&[A, B]);
    let mut request = begun(&pod);
    request.metadata.deletion_timestamp = Some(at(1));
    request.status.interceptors[0].completion_time = Some(at(1));
    let decision = advance(&mut request, TargetPod::Present(&pod), at(2));
    assert!(decision.labels.is_empty() && decision.wake.is_none());
    assert_eq!(reason(&request, "Canceled").unwrap().0, "RequestDeleted");
    assert_eq!(request.status.processed_interceptors, [A]);
    assert!(request.status.active_interceptors.is_empty());
    let config = Config::default();
    assert_eq!(
        step(&request, TargetPod::Present(&pod), at(1_000_000), &config),
        RequestDecision::default(),
        "it is over"
    );
}

#[test]
fn request_that_is_being_deleted_is_evicted_when_its_pod_is_gone_or_terminal() {
    let terminal = Pod { phase: PodPhase::Failed, ..pod(&[A]) };
    for (target, why) in [(TargetPod::Absent, "PodDeleted"), (TargetPod::Present(&terminal), "PodTerminated")]
    {
        let mut request = begun(&pod(&[A]));
        request.metadata.deletion_timestamp = Some(at(1));
        assert!(advance(&mut request, TargetPod::NotCached, at(2)).confirm, "a cache may lag");
        advance(&mut request, target, at(2));
        assert_eq!(reason(&request, "Evicted").unwrap().0, why);
        assert!(request.status.active_interceptors.is_empty());
    }
}

#[test]
fn request_that_is_deleted_before_it_is_taken_up_never_gets_a_first_turn() {
    let pod = pod(&[A]);
    for (target, why) in
        [(TargetPod::Present(&pod), "RequestDeleted"), (TargetPod::Absent, "ValidationFailed")]
    {
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
    assert_eq!(
        step(&request, TargetPod::Absent, at(1_000_000), &Config::default()),
        RequestDecision::default()
    );
}

/// A writer of a terminal condition may leave the interceptor active: the controller ended its turn without
/// adding it to the processed ones.
#[test]
fn an_interceptor_left_active_by_another_writers_terminal_condition_counts_as_processed() {
    let mut request = begun(&pod(&[A]));
    request.status.conditions = ended("Evicted", "PodDeleted", 1).status.conditions;
    advance(&mut request, TargetPod::Absent, at(1));
    assert_eq!(
        (request.active_interceptor(), request.status.processed_interceptors.as_slice()),
        (None, &[A.into()][..])
    );
}
