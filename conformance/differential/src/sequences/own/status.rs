//! The status of requests: written apart, with lists by name and sets of names.

use serde_json::{Value, json};

use super::{X, labels, made, of, request, settled};
use crate::area::Area::{Apply, JsonPatch, MergePatch, Update};
use crate::sequence::Sequence;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = written();
    all.extend(applied());
    all.extend(refused());
    all
}

fn status() -> String {
    format!("{X}/status")
}

fn conditions(all: &[(&str, &str)]) -> Value {
    let one = |(type_, status): &(&str, &str)| {
        json!({"type": type_, "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": "2020-01-01T00:00:00Z"})
    };
    json!({"status": {"conditions": all.iter().map(one).collect::<Vec<_>>()}})
}

/// The interceptors' names, and an entry for each.
fn interceptors(names: &[&str]) -> Value {
    let targets: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    let entries: Vec<Value> = names.iter().map(|name| json!({"name": name, "message": ""})).collect();
    json!({"status": {"targetInterceptors": targets, "interceptors": entries}})
}

fn written() -> Vec<Sequence> {
    let at_first = json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)", "labels": {"a": "b"}},
        "status": {"observedGeneration": 1}, "spec": {"requesters": []}});
    vec![
        made(Update, "a status is written, and nothing else").put(&status(), request(X, at_first)),
        made(MergePatch, "a status gets its generation")
            .merge_patch(&status(), json!({"status": {"observedGeneration": 1}}))
            .get(&status()),
        settled(MergePatch, "a status does not touch labels").merge_patch(&status(), labels(json!({"a": "b"}))),
        made(MergePatch, "a status gets a condition").later().merge_patch(&status(), conditions(&[("A", "True")])),
        made(MergePatch, "a status gets interceptors").merge_patch(&status(), interceptors(&["a.io", "imperative-eviction.k8s.io"])),
        made(MergePatch, "a status changes nothing")
            .merge_patch(&status(), conditions(&[("A", "True")]))
            .later()
            .merge_patch(&status(), conditions(&[("A", "True")])),
        settled(MergePatch, "a status with unknown fields").merge_patch(&status(), json!({"status": {"odd": 1}})),
        made(JsonPatch, "a status gets and loses a condition")
            .json_patch(&status(), json!([{"op": "add", "path": "/status/conditions", "value": conditions(&[("A", "True")])["status"]["conditions"]}]))
            .json_patch(&status(), json!([{"op": "remove", "path": "/status/conditions/0"}])),
    ]
}

fn applied() -> Vec<Sequence> {
    vec![
        made(Apply, "a status has conditions of two")
            .apply(&status(), "one", conditions(&[("A", "True")]))
            .apply(&status(), "two", conditions(&[("B", "True")]))
            .later()
            .apply(&status(), "one", conditions(&[("A", "False")]))
            .apply(&status(), "two", json!({"status": {}})),
        made(Apply, "a status has a condition of another")
            .apply(&status(), "one", conditions(&[("A", "True")]))
            .apply(&status(), "two", conditions(&[("A", "False")]))
            .apply_by_force(&status(), "two", conditions(&[("A", "False")])),
        made(Apply, "a status and the object are apart")
            .apply(&status(), "maker", json!({"status": {"observedGeneration": 1}}))
            .apply(X, "maker", request(X, labels(json!({"a": "b"}))))
            .get(X),
        made(Apply, "a status has its interceptors by apply").apply(
            &status(),
            "one",
            interceptors(&["a.io", "imperative-eviction.k8s.io"]),
        ),
        settled(Apply, "a status is applied with labels").apply(&status(), "one", labels(json!({"a": "b"}))),
    ]
}

fn refused() -> Vec<Sequence> {
    vec![
        of(MergePatch, "a status of what is not there").merge_patch(&status(), json!({})),
        made(Apply, "a status has a condition twice").apply(
            &status(),
            "one",
            conditions(&[("A", "True"), ("A", "False")]),
        ),
        made(Apply, "a status has a name twice in a set").apply(
            &status(),
            "one",
            json!({"status": {"activeInterceptors": ["a.io", "a.io"]}}),
        ),
        made(Apply, "a status has an unknown field").apply(&status(), "one", json!({"status": {"odd": 1}})),
        made(MergePatch, "a status has unknown fields under Strict")
            .merge_patch(&status(), json!({"status": {"odd": 1}}))
            .query("fieldValidation=Strict"),
        made(Update, "a status of an old version").merge_patch(X, labels(json!({"a": "b"}))).put(
            &status(),
            request(X, json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}})),
        ),
    ]
}
