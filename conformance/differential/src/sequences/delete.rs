//! Deletion of one object and of collections.

use http::Method;
use serde_json::{Value, json};

use super::{budget, budget_with};
use crate::area::Area::Delete;
use crate::request::SequenceRequest;
use crate::sequence::Sequence;
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = simple();
    all.extend(propagation());
    all.extend(preconditions());
    all.extend(options());
    all.extend(collections());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Delete, BUDGET, name)
}

fn held(name: &str) -> Sequence {
    of(name).post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
}

fn simple() -> Vec<Sequence> {
    vec![
        of("a deleted object is gone").post(budget("x")).delete("x").get("x").delete("x"),
        held("an object with a finalizer waits")
            .delete("x")
            .merge_patch("x", json!({"metadata": {"finalizers": null}}))
            .get("x"),
        held("a second deletion changes nothing").delete("x").later().delete("x"),
        held("the last finalizer is removed by an update")
            .delete("x")
            .put(
                "x",
                budget_with("x", json!({"metadata": {"resourceVersion": "$(1.metadata.resourceVersion)"}})),
            )
            .get("x"),
        held("the last finalizer is removed by an apply")
            .apply_by_force("x", "one", json!({"metadata": {"finalizers": ["a.b/c"]}}))
            .merge_patch("x", json!({"metadata": {"labels": {"a": "b"}}}))
            .delete("x")
            .apply_by_force("x", "one", json!({}))
            .get("x"),
        held("a finalizer is removed through the status")
            .delete("x")
            .merge_patch("x/status", json!({"metadata": {"finalizers": null}})),
        held("a dry run removes the last finalizer")
            .delete("x")
            .merge_patch("x", json!({"metadata": {"finalizers": null}}))
            .query("dryRun=All")
            .get("x"),
    ]
}

fn propagation() -> Vec<Sequence> {
    let mut all = Vec::new();
    for policy in ["Orphan", "Background", "Foreground", "Sideways", ""] {
        all.push(
            of(&format!("propagation {policy:?} in the body"))
                .post(budget("x"))
                .delete_with("x", json!({"propagationPolicy": policy}))
                .get("x"),
        );
        all.push(
            of(&format!("propagation {policy:?} in the query"))
                .post(budget("x"))
                .delete("x")
                .query(&format!("propagationPolicy={policy}")),
        );
        all.push(
            held(&format!("propagation {policy:?} beside a finalizer"))
                .delete_with("x", json!({"propagationPolicy": policy})),
        );
    }
    for orphan in [true, false] {
        all.push(
            of(&format!("orphanDependents {orphan}"))
                .post(budget("x"))
                .delete_with("x", json!({"orphanDependents": orphan})),
        );
    }
    all.push(
        of("a policy and orphanDependents")
            .post(budget("x"))
            .delete_with("x", json!({"orphanDependents": true, "propagationPolicy": "Orphan"})),
    );
    all.push(
        of("foreground, then background")
            .post(budget("x"))
            .delete_with("x", json!({"propagationPolicy": "Foreground"}))
            .delete_with("x", json!({"propagationPolicy": "Background"}))
            .get("x"),
    );
    all.push(
        of("foreground, then orphan")
            .post(budget("x"))
            .delete_with("x", json!({"propagationPolicy": "Foreground"}))
            .delete_with("x", json!({"propagationPolicy": "Orphan"})),
    );
    all
}

fn preconditions() -> Vec<Sequence> {
    let with = |name: &str, preconditions: Value| {
        of(name).post(budget("x")).delete_with("x", json!({"preconditions": preconditions})).get("x")
    };
    vec![
        with("the UID that it has", json!({"uid": "$(0.metadata.uid)"})),
        with("another UID", json!({"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"})),
        with("the version that it has", json!({"resourceVersion": "$(0.metadata.resourceVersion)"})),
        with("another version", json!({"resourceVersion": "1"})),
        with("a version that is none", json!({"resourceVersion": "abc"})),
        with("no preconditions", json!({})),
        with("preconditions of both", json!({"uid": "$(0.metadata.uid)", "resourceVersion": "1"})),
        of("preconditions of what is not there").delete_with("x", json!({"preconditions": {"uid": "u"}})),
        held("another version beside a finalizer")
            .delete_with("x", json!({"preconditions": {"resourceVersion": "1"}})),
    ]
}

fn options() -> Vec<Sequence> {
    let body = |name: &str, text: &str| {
        of(name).post(budget("x")).delete("x").with(|r| r.body("application/json", text))
    };
    vec![
        of("a dry run of a deletion").post(budget("x")).delete("x").query("dryRun=All").get("x"),
        of("a dry run of a deletion in the body")
            .post(budget("x"))
            .delete_with("x", json!({"dryRun": ["All"]}))
            .get("x"),
        of("a bad dry run of a deletion").post(budget("x")).delete("x").query("dryRun=Some"),
        held("a dry run of a deletion beside a finalizer").delete("x").query("dryRun=All").get("x"),
        of("the body's options go before the query's")
            .post(budget("x"))
            .delete_with("x", json!({}))
            .query("propagationPolicy=Sideways"),
        of("a grace period of 0").post(budget("x")).delete_with("x", json!({"gracePeriodSeconds": 0})),
        of("a grace period of 30").post(budget("x")).delete("x").query("gracePeriodSeconds=30"),
        held("a grace period beside a finalizer").delete_with("x", json!({"gracePeriodSeconds": 30})),
        of("a negative grace period").post(budget("x")).delete_with("x", json!({"gracePeriodSeconds": -1})),
        of("a grace period that is none").post(budget("x")).delete("x").query("gracePeriodSeconds=x"),
        body("a body that is no options", r#"{"kind":"Pod","apiVersion":"v1"}"#),
        body("options of another version", r#"{"kind":"DeleteOptions","apiVersion":"other/v1"}"#),
        body("options of the kind's own version", r#"{"kind":"DeleteOptions","apiVersion":"$(apiVersion)"}"#),
        body("options without a kind", r#"{"propagationPolicy":"Foreground"}"#),
        body("options that are no JSON", "hello"),
        body("options of null", "null"),
        body("options with unknown fields", r#"{"kind":"DeleteOptions","apiVersion":"v1","odd":1}"#),
        of("options in YAML")
            .post(budget("x"))
            .delete("x")
            .with(|r| r.body("application/yaml", "propagationPolicy: Foreground\n")),
        of("options in a type that is none")
            .post(budget("x"))
            .delete("x")
            .with(|r| r.body("text/plain", "{}")),
    ]
}

fn collections() -> Vec<Sequence> {
    let two = |name: &str| {
        of(name).post(budget_with("x", json!({"metadata": {"labels": {"a": "b"}}}))).post(budget("y"))
    };
    vec![
        two("a collection is deleted").delete_collection("").list(""),
        two("a collection is deleted by label").delete_collection("labelSelector=a%3Db").list(""),
        two("a collection is deleted by name").delete_collection("fieldSelector=metadata.name%3Dy").list(""),
        two("a collection is deleted by a bad selector").delete_collection("labelSelector=a%3D%3D%3Db"),
        two("a collection is deleted dryly").delete_collection("dryRun=All").list(""),
        two("a collection is deleted in the foreground")
            .delete_collection("propagationPolicy=Foreground")
            .list(""),
        two("a collection is deleted in part").delete_collection("limit=1").list(""),
        of("a collection is deleted at a version")
            .post(budget("x"))
            // A cache may serve any state that is new enough, and has this one after a consistent list.
            .list("")
            .delete_collection("resourceVersion=0")
            .list(""),
        of("an empty collection is deleted").delete_collection(""),
        of("a collection with a finalizer is deleted")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .post(budget("y"))
            .delete_collection("")
            .list(""),
        two("a collection is deleted with preconditions").ask(
            SequenceRequest::new(Method::DELETE, "$(collection)").body(
                "application/json",
                r#"{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"$(0.metadata.uid)"}}"#,
            ),
        ),
    ]
}
