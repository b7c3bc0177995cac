//! Rules of the field manager that sequences of ordinary writes do not exercise.

use drydock_machinery::Object;
use drydock_machinery::kind::Now;
use drydock_machinery::managed_fields::{FieldManager, Set, ignore_timestamps};
use drydock_machinery::object::ManagedFieldsEntry;
use serde_json::{Value, json};

/// Calls `test` with a field manager of the main resource, and noon as the time.
pub fn fixture<T>(test: impl FnOnce(FieldManager<'_>, Now) -> T) -> T {
    let schema = super::schema::sample();
    let reset = Set::of_fields(&[&["status"]]);
    let manager = FieldManager {
        schema: &schema,
        api_version: "example.io/v1",
        kind: "Sample",
        subresource: "",
        reset: &reset,
        versions: None,
    };
    test(manager, "2024-01-01T12:00:00.9Z".parse().unwrap())
}

fn sample(meta: Value, spec: Value) -> Object {
    let object = json!({"apiVersion": "example.io/v1", "kind": "Sample", "metadata": meta, "spec": spec});
    Object::from(object.as_object().unwrap().clone())
}

fn entries(object: &Object) -> Vec<Value> {
    object.managed_fields().unwrap_or_default().iter().map(ManagedFieldsEntry::to_value).collect()
}

fn managers(object: &Object) -> Vec<String> {
    entries(object).iter().map(|e| format!("{}/{}", e["manager"], e["operation"]).replace('"', "")).collect()
}

#[test]
fn a_create_owns_what_it_sets_but_no_identity_and_no_struct() {
    let meta = json!({"name": "x", "namespace": "n", "generation": 1, "labels": {"a": "b"}});
    let created = fixture(|m, now| m.update(None, sample(meta, json!({"stage": "s"})), "", now));
    let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:spec": {"f:stage": {}}});
    let entry = json!({
        "manager": "unknown", "operation": "Update", "apiVersion": "example.io/v1", "time": "2024-01-01T12:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": fields
    });
    assert_eq!(entries(&created), [entry]);
}

#[test]
fn at_most_ten_updaters_are_told_apart() {
    let mut live = fixture(|m, now| m.update(None, sample(json!({"name": "x"}), json!({})), "m", now));
    for n in 0..15 {
        let mut new = live.clone();
        new.set_meta("uid", Some("u".into()));
        new.0["spec"]["map"][format!("k{n:02}")] = json!("v");
        let now = Now::from_second(1_700_000_000 + n).unwrap();
        live = fixture(|m, _| m.update(Some(&live), new, &format!("m{n:02}"), now));
    }
    let managers = managers(&live);
    assert_eq!(managers.len(), 10);
    assert_eq!(managers[0], "ancient-changes/Update");
    assert_eq!(managers[1], "m06/Update");
    let old = &entries(&live)[0];
    assert_eq!(old["fieldsV1"]["f:spec"]["f:map"].as_object().unwrap().len(), 7);
    assert_eq!(old["time"], Now::from_second(1_700_000_005).unwrap().to_string());
}

#[test]
fn the_first_apply_finds_an_owner_for_what_was_there() {
    let live = sample(json!({"name": "x", "uid": "u"}), json!({"stage": "a", "count": 1}));
    let patch = sample(json!({"name": "x"}), json!({"count": 1}));
    let new = fixture(|m, now| m.apply(&live, patch, "me", false, now)).unwrap().unwrap();
    assert_eq!(managers(&new), ["me/Apply", "before-first-apply/Update"]);
    let conflict = sample(json!({"name": "x"}), json!({"stage": "b"}));
    let error = fixture(|m, now| m.apply(&live, conflict, "me", false, now)).unwrap_err().status;
    let who = "conflict with \"before-first-apply\" using example.io/v1";
    assert_eq!((error.code, error.reason.as_str()), (409, "Conflict"));
    assert_eq!(error.message, format!("Apply failed with 1 conflict: {who}: .spec.stage"));
    let causes = error.details.unwrap().causes;
    assert_eq!(causes.len(), 1);
    assert_eq!(
        (causes[0].reason.as_str(), causes[0].field.as_str()),
        ("FieldManagerConflict", ".spec.stage")
    );
    assert_eq!(causes[0].message, who);
}

#[test]
fn several_conflicts_are_grouped_by_manager() {
    let live = fixture(|m, now| {
        m.update(None, sample(json!({"name": "x"}), json!({"stage": "a", "count": 1})), "up", now)
    });
    let patch = sample(json!({"name": "x"}), json!({"stage": "b", "count": 2}));
    let error = fixture(|m, now| m.apply(&live, patch, "me", false, now)).unwrap_err().status;
    let want = "Apply failed with 2 conflicts: conflicts with \"up\" using example.io/v1:\n- .spec.count\n- .spec.stage";
    assert_eq!(error.message, want);
}

#[test]
fn an_object_that_is_not_tracked_stays_untracked_until_it_is_applied() {
    let live = sample(json!({"name": "x", "uid": "u"}), json!({}));
    let new = sample(json!({"name": "x", "uid": "u"}), json!({"stage": "a"}));
    assert!(entries(&fixture(|m, now| m.update(Some(&live), new, "m", now))).is_empty());
}

#[test]
fn an_empty_entry_resets() {
    let mut live =
        fixture(|m, now| m.update(None, sample(json!({"name": "x"}), json!({"stage": "a"})), "m", now));
    live.set_meta("uid", Some("u".into()));
    for reset in [json!([{}]), json!([])] {
        let mut new = live.clone();
        new.set_meta("managedFields", Some(reset));
        assert!(entries(&fixture(|m, now| m.update(Some(&live), new, "m", now))).is_empty());
    }
    let mut new = live.clone();
    new.set_meta("managedFields", Some(json!([{"operation": "Nonsense"}])));
    assert_eq!(entries(&fixture(|m, now| m.update(Some(&live), new, "m", now))), entries(&live));
}

#[test]
fn a_write_that_changes_nothing_keeps_its_time() {
    let mut live =
        fixture(|m, now| m.update(None, sample(json!({"name": "x"}), json!({"stage": "a"})), "m", now));
    live.set_meta("uid", Some("u".into()));
    let later = "2030-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(fixture(|m, _| m.update(Some(&live), live.clone(), "other", later)), live);
    let patch = || sample(json!({"name": "x"}), json!({"stage": "a"}));
    let applied = fixture(|m, now| m.apply(&live, patch(), "me", false, now)).unwrap().unwrap();
    assert_eq!(fixture(|m, _| m.apply(&applied, patch(), "me", false, later)), Ok(None));
}

#[test]
fn times_alone_are_no_change() {
    let old = fixture(|m, now| m.update(None, sample(json!({"name": "x"}), json!({"stage": "a"})), "m", now));
    let mut new = old.clone();
    let mut entries = old.managed_fields().unwrap().to_vec();
    entries[0].time = "2030-01-01T00:00:00Z".to_owned();
    new.set_managed_fields(entries);
    assert_eq!(ignore_timestamps(new.clone(), &old), old);
    new.0["spec"]["stage"] = json!("b");
    assert_eq!(ignore_timestamps(new.clone(), &old), new);
}

#[test]
fn configurations_of_another_kind_or_with_managed_fields_are_bad_requests() {
    let mut other = sample(json!({"name": "x"}), json!({}));
    other.0["kind"] = json!("Other");
    let error = fixture(|m, now| m.apply(&Object::default(), other, "m", false, now)).unwrap_err().status;
    assert_eq!((error.code, error.message.as_str()), (400, "invalid object type: example.io/v1, Kind=Other"));
    for (version, shown) in [("v7", "/v7, Kind=Sample"), ("a/b/c", "/, Kind=")] {
        let mut other = sample(json!({"name": "x"}), json!({}));
        other.0["apiVersion"] = json!(version);
        let error = fixture(|m, now| m.apply(&Object::default(), other, "m", false, now)).unwrap_err().status;
        assert_eq!(error.message, format!("invalid object type: {shown}"));
    }
    for fields in [json!([]), json!([{}])] {
        let patch = sample(json!({"name": "x", "managedFields": fields}), json!({}));
        let error = fixture(|m, now| m.apply(&Object::default(), patch, "m", false, now)).unwrap_err().status;
        assert_eq!((error.code, error.message.as_str()), (400, "metadata.managedFields must be nil"));
    }
}

#[test]
fn configurations_that_do_not_fit_the_schema_are_refused() {
    for (spec, why) in [
        // Other errors beside an unknown field are not checked.
        (json!({"nope": 1, "stage": 1}), ".spec.nope: field not declared in schema"),
        (json!({"stage": 1}), ".spec.stage: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"count": "1"}), ".spec.count: expected numeric (int or float), got string"),
        (json!({"map": []}), ".spec.map: expected map, got &{[]}"),
        (json!({"list": {}}), ".spec.list: expected list, got &{map[]}"),
        (json!({"set": ["a", "a"]}), ".spec.set: duplicate entries for key [=\"a\"]"),
        (
            json!({"set": [null]}),
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"items": [{"name": "a"}, {"name": "a"}]}),
            ".spec.items: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"items": [{"name": "a", "x": 1}]}),
            ".spec.items[name=\"a\"].x: field not declared in schema",
        ),
    ] {
        let patch = sample(json!({"name": "x"}), spec);
        let error = fixture(|m, now| m.apply(&Object::default(), patch, "m", false, now)).unwrap_err().status;
        let of = "failed to create typed patch object (/x; example.io/v1, Kind=Sample)";
        assert_eq!((error.code, error.message), (500, format!("{of}: {why}")));
    }
}

#[test]
fn entries_of_other_versions_are_dropped_and_paths_into_atomic_fields_end_there() {
    let mut live =
        sample(json!({"name": "x", "uid": "u"}), json!({"fixed": {"a": "1"}, "atoms": [{"name": "n"}]}));
    let entry = |version: &str, fields: Value| json!({"manager": "m", "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields});
    let deep = json!({"f:spec": {"f:fixed": {"f:a": {}}, "f:atoms": {"k:{\"name\":\"n\"}": {"f:name": {}}}}});
    let mine = entry("example.io/v1", deep);
    live.set_meta(
        "managedFields",
        Some(json!([mine, entry("example.io/v2", json!({"f:spec": {"f:x": {}}}))])),
    );
    let new = live.clone();
    let updated = fixture(|m, now| m.update(Some(&live), new, "other", now));
    let cut = json!({"f:spec": {"f:fixed": {}, "f:atoms": {"k:{\"name\":\"n\"}": {}}}});
    assert_eq!(entries(&updated), [entry("example.io/v1", cut)]);
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[test]
fn kubectl_takes_over_what_its_client_side_apply_set() {
    let last = sample(json!({"name": "x"}), json!({"stage": "a", "count": 1})).to_json();
    let last = std::str::from_utf8(&last).unwrap();
    let meta = json!({"name": "x", "annotations": {LAST_APPLIED: last}});
    // The count was changed since.
    let live = fixture(|m, now| m.update(None, sample(meta, json!({"stage": "a", "count": 5})), "up", now));
    let apply = |name: &str, spec: Value| {
        fixture(|m, now| m.apply(&live, sample(json!({"name": "x"}), spec), name, false, now))
    };
    assert_eq!(apply("other", json!({"stage": "<b>"})).unwrap_err().code(), 409);
    let error = apply("kubectl", json!({"stage": "<b>", "count": 2})).unwrap_err().status;
    assert!(error.message.ends_with("1 conflict: conflict with \"up\" using example.io/v1: .spec.count"));
    let new = apply("kubectl", json!({"stage": "<b>"})).unwrap().unwrap();
    assert_eq!(new.0["spec"]["stage"], "<b>");
    let want = r#"{"apiVersion":"example.io/v1","kind":"Sample","metadata":{"name":"x"},"spec":{"stage":"\u003cb\u003e"}}"#;
    assert_eq!(new.meta().unwrap()["annotations"][LAST_APPLIED], format!("{want}\n"));
}

#[test]
fn an_annotation_that_is_no_configuration_lets_nothing_through() {
    for text in ["{", "[]", "{}", r#"{"apiVersion":"example.io/v2","spec":{"stage":"a"}}"#] {
        let meta = json!({"name": "x", "annotations": {LAST_APPLIED: text}});
        let live = fixture(|m, now| m.update(None, sample(meta, json!({"stage": "a"})), "up", now));
        let patch = sample(json!({"name": "x"}), json!({"stage": "b"}));
        assert_eq!(fixture(|m, now| m.apply(&live, patch, "kubectl", false, now)).unwrap_err().code(), 409);
    }
}

/// In Kubernetes' own schemas, the default of a field that is always written is its zero value.
#[test]
fn an_item_without_its_key_has_the_zero_value_for_it() {
    let patch = sample(json!({"name": "x"}), json!({"items": [{"note": "n"}]}));
    let new = fixture(|m, now| m.apply(&Object::default(), patch, "m", false, now)).unwrap().unwrap();
    let fields = &new.to_value()["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:items"];
    assert_eq!(*fields, json!({"k:{\"name\":\"\"}": {".": {}, "f:note": {}}}));
}
