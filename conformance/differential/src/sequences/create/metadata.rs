//! Names, labels, owners and what else all objects have.

use serde_json::{Value, json};

use super::of;
use crate::sequence::Sequence;
use crate::sequences::{budget, budget_with};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = names();
    all.extend(system_fields());
    all.extend(maps());
    all.extend(owners());
    all.extend(managed());
    all
}

fn with(name: &str, metadata: Value) -> Sequence {
    of(name).post(budget_with("x", json!({"metadata": metadata})))
}

fn names() -> Vec<Sequence> {
    let long = "a".repeat(254);
    vec![
        of("an object without a name is refused").post(json!({"spec": {}})),
        of("a name is made").post(json!({"metadata": {"generateName": "x-"}, "spec": {}})),
        of("a name is made of a long prefix").post(json!({"metadata": {"generateName": "p".repeat(70)}})),
        of("a name goes before a prefix").post(json!({"metadata": {"generateName": "p-", "name": "x"}})),
        of("a long name is refused").post(budget(&long)),
        of("a name with a slash is refused").post(budget("a/b")),
        of("a name with a percent sign is refused").post(budget("a%b")),
        of("a name of a dot is refused").post(budget(".")),
        of("a name in capitals").post(budget("X_y")),
        of("labels and annotations are validated together")
            .post(budget_with("x", json!({"metadata": {"labels": {"ok": "-"}, "annotations": {"-": "x"}}}))),
        with("another namespace is refused", json!({"namespace": "elsewhere"})),
        with("the same namespace is taken", json!({"namespace": "$(namespace)"})),
        of("a namespace that is not there").post(budget("x")).with(|mut r| {
            r.path = "$(root)/namespaces/nowhere-at-all/$(plural)".into();
            r
        }),
    ]
}

fn system_fields() -> Vec<Sequence> {
    vec![
        with(
            "what the server sets is not the client's",
            json!({"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa", "creationTimestamp": "2001-01-01T00:00:00Z",
                   "generation": 7, "selfLink": "/a", "deletionTimestamp": "2001-01-01T00:00:00Z",
                   "deletionGracePeriodSeconds": 5}),
        ),
        with("a version is not the client's", json!({"resourceVersion": "5"})),
        with("version 0 is none", json!({"resourceVersion": "0"})),
        with("a negative generation", json!({"generation": -1})),
        with("a time that is none", json!({"creationTimestamp": "yesterday"})),
        with("a time of null", json!({"creationTimestamp": null})),
    ]
}

fn maps() -> Vec<Sequence> {
    let label = |what: &str, key: &str, value: &str| {
        with(&format!("a label with {what}"), json!({"labels": {key: value}}))
    };
    vec![
        label("two slashes", "a/b/c", "x"),
        label("a long value", "a", &"x".repeat(64)),
        label("a long name", &"a".repeat(64), "x"),
        label("a bad prefix", "A_b/c", "x"),
        label("an empty prefix", "/c", "x"),
        label("an empty key", "", "x"),
        label("an empty value", "a", ""),
        with("labels of null", json!({"labels": null})),
        with("a label of null", json!({"labels": {"a": null}})),
        with("a label of a number", json!({"labels": {"a": 1}})),
        with("labels in a list", json!({"labels": ["a"]})),
        with("annotations in capitals", json!({"annotations": {"A.b/C_d": "x y\n"}})),
        with("annotations that are too many", json!({"annotations": {"a": "x".repeat(262_144)}})),
        with("a finalizer without a group", json!({"finalizers": ["abc"]})),
        with("a finalizer with bad characters", json!({"finalizers": ["a.b/c d"]})),
        with("finalizers twice", json!({"finalizers": ["a.b/c", "a.b/c"]})),
        with("both finalizers of the collector", json!({"finalizers": ["orphan", "foregroundDeletion"]})),
        with("a finalizer of null", json!({"finalizers": [null]})),
    ]
}

fn owners() -> Vec<Sequence> {
    let owner = |uid: &str, rest: Value| {
        let mut owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
        crate::sequence::merge(&mut owner, rest);
        owner
    };
    let owned = |name: &str, owners: Value| with(name, json!({"ownerReferences": owners}));
    vec![
        owned("an owner", json!([owner("u", json!({"controller": true, "blockOwnerDeletion": false}))])),
        owned("owners twice", json!([owner("u", json!({})), owner("u", json!({})), owner("v", json!({}))])),
        owned(
            "two controllers",
            json!([owner("u", json!({"controller": true})), owner("v", json!({"controller": true}))]),
        ),
        owned("an owner without anything", json!([{}])),
        owned("an owner of a bad version", json!([owner("u", json!({"apiVersion": "a/b/c"}))])),
        owned("an event as an owner", json!([owner("u", json!({"kind": "Event"}))])),
    ]
}

fn managed() -> Vec<Sequence> {
    let entry = |rest: Value| {
        let mut entry = json!({"manager": "m", "operation": "Update", "apiVersion": "$(apiVersion)",
                               "time": "2001-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                               "fieldsV1": {"f:spec": {"f:minAvailable": {}}}});
        crate::sequence::merge(&mut entry, rest);
        entry
    };
    let given = |name: &str, entries: Value| with(name, json!({"managedFields": entries}));
    vec![
        given("managed fields of a client are kept", json!([entry(json!({}))])),
        given("managed fields of a bad operation", json!([entry(json!({"operation": "Guess"}))])),
        given("managed fields of a bad type", json!([entry(json!({"fieldsType": "FieldsV9"}))])),
        given("managed fields that cannot be read", json!([entry(json!({"fieldsV1": {"x:spec": {}}}))])),
        given("managed fields of another version", json!([entry(json!({"apiVersion": "other.io/v3"}))])),
        given("empty managed fields", json!([])),
        given("managed fields with an empty entry", json!([{}])),
        given("managed fields of a long manager", json!([entry(json!({"manager": "m".repeat(129)}))])),
    ]
}
