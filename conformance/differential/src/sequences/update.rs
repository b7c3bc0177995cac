//! PUT, on objects and on their status.

use serde_json::{Value, json};

use super::{budget, budget_with, map};
use crate::area::Area::Update;
use crate::sequence::{Sequence, merge, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP, LEASE};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = versions();
    all.extend(identities());
    all.extend(counted());
    all.extend(status());
    all.extend(managers());
    all.extend(others());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Update, BUDGET, name)
}

/// A budget at the version of the first answer, with something else.
fn at_first(rest: Value) -> Value {
    at("0", rest)
}

/// A budget at the version of an answer, with something else.
fn at(answer: &str, rest: Value) -> Value {
    let mut budget = budget_with(
        "x",
        json!({"metadata": {"resourceVersion": format!("$({answer}.metadata.resourceVersion)")}}),
    );
    merge(&mut budget, rest);
    budget
}

fn versions() -> Vec<Sequence> {
    let version = |version: &str| {
        of(&format!("an update at version {version:?}"))
            .post(budget("x"))
            .put("x", budget_with("x", json!({"metadata": {"resourceVersion": version}})))
    };
    vec![
        of("an update of an old version is a conflict")
            .post(budget("x"))
            .put("x", at_first(json!({"spec": {"minAvailable": 2}})))
            .put("x", at_first(json!({"spec": {"minAvailable": 3}}))),
        of("an update without a version is refused").post(budget("x")).put("x", budget("x")),
        of("an update that changes nothing writes nothing")
            .post(budget("x"))
            .later()
            .put("x", at_first(json!({}))),
        version("0"),
        version("abc"),
        version("-1"),
        version("01"),
        version("99999999999"),
        version("99999999999999999999999"),
        Sequence::new(Update, CONFIG_MAP, "an update without a version where it may be")
            .post(map("x", json!({"a": "b"})))
            .put("x", map("x", json!({"a": "c"})))
            .put("x", map("x", json!({"a": "c"})))
            .put("x", object("x", json!({"metadata": {"resourceVersion": "0"}}))),
        Sequence::new(Update, CONFIG_MAP, "an update of an old version where none is needed")
            .post(map("x", json!({"a": "b"})))
            .put("x", map("x", json!({"a": "c"})))
            .put("x", object("x", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}}))),
    ]
}

fn identities() -> Vec<Sequence> {
    vec![
        of("an update of what is not there").put("x", budget("x")),
        of("an update of what is not there, by version")
            .put("x", budget_with("x", json!({"metadata": {"resourceVersion": "5"}}))),
        of("an update by another name").post(budget("x")).put("y", at_first(json!({}))),
        of("an update without a name").post(budget("x")).put("x", json!({"spec": {}})),
        of("an update in another namespace")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"namespace": "y"}}))),
        of("an update of another UID")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}))),
        of("an update of the same UID")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"uid": "$(0.metadata.uid)"}}))),
        of("an update of an object that was made anew")
            .post(budget("x"))
            .delete("x")
            .post(budget("x"))
            .put("x", at_first(json!({})))
            .put("x", at("2", json!({"metadata": {"uid": "$(0.metadata.uid)"}}))),
        Sequence::new(Update, LEASE, "an update may create")
            .put("x", object("x", json!({"spec": {"leaseDurationSeconds": 5}})))
            .get("x"),
        Sequence::new(Update, LEASE, "an update at a version does not create")
            .put("x", object("x", json!({"metadata": {"resourceVersion": "5"}}))),
        Sequence::new(Update, LEASE, "an update of a UID does not create")
            .put("x", object("x", json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}))),
        Sequence::new(Update, LEASE, "an update that may create is validated")
            .put("x", object("x", json!({"spec": {"leaseDurationSeconds": -5}}))),
    ]
}

fn counted() -> Vec<Sequence> {
    vec![
        of("generation counts changes of the spec alone")
            .post(budget("x"))
            .put("x", at("0", json!({"metadata": {"labels": {"a": "b"}}})))
            .put("x", at("1", json!({"spec": {"minAvailable": 2}})))
            .put("x", at("2", json!({"spec": {"minAvailable": 2}, "metadata": {"generation": 77}}))),
        of("times of the server are kept").post(budget("x")).later().put(
            "x",
            at_first(
                json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"a": "b"}}}),
            ),
        ),
        of("a deletion is not set by an update").post(budget("x")).put(
            "x",
            at_first(json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z",
                                                    "deletionGracePeriodSeconds": 5, "selfLink": "/a"}})),
        ),
        of("what is left out is removed")
            .post(budget_with("x", json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})))
            .put("x", at_first(json!({"spec": {"minAvailable": null, "maxUnavailable": "10%"}}))),
        of("an update is validated")
            .post(budget("x"))
            .put("x", at_first(json!({"spec": {"minAvailable": -3}}))),
        of("labels of an update are validated")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"labels": {"a": "b c"}}}))),
        of("a finalizer cannot be added to what is being deleted")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .delete("x")
            .put("x", at("1", json!({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})))
            .put("x", at("1", json!({"metadata": {"finalizers": ["a.b/c"], "labels": {"a": "b"}}})))
            .put("x", at("3", json!({"metadata": {"finalizers": []}})))
            .get("x"),
        of("owners twice in an update").post(budget("x")).put(
            "x",
            at_first(json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
                {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}})),
        ),
        of("a dry run of an update stores nothing")
            .post(budget("x"))
            .put("x", at_first(json!({"spec": {"minAvailable": 5}})))
            .query("dryRun=All")
            .get("x"),
    ]
}

fn status() -> Vec<Sequence> {
    let healthy = || json!({"status": {"currentHealthy": 3, "observedGeneration": 1}});
    let condition = |type_: &str, rest: Value| {
        let mut one = json!({"type": type_, "status": "True", "reason": "Ok", "message": "",
                             "lastTransitionTime": "2020-01-01T00:00:00Z"});
        merge(&mut one, rest);
        one
    };
    let conditions = |name: &str, all: Value| {
        of(name).post(budget("x")).put("x/status", at_first(json!({"status": {"conditions": all}})))
    };
    vec![
        of("the object's own update keeps the status")
            .post(budget("x"))
            .put("x/status", at("0", healthy()))
            .put("x", at("1", json!({"spec": {"minAvailable": 4}, "status": {"currentHealthy": 9}}))),
        of("a status update keeps spec and metadata").post(budget("x")).put(
            "x/status",
            at_first(json!({"spec": {"minAvailable": 9}, "status": {"currentHealthy": 3},
                            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["a.b/c"]}})),
        ),
        of("a status is read").post(budget("x")).get("x/status"),
        of("a status update without a version").post(budget("x")).put("x/status", budget("x")),
        of("a status update of an old version")
            .post(budget("x"))
            .put("x/status", at_first(healthy()))
            .put("x/status", at_first(json!({"status": {"currentHealthy": 4}}))),
        of("a status is validated")
            .post(budget("x"))
            .put("x/status", at_first(json!({"status": {"currentHealthy": -1, "expectedPods": -2}}))),
        of("a status of null").post(budget("x")).put("x/status", at_first(json!({"status": null}))),
        of("a status of what is not there").get("x/status").put("x/status", budget("x")),
        of("a status cannot be created").post(budget("x")).ask(crate::request::SequenceRequest::new(
            http::Method::POST, "$(collection)/x/status").object(budget("x"))),
        of("a status cannot be deleted").post(budget("x")).delete("x/status"),
        of("times in a map").post(budget("x")).put(
            "x/status",
            at_first(json!({"status": {"disruptedPods": {"p": "2020-01-01T00:00:00Z", "q": "2020-01-01T00:00:00.5+01:00"}}})),
        ),
        conditions("conditions are kept by type", json!([condition("A", json!({})), condition("B", json!({}))])),
        conditions("a condition with a generation of 0", json!([condition("A", json!({"observedGeneration": 0}))])),
        Sequence::new(Update, CONFIG_MAP, "a kind without a status has none to read or write")
            .post(map("x", json!({})))
            .get("x/status")
            .put("x/status", map("x", json!({}))),
    ]
}

fn managers() -> Vec<Sequence> {
    let by = |sequence: Sequence, agent: &str| sequence.header("user-agent", agent);
    let put = |sequence: Sequence, answer: &str, spec: Value, agent: &str| {
        by(sequence.put("x", at(answer, json!({"spec": spec}))), agent)
    };
    let first = of("what changes hands is told in managed fields").post(budget("x"));
    let second = put(first, "0", json!({"minAvailable": 2}), "second/1");
    let third = put(second, "1", json!({"minAvailable": null, "maxUnavailable": 1}), "third/1");
    let mut many = of("managers that are too many become one").post(budget("x"));
    for manager in 0..12 {
        many = by(
            many.put(
                "x",
                at(&manager.to_string(), json!({"metadata": {"labels": {format!("l{manager}"): "x"}}})),
            ),
            &format!("m{manager}"),
        );
    }
    vec![
        third,
        many,
        of("managed fields are reset by an empty entry")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"managedFields": [{}]}}))),
        of("an empty list of managed fields changes nothing")
            .post(budget("x"))
            .put("x", at_first(json!({"metadata": {"managedFields": []}, "spec": {"minAvailable": 2}}))),
        of("managed fields that cannot be read are left aside").post(budget("x")).put(
            "x",
            at_first(json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update",
                "apiVersion": "$(apiVersion)", "fieldsType": "FieldsV1", "fieldsV1": {"x": {}}}]}})),
        ),
        of("two stretches of one manager")
            .post(budget("x"))
            .later()
            .put("x", at("0", json!({"spec": {"minAvailable": 2}})))
            .later()
            .put("x/status", at("1", json!({"status": {"currentHealthy": 2}}))),
        of("a manager by parameter")
            .post(budget("x"))
            .put("x", at_first(json!({"spec": {"minAvailable": 2}})))
            .query("fieldManager=other"),
    ]
}

fn others() -> Vec<Sequence> {
    vec![
        Sequence::new(Update, CONFIG_MAP, "an immutable map")
            .post(object("x", json!({"data": {"a": "b"}, "immutable": true})))
            .put("x", object("x", json!({"data": {"a": "c"}})))
            .put("x", object("x", json!({"metadata": {"labels": {"a": "b"}}, "data": {"a": "b"}, "immutable": true}))),
        Sequence::new(Update, ACCOUNT, "lists of an account")
            .post(object("x", json!({"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "p"}]})))
            .put("x", object("x", json!({"secrets": [{"name": "b"}, {"name": "c"}], "imagePullSecrets": []})))
            .header("user-agent", "second"),
        Sequence::new(Update, LEASE, "a lease is renewed")
            .post(object("x", json!({"spec": {"holderIdentity": "a", "renewTime": "2020-01-02T03:04:05.000001Z"}})))
            .put("x", object("x", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"},
                "spec": {"holderIdentity": "", "renewTime": "2020-01-02T03:04:05.000002Z", "leaseTransitions": 0}}))),
    ]
}
