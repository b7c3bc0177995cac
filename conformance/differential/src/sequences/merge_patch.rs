//! Merge patches.

use serde_json::{Value, json};

use super::{budget_with, map};
use crate::area::Area::MergePatch;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP};

const TYPE: &str = "application/merge-patch+json";

pub(super) fn all() -> Vec<Sequence> {
    let mut all = values();
    all.extend(metadata());
    all.extend(bodies());
    all.extend(others());
    all
}

fn of(name: &str) -> Sequence {
    let labels = json!({"metadata": {"labels": {"a": "b", "c": "d"}}});
    Sequence::new(MergePatch, BUDGET, name).post(budget_with("x", labels))
}

fn patched(name: &str, patch: Value) -> Sequence {
    of(name).merge_patch("x", patch)
}

fn values() -> Vec<Sequence> {
    vec![
        patched("a merge patch sets a label", json!({"metadata": {"labels": {"a": "x"}}})),
        patched("a merge patch removes a label", json!({"metadata": {"labels": {"a": null}}})),
        patched("a merge patch removes all labels", json!({"metadata": {"labels": null}})),
        patched(
            "a merge patch removes the last labels",
            json!({"metadata": {"labels": {"a": null, "c": null}}}),
        ),
        patched("a merge patch removes a field", json!({"spec": {"minAvailable": null}})),
        patched("a merge patch removes the spec", json!({"spec": null})),
        patched("a merge patch of nothing", json!({})),
        patched("a merge patch of what is so already", json!({"spec": {"minAvailable": 1}})),
        patched("a merge patch of the wrong type", json!({"spec": {"minAvailable": {}}})),
        patched("a merge patch of the spec in a list", json!({"spec": []})),
        patched("a merge patch of a bad value", json!({"spec": {"minAvailable": -1}})),
        patched("a merge patch of a list", json!({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}}))
            .merge_patch("x", json!({"metadata": {"finalizers": ["d.e/f"]}})),
        patched(
            "a merge patch into nothing",
            json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}),
        ),
        patched("nulls within what is new", json!({"metadata": {"annotations": {"a": null, "b": "c"}}})),
        patched("an unknown field in a merge patch", json!({"spec": {"odd": 1}})),
        patched("an unknown field in a merge patch, strictly", json!({"spec": {"odd": 1}}))
            .query("fieldValidation=Strict"),
        patched("an unknown field of null in a merge patch", json!({"spec": {"odd": null}}))
            .query("fieldValidation=Strict"),
    ]
}

fn metadata() -> Vec<Sequence> {
    let meta = |name: &str, metadata: Value| patched(name, json!({"metadata": metadata}));
    vec![
        meta("a merge patch of the name", json!({"name": "y"})),
        meta("a merge patch without the name", json!({"name": null})),
        meta("a merge patch of the namespace", json!({"namespace": "y"})),
        meta("a merge patch of the UID", json!({"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"})),
        meta("a merge patch without the UID", json!({"uid": null})),
        meta("a merge patch of an old version", json!({"resourceVersion": "1"})),
        meta("a merge patch without a version", json!({"resourceVersion": null})),
        meta(
            "a merge patch of the present version",
            json!({"resourceVersion": "$(0.metadata.resourceVersion)", "labels": {"x": "y"}}),
        ),
        meta("a merge patch of a version that is none", json!({"resourceVersion": "abc"})),
        meta("a merge patch of the generation", json!({"generation": 9})),
        meta("a merge patch of managed fields", json!({"managedFields": [{}]})),
        meta("a merge patch without managed fields", json!({"managedFields": null})),
        meta("a merge patch of the creation", json!({"creationTimestamp": null})),
        patched("a merge patch of the kind", json!({"kind": "Other"})),
        patched("a merge patch of the API version", json!({"apiVersion": "v9"})),
        patched("a merge patch without kind and version", json!({"kind": null, "apiVersion": null})),
        patched("a merge patch of the status through the object", json!({"status": {"currentHealthy": 5}})),
    ]
}

fn bodies() -> Vec<Sequence> {
    let body = |name: &str, text: &str| of(name).merge_patch("x", json!({})).with(|r| r.body(TYPE, text));
    vec![
        body("a merge patch without a body", ""),
        body("a merge patch of null", "null"),
        body("a merge patch that is a list", "[]"),
        body("a merge patch that is text", "\"x\""),
        body("a merge patch that is no JSON", "hello"),
        body("a merge patch with something after it", "{} x"),
        body("a merge patch with a key twice", r#"{"spec":{"minAvailable":2,"minAvailable":3}}"#),
        body("a merge patch with a key twice, strictly", r#"{"spec":{"minAvailable":2,"minAvailable":3}}"#)
            .query("fieldValidation=Strict"),
        body("a merge patch in YAML", "spec:\n  minAvailable: 2\n"),
        of("a merge patch by force").merge_patch("x", json!({})).query("force=true"),
        Sequence::new(MergePatch, BUDGET, "a merge patch of what is not there").merge_patch("x", json!({})),
    ]
}

fn others() -> Vec<Sequence> {
    vec![
        of("a merge patch of the status")
            .merge_patch("x/status", json!({"status": {"currentHealthy": 2, "conditions": [
                {"type": "A", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}]}}))
            .merge_patch("x/status", json!({"status": {"conditions": null}})),
        of("a merge patch of the labels through the status")
            .merge_patch("x/status", json!({"metadata": {"labels": {"a": "z"}}, "spec": {"minAvailable": 9}})),
        of("merge patches of two managers")
            .merge_patch("x", json!({"spec": {"minAvailable": 2}}))
            .query("fieldManager=two")
            .merge_patch("x", json!({"spec": {"minAvailable": 3}}))
            .query("fieldManager=three"),
        of("a merge patch a second later").later().merge_patch("x", json!({"spec": {"minAvailable": 2}})).later()
            .merge_patch("x", json!({"spec": {"minAvailable": 2}})),
        of("a dry run of a merge patch").merge_patch("x", json!({"spec": {"minAvailable": 2}})).query("dryRun=All").get("x"),
        of("a merge patch of what is being deleted")
            .merge_patch("x", json!({"metadata": {"finalizers": ["a.b/c"]}}))
            .delete("x")
            .merge_patch("x", json!({"metadata": {"labels": {"z": "y"}}}))
            .merge_patch("x", json!({"metadata": {"finalizers": ["e.f/g"]}}))
            .merge_patch("x", json!({"metadata": {"finalizers": []}}))
            .get("x"),
        Sequence::new(MergePatch, CONFIG_MAP, "a merge patch of a map")
            .post(map("x", json!({"a": "b", "c": "d"})))
            .merge_patch("x", json!({"data": {"a": null, "e": ""}, "binaryData": {"f": "AAEC"}})),
        Sequence::new(MergePatch, ACCOUNT, "a merge patch of lists")
            .post(object("x", json!({"secrets": [{"name": "a"}]})))
            .merge_patch("x", json!({"secrets": [{"name": "b"}], "automountServiceAccountToken": false})),
    ]
}
