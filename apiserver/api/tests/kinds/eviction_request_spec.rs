//! Rules for the spec of an EvictionRequest (KEP-4563). The name of each test is the rule.

use drydock_api::eviction_request::{EvictionRequestKind, EvictionRequestStrategy};
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";

fn kind() -> EvictionRequestKind {
    EvictionRequestStrategy::new(std::time::Duration::from_secs(1200)).into_kind()
}

fn object(value: Value) -> Object {
    let Value::Object(map) = value else { panic!("not an object") };
    Object::from(map)
}

fn request(spec: Value) -> Value {
    json!({ "metadata": { "name": "u1", "namespace": "ns", "generation": 1 }, "spec": spec })
}

fn good() -> Value {
    json!({ "target": { "pod": { "name": "p", "uid": "u1" } }, "requesters": [{ "name": "a.example" }] })
}

fn create(value: Value) -> Vec<String> {
    kind().validate_create(&object(value), NOW.parse().unwrap()).iter().map(ToString::to_string).collect()
}

fn update(new: Value, old: Value) -> Vec<String> {
    let (new, old) = (object(new), object(old));
    kind().validate_update(&new, &old, NOW.parse().unwrap()).iter().map(ToString::to_string).collect()
}

fn with(mut value: Value, pointer: &str, new: Value) -> Value {
    *value.pointer_mut(pointer).unwrap() = new;
    value
}

#[test]
fn a_complete_request_is_accepted() {
    assert!(create(request(good())).is_empty());
    assert!(update(request(good()), request(good())).is_empty());
}

#[test]
fn generate_name_is_rejected() {
    assert!(!kind().allows_generate_name());
    let mut value = request(good());
    value["metadata"]["generateName"] = "x-".into();
    let words = "metadata.generateName: Forbidden: is not supported; name must be the pod's UID";
    assert_eq!(create(value), [words]);
}

#[test]
fn the_name_must_equal_the_pods_uid() {
    let value = with(request(good()), "/metadata/name", "other".into());
    let words = "metadata.name: Invalid value: \"other\": must be equal to spec.target.pod.uid";
    assert_eq!(create(value), [words]);
}

#[test]
fn the_target_is_exactly_one_pod_with_name_and_uid() {
    let target = |t: Value| create(with(request(good()), "/spec/target", t));
    assert_eq!(target(json!({})), ["spec.target: Required value: must specify exactly one of: `pod`"]);
    assert_eq!(target(json!({ "pod": { "name": "p" } })), ["spec.target.pod.uid: Required value"]);
    assert_eq!(target(json!({ "pod": { "uid": "u1" } })), ["spec.target.pod.name: Required value"]);
    let bad = target(json!({ "pod": { "uid": "u1", "name": "P_" } }));
    assert!(
        bad[0]
            .starts_with("spec.target.pod.name: Invalid value: \"P_\": a lowercase RFC 1123 subdomain must")
    );
    assert_eq!(create(json!({ "metadata": { "name": "u1" } })).len(), 2);
}

#[test]
fn a_new_request_has_one_to_a_hundred_requesters() {
    let requesters = |n: usize| {
        let list: Vec<Value> = (0..n).map(|i| json!({ "name": format!("r{i}.example") })).collect();
        create(with(request(good()), "/spec/requesters", list.into()))
    };
    assert_eq!(requesters(0), ["spec.requesters: Required value: must have at least one requester"]);
    assert!(requesters(100).is_empty());
    assert_eq!(requesters(101), ["spec.requesters: Too many: 101: must have at most 100 items"]);
}

#[test]
fn requesters_are_unique_fully_qualified_domain_names_without_a_trailing_dot() {
    let requesters = |list: Value| create(with(request(good()), "/spec/requesters", list));
    let twice = requesters(json!([{ "name": "a.b" }, { "name": "a.b" }]));
    assert_eq!(twice, ["spec.requesters[1].name: Duplicate value: \"a.b\""]);
    let one = requesters(json!([{ "name": "a" }]));
    let words = "should be a domain with at least two segments separated by dots";
    assert_eq!(one, [format!("spec.requesters[0].name: Invalid value: \"a\": {words}")]);
    assert_eq!(requesters(json!([{ "name": "" }])), ["spec.requesters[0].name: Required value"]);
    assert_eq!(requesters(json!([{ "name": "a.b." }])).len(), 1);
    assert_eq!(requesters(json!([{ "name": "A.b" }])).len(), 1);
}

#[test]
fn status_is_emptied_on_create_and_kept_on_update() {
    let mut value = request(good());
    value["status"] = json!({ "observedGeneration": 7 });
    let mut new = object(value.clone());
    kind().prepare_for_create(&mut new);
    assert_eq!(new.0["status"], json!({}));
    kind().prepare_for_update(&mut new, &object(value));
    assert_eq!(new.0["status"], json!({ "observedGeneration": 7 }));
}

#[test]
fn a_status_update_keeps_the_spec() {
    let mut new = object(with(request(good()), "/spec/requesters", json!([])));
    kind().prepare_for_status_update(&mut new, &object(request(good())));
    assert_eq!(new.0["spec"], good());
}

#[test]
fn the_target_is_immutable() {
    let new = with(request(good()), "/spec/target/pod/name", "q".into());
    let words = r#"spec.target: Invalid value: {"pod":{"name":"q","uid":"u1"}}: field is immutable"#;
    assert_eq!(update(new, request(good())), [words]);
}

/// Controllers hold all requests with their finalizers, of which 64 KiB has 9,000.
#[test]
fn the_finalizers_of_a_request_are_bounded_and_may_not_become_more() {
    let with = |count: usize| {
        let mut object = request(good());
        object["metadata"]["finalizers"] =
            (0..count).map(|at| format!("example.com/f{at}")).collect::<Vec<_>>().into();
        object
    };
    let words = |count: usize| format!("metadata.finalizers: Too many: {count}: must have at most 100 items");
    assert!(create(with(100)).is_empty());
    assert_eq!(create(with(101)), [words(101)]);
    assert_eq!(update(with(101), with(100)), [words(101)]);
    for (new, old) in [(150, 150), (149, 150), (0, 150)] {
        assert_eq!(update(with(new), with(old)), Vec::<String>::new(), "{new} of {old}");
    }
}

#[test]
fn requesters_may_change_and_become_empty() {
    for list in [json!([]), json!([{ "name": "b.example" }])] {
        assert!(update(with(request(good()), "/spec/requesters", list), request(good())).is_empty());
    }
}

#[test]
fn a_finished_request_takes_no_new_requester_but_lets_one_go() {
    for condition in ["Evicted", "Canceled"] {
        let mut old = request(good());
        old["status"] = json!({ "conditions": [{ "type": condition, "status": "True" }] });
        let more = with(old.clone(), "/spec/requesters", json!([{ "name": "b.c" }]));
        let errors = update(more, old.clone());
        assert!(
            errors[0].starts_with("spec.requesters: Forbidden: a requester may not be added to a finished")
        );
        assert!(update(with(old.clone(), "/spec/requesters", json!([])), old.clone()).is_empty());
        assert!(update(old.clone(), old).is_empty());
    }
}

/// Regression: a requester that was added waited forever, because no interceptor becomes active any more, and another
/// request can be created only when this one is gone.
#[test]
fn a_request_that_is_being_deleted_takes_no_new_requester_but_lets_one_go() {
    let mut old = request(good());
    old["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z".into();
    let more = with(old.clone(), "/spec/requesters", json!([{ "name": "b.c" }]));
    let expected = "spec.requesters: Forbidden: a requester may not be added to an eviction request that is being \
                    deleted: create another when it is gone";
    assert_eq!(update(more, old.clone()), [expected]);
    assert!(update(with(old.clone(), "/spec/requesters", json!([])), old.clone()).is_empty());
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_panic() {
    for spec in [json!(7), json!({ "requesters": "x" }), json!({ "target": { "pod": [] } }), Value::Null] {
        assert!(!create(request(spec)).is_empty());
    }
    assert_eq!(
        kind().cells(&object(json!({ "metadata": 3 })), NOW.parse().unwrap()).len(),
        kind().columns().len()
    );
}

#[test]
fn columns_show_state_and_the_active_interceptor() {
    let mut value = request(good());
    value["metadata"]["creationTimestamp"] = "2025-12-31T23:50:00Z".into();
    let cells = |v: &Value| -> Vec<String> {
        let cells = kind().cells(&object(v.clone()), NOW.parse().unwrap());
        cells.iter().map(|c| c.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(cells(&value)[..7], ["u1", "p", "a.example", "<none>", "Pending", "<unknown>", "10m"]);
    let eviction = "imperative-eviction.k8s.io";
    value["status"] = json!({ "activeInterceptors": [eviction], "processedInterceptors": ["x.y"], "interceptors": [
        { "name": eviction, "message": "", "heartbeatTime": "2025-12-31T23:59:00Z",
          "expectedFinishTime": "2026-01-01T00:05:00Z" }] });
    assert_eq!(cells(&value)[3..], [eviction, "Evicting", "5m", "10m", "<none>", "<none>", "60s", "x.y", ""]);
    let blocked = "Could not evict a pod due to failing eviction requests, number of retries: 7.";
    value["status"]["interceptors"][0]["message"] = blocked.into();
    value["status"]["interceptors"][0]["blocked"] = json!({ "reason": "PodDisruptionBudget" });
    assert_eq!(cells(&value)[4], "Blocked");
    assert_eq!(cells(&value)[11], blocked);
    value["status"]["activeInterceptors"] = json!(["a.b"]);
    assert_eq!(cells(&value)[4], "Intercepting");
    for (condition, n) in [("Canceled", 0), ("Evicted", 1)] {
        value["status"]["conditions"] =
            json!([{ "type": condition, "status": "True", "message": n.to_string() }]);
        assert_eq!(cells(&value)[4], condition);
    }
}
