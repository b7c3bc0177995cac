//! JSON patches and merge patches of requests.

use serde_json::{Value, json};

use super::{X, Y, asked_by, labels, made, made_with, of, settled};
use crate::area::Area::{JsonPatch, MergePatch};
use crate::sequence::Sequence;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = json();
    all.extend(json_refused());
    all.extend(merge());
    all.extend(merge_refused());
    all
}

fn one(name: &str, patch: Value) -> Sequence {
    made(JsonPatch, name).json_patch(X, patch)
}

fn json() -> Vec<Sequence> {
    vec![
        one(
            "an item at the end",
            json!([{"op": "add", "path": "/spec/requesters/-", "value": {"name": "b.io"}}]),
        ),
        one(
            "an item at the beginning",
            json!([{"op": "add", "path": "/spec/requesters/0", "value": {"name": "b.io"}}]),
        ),
        one(
            "an item is replaced",
            json!([{"op": "replace", "path": "/spec/requesters/0/name", "value": "b.io"}]),
        ),
        one("all items are removed", json!([{"op": "remove", "path": "/spec/requesters/0"}])),
        one("the list is removed", json!([{"op": "remove", "path": "/spec/requesters"}])),
        one(
            "tests and labels",
            json!([{"op": "test", "path": "/spec/target/pod/name", "value": "p"},
                {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
                {"op": "copy", "from": "/spec/target/pod/name", "path": "/metadata/labels/pod"},
                {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}]),
        ),
        settled(JsonPatch, "nothing").json_patch(X, json!([])),
        settled(JsonPatch, "the status through the object")
            .json_patch(X, json!([{"op": "add", "path": "/status/observedGeneration", "value": 7}])),
        settled(JsonPatch, "unknown fields")
            .json_patch(X, json!([{"op": "add", "path": "/spec/odd", "value": 1}])),
        one("a dry run", json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]))
            .query("dryRun=All")
            .get(X),
    ]
}

fn json_refused() -> Vec<Sequence> {
    vec![
        one("a test that fails", json!([{"op": "test", "path": "/spec/target/pod/name", "value": "q"}])),
        one("a path that is not there", json!([{"op": "remove", "path": "/spec/odd"}])),
        one(
            "an index that is not there",
            json!([{"op": "replace", "path": "/spec/requesters/3", "value": {}}]),
        ),
        one("an operation that is none", json!([{"op": "odd", "path": "/spec"}])),
        one("no list", json!({"op": "remove"})),
        one("another name", json!([{"op": "replace", "path": "/metadata/name", "value": Y}])),
        one("another version", json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}])),
        one("another kind", json!([{"op": "replace", "path": "/kind", "value": "Other"}])),
        one("unknown fields under Strict", json!([{"op": "add", "path": "/spec/odd", "value": 1}]))
            .query("fieldValidation=Strict"),
        of(JsonPatch, "of what is not there").json_patch(X, json!([])),
        one("a requester without a name", json!([{"op": "remove", "path": "/spec/requesters/0/name"}])),
    ]
}

fn merged(name: &str, patch: Value) -> Sequence {
    made(MergePatch, name).merge_patch(X, patch)
}

fn merge() -> Vec<Sequence> {
    let both = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["a.b/c"]}});
    vec![
        merged("labels", labels(json!({"a": "b"}))),
        made_with(MergePatch, "labels of another change hands", both.clone())
            .later()
            .merge_patch(X, labels(json!({"a": null, "b": "3", "c": "4"}))),
        made_with(MergePatch, "all labels go", both.clone()).merge_patch(X, labels(json!(null))),
        made_with(MergePatch, "finalizers go", both)
            .merge_patch(X, json!({"metadata": {"finalizers": null}})),
        merged("requesters", json!({"spec": {"requesters": asked_by(&["c.io", "a.example.com"])}})),
        merged("no requesters", json!({"spec": {"requesters": null}})),
        settled(MergePatch, "nothing").merge_patch(X, json!({})),
        made(MergePatch, "the same again")
            .merge_patch(X, labels(json!({"a": "b"})))
            .later()
            .merge_patch(X, labels(json!({"a": "b"}))),
        settled(MergePatch, "unknown fields")
            .merge_patch(X, json!({"spec": {"odd": 1, "target": {"odd": {}}}})),
        settled(MergePatch, "the status through the object")
            .merge_patch(X, json!({"status": {"observedGeneration": 7}})),
        merged(
            "at its version",
            json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)", "labels": {"a": "b"}}}),
        ),
        merged("by a manager of its own", labels(json!({"a": "b"}))).query("fieldManager=me"),
    ]
}

fn merge_refused() -> Vec<Sequence> {
    vec![
        merged("at another version", json!({"metadata": {"resourceVersion": "1"}})),
        merged("with another UID", json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}})),
        merged("with another name", json!({"metadata": {"name": Y}})),
        merged("with bad labels", labels(json!({"-a": "b"}))),
        merged("with unknown fields under Strict", json!({"spec": {"odd": 1}}))
            .query("fieldValidation=Strict"),
        merged("with a requester without a name", json!({"spec": {"requesters": [{}]}})),
        merged("that is text", json!("x")),
        merged("by force", json!({})).query("force=true"),
        of(MergePatch, "of what is not there").merge_patch(X, json!({})),
        merged("in what there is not", json!({})).header("content-type", "application/odd-patch+json"),
    ]
}
