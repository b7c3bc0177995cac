//! Updates of requests.

use serde_json::{Value, json};

use super::{X, Y, asked_by, labels, made, made_with, of, request, settled};
use crate::area::Area::Update;
use crate::sequence::{Sequence, merge};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = changes();
    all.extend(refused());
    all
}

/// The request at the version of the first answer, with something else.
fn at_first(rest: Value) -> Value {
    let mut at = request(X, json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}}));
    merge(&mut at, rest);
    at
}

/// The same at the version of the second answer.
fn at_second(rest: Value) -> Value {
    let mut at = at_first(rest);
    at["metadata"]["resourceVersion"] = "$(1.metadata.resourceVersion)".into();
    at
}

fn changes() -> Vec<Sequence> {
    let more = || json!({"spec": {"requesters": asked_by(&["a.example.com", "b.example.com"])}});
    let status = json!({"status": {"observedGeneration": 7}});
    let finalizers = json!({"metadata": {"finalizers": ["a.b/c"]}});
    vec![
        made(Update, "gets labels").put(X, at_first(labels(json!({"a": "b"})))),
        made(Update, "gets another requester").later().put(X, at_first(more())),
        made(Update, "loses its requesters").put(X, at_first(json!({"spec": {"requesters": []}}))),
        settled(Update, "changes nothing").later().put(X, at_second(json!({}))),
        settled(Update, "keeps its status").put(X, at_second(status)),
        made(Update, "is changed dryly").put(X, at_first(more())).query("dryRun=All").get(X),
        made(Update, "is changed by its maker").put(X, at_first(more())).query("fieldManager=maker"),
        settled(Update, "has its generation and its time to itself").put(
            X,
            at_second(json!({"metadata": {"generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"}})),
        ),
        made_with(Update, "loses a finalizer", finalizers).put(X, at_first(json!({}))),
        settled(Update, "gets unknown fields").put(X, at_second(json!({"spec": {"odd": 1}}))),
        made(Update, "changes its annotations and requesters").put(
            X,
            at_first(
                json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"requesters": asked_by(&["c.io"])}}),
            ),
        ),
    ]
}

fn refused() -> Vec<Sequence> {
    let put = |name: &str, rest: Value| made(Update, name).put(X, at_first(rest));
    vec![
        made(Update, "of an old version")
            .merge_patch(X, labels(json!({"a": "b"})))
            .put(X, at_first(json!({}))),
        of(Update, "of what is not there").put(X, request(X, json!({"metadata": {"resourceVersion": "5"}}))),
        put("with another UID", json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}})),
        put("with another name", json!({"metadata": {"name": Y}})),
        put("without a name", json!({"metadata": {"name": ""}})),
        put("with another namespace", json!({"metadata": {"namespace": "elsewhere"}})),
        put("with a version that is none", json!({"metadata": {"resourceVersion": "abc"}})),
        put("with unknown fields under Strict", json!({"spec": {"odd": 1}})).query("fieldValidation=Strict"),
        put("with bad annotations", json!({"metadata": {"annotations": {"a b": "c"}}})),
        put("with a requester without a name", json!({"spec": {"requesters": [{}]}})),
        settled(Update, "with managed fields that are none")
            .put(X, at_second(json!({"metadata": {"managedFields": [{"operation": "Odd"}]}}))),
        put("with a bad manager", json!({})).query(&format!("fieldManager={}", "m".repeat(129))),
    ]
}
