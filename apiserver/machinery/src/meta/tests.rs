//! The rules for metadata: what is refused, and the fields that only the server sets.

#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;
use crate::names::name_is_dns_subdomain;

fn object(meta: Value) -> Object {
    let Value::Object(map) = json!({ "metadata": meta }) else { unreachable!() };
    Object::from(map)
}

fn create(meta: Value) -> Vec<String> {
    validate_object_meta_create(&object(meta), true, name_is_dns_subdomain)
        .iter()
        .map(Error::to_string)
        .collect()
}

fn update(new: Value, old: Value) -> Vec<String> {
    validate_object_meta_update(&object(new), &object(old), true).iter().map(Error::to_string).collect()
}

#[test]
fn plain_metadata_is_fine() {
    let meta = json!({"name": "a.b", "namespace": "n", "labels": {"a/b": ""}, "annotations": {"A/b": "any thing"},
        "finalizers": ["a/b"], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        "managedFields": [{"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m"}]});
    assert_eq!(create(meta), [""; 0]);
}

#[test]
fn a_name_and_a_namespace_are_required() {
    assert_eq!(
        create(json!({})),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value"
        ]
    );
    let cluster = validate_object_meta_create(
        &object(json!({"name": "a", "namespace": "n"})),
        false,
        name_is_dns_subdomain,
    );
    assert_eq!(cluster[0].to_string(), "metadata.namespace: Forbidden: not allowed on this type");
}

#[test]
fn one_controller_at_most() {
    let owner =
        |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
    let errors = create(json!({"name": "a", "namespace": "n", "ownerReferences": [owner("p"), owner("q")]}));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].ends_with("Found \"true\" in references for Pod/p and Pod/q"), "{errors:?}");
}

#[test]
fn an_owner_must_be_complete_and_no_event() {
    let errors = create(
        json!({"name": "a", "namespace": "n", "ownerReferences": [{}, {"apiVersion": "a/b/c", "kind": "k", "name": "n", "uid": "u"}]}),
    );
    assert_eq!(errors.len(), 5);
    let event = json!({"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"});
    let errors = create(json!({"name": "a", "namespace": "n", "ownerReferences": [event]}));
    assert!(errors[0].ends_with("/v1, Kind=Event is disallowed from being an owner"));
}

#[test]
fn annotations_are_bounded_in_total() {
    let errors =
        create(json!({"name": "a", "namespace": "n", "annotations": {"k": "v".repeat(ANNOTATIONS_MAX)}}));
    assert_eq!(errors, ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

#[test]
fn managed_fields_entries_are_checked() {
    let errors = create(
        json!({"name": "a", "namespace": "n", "managedFields": [{"operation": "", "fieldsType": "v2", "manager": "\n", "subresource": "s".repeat(257)}]}),
    );
    assert_eq!(
        errors,
        [
            "metadata.managedFields[0].operation: Invalid value: \"\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"v2\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"\\n\": invalid character U+000A (at position 0)",
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}

#[test]
fn identity_cannot_change() {
    let old = json!({"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "deletionTimestamp": "2024-01-01T00:00:00Z"});
    let errors = update(json!({"name": "b", "namespace": "n", "resourceVersion": "1"}), old);
    assert_eq!(
        errors,
        [
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.uid: Invalid value: \"\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
        ]
    );
}

#[test]
fn no_finalizer_is_added_while_deleting() {
    let base = |finalizers: Value| json!({"name": "a", "namespace": "n", "resourceVersion": "1", "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": finalizers});
    assert_eq!(
        update(base(json!(["x/a", "x/b"])), base(json!(["x/a"]))),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x/b\"}"
        ]
    );
    assert_eq!(update(base(json!([])), base(json!(["x/a"]))), [""; 0]);
}

#[test]
fn an_update_needs_a_resource_version() {
    let meta = || json!({"name": "a", "namespace": "n"});
    assert_eq!(
        update(meta(), meta()),
        ["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]
    );
}

#[test]
fn generated_names_fit_a_label() {
    let name = generate_name(&"a".repeat(100), 0);
    assert_eq!(name, format!("{}bbbbb", "a".repeat(58)));
    assert_eq!(generate_name("x-", 27 + 1), "x-ccbbb");
    assert!(generate_name(&"é".repeat(40), u64::MAX).len() <= 63);
}

#[test]
fn system_fields_of_a_client_are_replaced() {
    let mut new = object(
        json!({"name": "a", "uid": "mine", "deletionTimestamp": "2024-01-01T00:00:00Z", "selfLink": "x"}),
    );
    fill_system_fields(&mut new, "u", "2024-05-06T07:08:09.5Z".parse().unwrap());
    assert_eq!(
        Value::Object(new.0["metadata"].as_object().unwrap().clone()),
        json!({"name": "a", "uid": "u", "creationTimestamp": "2024-05-06T07:08:09Z"})
    );
}

#[test]
fn an_update_keeps_what_is_the_servers() {
    let old = object(
        json!({"name": "a", "uid": "u", "generation": 3, "creationTimestamp": "2024-01-01T00:00:00Z"}),
    );
    let mut new = object(json!({"name": "a", "generation": 7}));
    carry_system_fields(&mut new, &old);
    assert_eq!(new, old);
}

#[test]
fn the_namespace_is_that_of_the_request() {
    let mut unset = object(json!({"name": "a"}));
    ensure_namespace(&mut unset, "n").unwrap();
    assert_eq!(unset.namespace(), "n");
    assert_eq!(ensure_namespace(&mut unset, "m").unwrap_err().code(), 400);
    ensure_namespace(&mut unset, "").unwrap();
    assert_eq!(unset.namespace(), "");
}
