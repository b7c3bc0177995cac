//! Applies of requests: requesters are a list by name, whose items are atomic.

use serde_json::{Value, json};

use super::{X, asked_by, labels, made, of, request, settled};
use crate::area::Area::Apply;
use crate::sequence::Sequence;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = requesters();
    all.extend(owners());
    all.extend(refused());
    all
}

fn asked(requesters: &[&str]) -> Value {
    json!({"spec": {"requesters": asked_by(requesters)}})
}

fn requesters() -> Vec<Sequence> {
    vec![
        made(Apply, "is made").get(X),
        settled(Apply, "is made again").later().apply(X, "maker", request(X, json!({}))),
        made(Apply, "has requesters of two").later().apply(X, "two", asked(&["b.io"])).apply(
            X,
            "maker",
            request(X, json!({})),
        ),
        made(Apply, "shares a requester").apply(X, "two", asked(&["a.example.com"])).apply(
            X,
            "maker",
            request(X, json!({"spec": {"requesters": []}})),
        ),
        made(Apply, "loses a requester").apply(X, "two", asked(&["b.io", "c.io"])).later().apply(
            X,
            "two",
            asked(&["c.io"]),
        ),
        made(Apply, "has its requesters in an order").apply(
            X,
            "two",
            asked(&["c.io", "a.example.com", "b.io"]),
        ),
        made(Apply, "withdraws with all its fields").apply(X, "two", asked(&["b.io"])).apply(
            X,
            "two",
            json!({}),
        ),
        settled(Apply, "has an empty list").apply(X, "two", asked(&[])),
        made(Apply, "gets a requester by update").merge_patch(X, asked(&["a.example.com", "b.io"])).apply(
            X,
            "two",
            asked(&["b.io"]),
        ),
        made(Apply, "is applied dryly").apply(X, "two", asked(&["b.io"])).query("dryRun=All").get(X),
    ]
}

fn owners() -> Vec<Sequence> {
    let reset = json!({"metadata": {"managedFields": [{}]}});
    vec![
        made(Apply, "has labels of two").apply(X, "two", labels(json!({"a": "b"}))).apply(X, "maker", request(X, labels(json!({"c": "d"})))),
        made(Apply, "has a conflict about a label")
            .apply(X, "two", labels(json!({"a": "b"})))
            .apply(X, "three", labels(json!({"a": "c"}))),
        made(Apply, "is taken over by force")
            .apply(X, "two", labels(json!({"a": "b"})))
            .later()
            .apply_by_force(X, "three", labels(json!({"a": "c"}))),
        made(Apply, "is updated where it was applied")
            .apply(X, "two", labels(json!({"a": "b"})))
            .merge_patch(X, labels(json!({"a": "c"})))
            .apply(X, "two", labels(json!({"a": "b"}))),
        made(Apply, "has its finalizers as a set")
            .apply(X, "two", json!({"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}))
            .apply(X, "three", json!({"metadata": {"finalizers": ["a.b/d"]}}))
            .apply(X, "two", json!({})),
        made(Apply, "has owners by UID")
            .apply(X, "two", json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}))
            .apply(X, "two", json!({})),
        made(Apply, "is reset").merge_patch(X, reset).apply(X, "two", labels(json!({"a": "b"}))),
    ]
}

fn refused() -> Vec<Sequence> {
    let apply = |name: &str, configuration: Value| made(Apply, name).apply(X, "two", configuration);
    vec![
        apply("has a requester twice", asked(&["b.io", "b.io"])),
        apply("has a requester without a name", json!({"spec": {"requesters": [{}]}})),
        apply("has a requester of text", json!({"spec": {"requesters": ["b.io"]}})),
        apply("has an unknown field", json!({"spec": {"odd": 1}})),
        apply(
            "has an unknown field of an item",
            json!({"spec": {"requesters": [{"name": "b.io", "odd": 1}]}}),
        ),
        apply("has a list for its spec", json!({"spec": []})),
        apply("has a number for a name", json!({"spec": {"target": {"pod": {"name": 1}}}})),
        apply("has another target", json!({"spec": {"target": {"pod": {"name": "q"}}}})),
        apply("has managed fields", json!({"metadata": {"managedFields": []}})),
        apply("is of another kind", json!({"kind": "Other"})),
        apply("has another name", json!({"metadata": {"name": "y"}})),
        made(Apply, "has no manager").apply(X, "", labels(json!({}))),
        of(Apply, "is made without the pod's UID").apply(
            X,
            "maker",
            json!({"spec": {"target": {"pod": {"name": "p"}}, "requesters": asked_by(&["a.io"])}}),
        ),
    ]
}
