//! Deletion of requests.

use serde_json::json;

use super::{X, Y, labels, made, made_with, of, request};
use crate::area::Area::Delete;
use crate::sequence::Sequence;

pub(super) fn all() -> Vec<Sequence> {
    let held = || json!({"metadata": {"finalizers": ["a.b/c"]}});
    let two = |name: &str| made(Delete, name).apply(Y, "maker", request(Y, labels(json!({"a": "b"}))));
    vec![
        made(Delete, "is deleted").delete(X).get(X),
        of(Delete, "is not there").delete(X),
        made(Delete, "is deleted dryly").delete(X).query("dryRun=All").get(X),
        made_with(Delete, "waits for a finalizer", held())
            .later()
            .delete(X)
            .later()
            .delete(X)
            .merge_patch(X, json!({"metadata": {"finalizers": null}}))
            .get(X),
        made_with(Delete, "gets no finalizer while it waits", held())
            .delete(X)
            .merge_patch(X, json!({"metadata": {"finalizers": ["a.b/c", "a.b/d"]}})),
        made(Delete, "is deleted by its UID")
            .delete_with(X, json!({"preconditions": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}))
            .delete_with(X, json!({"preconditions": {"uid": "$(0.metadata.uid)"}})),
        made(Delete, "is deleted at its version")
            .delete_with(X, json!({"preconditions": {"resourceVersion": "1"}}))
            .delete_with(X, json!({"preconditions": {"resourceVersion": "$(0.metadata.resourceVersion)"}})),
        made(Delete, "waits for what it owns")
            .delete_with(X, json!({"propagationPolicy": "Foreground"}))
            .get(X),
        made(Delete, "leaves orphans").delete_with(X, json!({"propagationPolicy": "Orphan"})),
        made(Delete, "is deleted by a policy that is none")
            .delete_with(X, json!({"propagationPolicy": "Odd"})),
        made(Delete, "is deleted in time").delete_with(X, json!({"gracePeriodSeconds": 5})),
        two("are deleted by a selector").delete_collection("labelSelector=a").get(Y).get(X),
        two("are deleted by a selector that is none").delete_collection("labelSelector=a%20b"),
        made(Delete, "are deleted where none are").delete_collection("labelSelector=a").get(X),
    ]
}
