//! Watches of requests.

use serde_json::json;

use super::reads::METADATA_LIST;
use super::{X, Y, asked_by, labels, made, of, request};
use crate::area::Area::Watch;
use crate::sequence::{Sequence, SequenceStep};
use crate::sequences::watch::ENDS;

const INITIAL: &str = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";

pub(super) fn all() -> Vec<Sequence> {
    let mut all = changes();
    all.extend(beginnings());
    all
}

fn from_list(name: &str, query: &str) -> Sequence {
    made_other(name).watch(&format!("resourceVersion=$(0.metadata.resourceVersion)&{query}"))
}

/// Begins with a request that nothing happens to.
fn made_other(name: &str) -> Sequence {
    of(Watch, name).apply(Z, "maker", request(Z, json!({})))
}

const Z: &str = "00000000-0000-1000-8000-000000000003";

fn make(sequence: Sequence, name: &str) -> Sequence {
    sequence.apply(name, "maker", request(name, json!({})))
}

fn changes() -> Vec<Sequence> {
    let moved = |name: &str, query: &str| {
        make(from_list(name, query), X)
            .merge_patch(X, labels(json!({"a": "b"})))
            .merge_patch(X, labels(json!({"a": null})))
            .apply(Y, "maker", request(Y, labels(json!({"a": "b"}))))
    };
    vec![
        make(from_list("tells of each change", ""), X)
            .merge_patch(X, json!({"spec": {"requesters": asked_by(&["b.io"])}}))
            .merge_patch(&format!("{X}/status"), json!({"status": {"observedGeneration": 1}}))
            .delete(X)
            .events(4),
        make(from_list("does not tell of nothing", ""), X)
            .apply(&format!("{X}/status"), "controller", json!({"status": {"observedGeneration": 1}}))
            .merge_patch(X, json!({}))
            .delete(X)
            .events(3),
        make(from_list("tells of an end that is waited for", ""), X)
            .merge_patch(X, json!({"metadata": {"finalizers": ["a.b/c"]}}))
            .delete(X)
            .merge_patch(X, json!({"metadata": {"finalizers": null}}))
            .events(4),
        moved("tells who comes and who goes", "labelSelector=a").events(3),
        moved("tells of one by name", &format!("fieldSelector=metadata.name%3D{Y}")).events(1),
    ]
}

fn beginnings() -> Vec<Sequence> {
    let begun = |name: &str, query: &str, accept: &str| {
        let mut sequence = made(Watch, name).list("").with(|r| r.accept(METADATA_LIST)).watch(query);
        if let Some(SequenceStep::Open(request)) = sequence.steps.last_mut() {
            *request = std::mem::take(request).accept(accept);
        }
        sequence
    };
    vec![
        begun("begins with what there is", INITIAL, "application/json").until_bookmark().delete(X).events(1),
        begun("begins with what there was", &format!("resourceVersion=0&{ENDS}"), "application/json")
            .until_end(),
        begun("in metadata", INITIAL, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
            .until_bookmark(),
        begun("in tables", INITIAL, "application/json;as=Table;g=meta.k8s.io;v=v1").until_bookmark(),
        begun("of an old time", "resourceVersion=abc", "application/json"),
        begun("of initial events without a match", "sendInitialEvents=true", "application/json"),
    ]
}
