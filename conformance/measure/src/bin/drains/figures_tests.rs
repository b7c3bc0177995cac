//! Figures of logs that were written by hand.

use serde_json::json;

use super::*;

const MANAGER: &str = "system:serviceaccount:drydock-system:drydock-controller-manager";
const APISERVER: &str = "system:serviceaccount:drydock-system:drydock-apiserver";

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap()
}

/// A request that was received then, and answered 10 ms later.
fn request(milliseconds: i64, user: &str, what: &str, name: &str, code: u16) -> LoggedRequest {
    let (verb, resource) = what.split_once(' ').unwrap();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    serde_json::from_value(json!({
        "verb": verb, "user": {"username": user},
        "objectRef": {"resource": resource, "subresource": subresource, "name": name},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": at(milliseconds), "stageTimestamp": at(milliseconds + 10),
    }))
    .unwrap()
}

fn eviction(milliseconds: i64, pod: &str, code: u16) -> LoggedRequest {
    request(milliseconds, MANAGER, "create pods/eviction", pod, code)
}

fn read(log: &[LoggedRequest], drained: &[&str]) -> DrainFigures {
    DrainFigures::read(log, &drained.iter().map(|&name| name.to_owned()).collect(), at(0), at(10_000))
}

fn counts(of: &[(&str, usize)]) -> AuditCounts {
    of.iter().map(|(what, times)| ((*what).to_owned(), *times)).collect()
}

#[test]
fn the_rate_is_that_between_the_5th_and_the_95th_percentile() {
    // A hundred and one, ten a second, but the first five wait for a minute, and so do the last five.
    let times: Vec<Timestamp> = (0..101_i64)
        .map(|i| at(i * 100 + if i < 5 { 0 } else { 60_000 } + if i <= 95 { 0 } else { 60_000 }))
        .collect();
    assert!((per_second(&times) - 10.0).abs() < 1e-9, "{}", per_second(&times));
}

#[test]
fn too_few_deletions_have_no_rate() {
    assert_eq!(per_second(&[]), 0.0);
    assert_eq!(per_second(&[at(1)]), 0.0);
    assert_eq!(per_second(&[at(1), at(1)]), 0.0);
}

#[test]
fn a_pod_counts_once_and_when_it_was_first_made_to_go() {
    let log = [
        eviction(1_000, "a", 429),
        eviction(2_000, "a", 201),
        eviction(2_500, "a", 201),
        request(3_000, "system:node:n", "delete pods", "a", 200),
        request(4_000, "somebody", "delete pods", "b", 200),
        eviction(5_000, "of-another-node", 201),
    ];
    let log: Vec<&LoggedRequest> = log.iter().collect();
    let drained = ["a", "b", "c"].map(str::to_owned).into();
    assert_eq!(made_to_go(&log, &drained), [("a", at(2_010)), ("b", at(4_010))].into());
}

#[test]
fn a_pod_that_its_kubelet_deletes_more_than_10_s_later_is_slow() {
    let log = [
        eviction(0, "soon", 201),
        eviction(0, "late", 201),
        eviction(0, "there", 201),
        request(10_000, "system:node:n", "delete pods", "soon", 200),
        request(10_001, "system:node:n", "delete pods", "late", 200),
    ];
    assert_eq!(read(&log, &["soon", "late", "there"]).slow, 1);
}

/// A report of imperative-eviction about the request for a pod, which has the pod's UID as its name.
fn report(milliseconds: i64, pod: &str) -> LoggedRequest {
    let report =
        request(milliseconds, MANAGER, "patch evictionrequests/status", &format!("uid-of-{pod}"), 200);
    LoggedRequest { uri: "/apis/x?fieldManager=imperative-eviction.k8s.io&force=true".into(), ..report }
}

fn eviction_by_uid(milliseconds: i64, pod: &str, code: u16) -> LoggedRequest {
    let request_object = json!({"deleteOptions": {"preconditions": {"uid": format!("uid-of-{pod}")}}});
    LoggedRequest { request_object, ..eviction(milliseconds, pod, code) }
}

#[test]
fn reports_after_a_refusal_and_those_that_time_makes_are_explained() {
    let log = [
        eviction_by_uid(0, "blocked", 429),
        report(100, "blocked"),
        // The state of what blocks has changed, or an event is due.
        report(8_100, "blocked"),
        eviction_by_uid(9_000, "blocked", 201),
        report(17_010, "blocked"),
        eviction_by_uid(0, "slow", 201),
        report(8_010, "slow"),
    ];
    let found = read(&log, &["blocked", "slow"]);
    assert_eq!(found.unexplained_reports, 0);
    assert_eq!(
        found.writes,
        counts(&[("create pods/eviction", 2), ("patch evictionrequests/status (reports)", 4)])
    );
}

#[test]
fn a_report_of_a_pod_that_nothing_holds_up_and_a_second_one_at_once_are_not() {
    let log = [
        eviction_by_uid(0, "leaves", 201),
        report(1_000, "leaves"),
        report(10, "early"),
        eviction_by_uid(20, "early", 429),
        eviction_by_uid(20, "twice", 429),
        report(100, "twice"),
        report(1_100, "twice"),
    ];
    assert_eq!(read(&log, &["leaves", "early", "twice"]).unexplained_reports, 3);
}

#[test]
fn the_first_deletion_is_timed_from_the_maintenance() {
    let created = request(500, "admin", "create nodemaintenances", "m", 201);
    let refused = request(200, "admin", "create nodemaintenances", "m", 409);
    let found = read(&[refused, created, eviction(1_490, "a", 201)], &["a"]);
    assert_eq!((found.deletions, found.first_deletion), (1, Some(1.0)));
    assert_eq!(read(&[eviction(1_490, "a", 201)], &["a"]).first_deletion, None);
}

#[test]
fn writes_are_ours_by_verb_and_resource_and_reviews_are_none() {
    let log = [
        request(-1, MANAGER, "create events", "before", 201),
        request(1, MANAGER, "patch evictionrequests/status", "a", 200),
        request(2, MANAGER, "patch evictionrequests/status", "b", 200),
        request(3, MANAGER, "patch evictionrequests/status", "b", 409),
        request(4, MANAGER, "patch evictionrequests", "a", 201),
        request(5, MANAGER, "watch pods", "", 200),
        request(6, "kwok", "patch pods/status", "a", 200),
        request(7, APISERVER, "create subjectaccessreviews", "", 201),
        request(8, APISERVER, "create tokenreviews", "", 201),
        request(9, "kubelet", "create subjectaccessreviews", "", 201),
    ];
    let found = read(&log, &[]);
    let expected = counts(&[("patch evictionrequests", 1), ("patch evictionrequests/status", 2)]);
    assert_eq!((found.writes, found.reviews), (expected, 2));
    assert_eq!(found.conflicts, counts(&[("patch evictionrequests/status", 1)]));
}

#[test]
fn refused_evictions_count_whoever_asked() {
    let log = [
        eviction(1, "a", 429),
        request(2, "loop", "create pods/eviction", "a", 429),
        request(3, "loop", "create pods/eviction", "a", 409),
        request(4, "loop", "create pods", "a", 409),
    ];
    let found = read(&log, &["a"]);
    assert_eq!(found.too_many, counts(&[("create pods/eviction", 2)]));
    assert_eq!(found.conflicts, counts(&[("create pods/eviction", 1)]));
}

#[test]
fn the_node_that_we_wrote_most_until_it_was_drained_is_found() {
    let log = [
        request(1, MANAGER, "patch nodes", "a", 200),
        request(2, MANAGER, "patch nodes", "b", 200),
        request(3, MANAGER, "patch nodes/status", "b", 200),
        request(4, MANAGER, "patch nodes", "b", 409),
        request(5, "kwok", "patch nodes/status", "b", 200),
        request(10_001, MANAGER, "patch nodes", "b", 200),
    ];
    assert_eq!(read(&log, &[]).most_writes_to_a_node, 2);
}
