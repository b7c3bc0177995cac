//! Patches that are refused or warned of.

use serde_json::{Value, json};

use super::{account, metadata, on_budget};
use crate::area::Area::StrategicMergePatch;
use crate::sequence::{Sequence, object};
use crate::target::{BUDGET, LEASE};

pub(super) fn refusals() -> Vec<Sequence> {
    vec![
        metadata("retained keys that are no list", json!({"$retainKeys": 5})),
        metadata("a field beside the retained keys", json!({"$retainKeys": ["name"], "labels": {"x": "y"}})),
        metadata("an order without a field", json!({"$setElementOrderfinalizers": []})),
        metadata("a deletion without a field", json!({"$deleteFromPrimitiveListfinalizers": []})),
        metadata("an order of an unknown field", json!({"$setElementOrder/odd": []})),
        metadata("an order of a map", json!({"$setElementOrder/labels": []})),
        metadata("an order that is no list", json!({"$setElementOrder/finalizers": "x.io/a"})),
        metadata("finalizers of two types", json!({"finalizers": [1]})),
        metadata("an unknown directive", json!({"labels": {"$patch": "odd"}})),
        metadata("a directive that is no text", json!({"labels": {"$patch": {"a": [1, null, 1.5]}}})),
        account("merging as a directive of an item", json!({"secrets": [{"name": "s1", "$patch": "merge"}]})),
        account("an unknown directive of an item", json!({"secrets": [{"name": "s1", "$patch": "odd"}]})),
        account("an item without its key", json!({"secrets": [{"namespace": "n"}]})),
        account("a deletion without the key", json!({"secrets": [{"$patch": "delete"}]})),
        account("the whole object is replaced by directive", json!({"$patch": "replace"})),
        account("the whole object is deleted by directive", json!({"$patch": "delete"})),
    ]
}

pub(super) fn misfits() -> Vec<Sequence> {
    let of = |name: &str, spec: Value| on_budget(name).strategic_patch("x", json!({"spec": spec}));
    vec![
        of("a text in place of a struct", json!({"selector": "x"})),
        of("a list in place of a map", json!({"selector": {"matchLabels": ["x"]}})),
        of("a map in place of a list", json!({"selector": {"matchExpressions": {"a": 1}}})),
        of(
            "a number in place of a text",
            json!({"selector": {"matchExpressions": [{"key": 5, "operator": "Exists"}]}}),
        ),
        of("a boolean in place of a text", json!({"selector": {"matchExpressions": [{"key": true}]}})),
        of("a boolean in place of a number or text", json!({"minAvailable": true})),
        on_budget("a patch of another kind and version")
            .strategic_patch("x", json!({"kind": "Other", "apiVersion": "v7"})),
        on_budget("a patch of null").strategic_patch("x", json!(null)),
        on_budget("a patch that is a list").strategic_patch("x", json!([])),
        on_budget("a patch of another name").strategic_patch("x", json!({"metadata": {"name": "y"}})),
        on_budget("a patch without metadata").strategic_patch("x", json!({"metadata": null})),
        Sequence::new(StrategicMergePatch, BUDGET, "a patch of nothing").strategic_patch("x", json!([])),
        Sequence::new(StrategicMergePatch, LEASE, "numbers that do not fit")
            .post(object("x", json!({"spec": {"leaseDurationSeconds": 5}})))
            .strategic_patch("x", json!({"spec": {"leaseDurationSeconds": 1.5}}))
            .strategic_patch("x", json!({"spec": {"leaseDurationSeconds": "5"}}))
            .strategic_patch("x", json!({"spec": {"leaseDurationSeconds": 4_294_967_301_i64}})),
    ]
}

pub(super) fn validation() -> Vec<Sequence> {
    let patch = json!({"spec": {"odd": 1, "selector": {"matchExpressions": [{"key": "k", "operator": "Exists", "odd": {}}]}}, "z": 2});
    let twice = r#"{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"minAvailable":1,"minAvailable":2}}"#;
    let strategic = "application/strategic-merge-patch+json";
    let mut all = Vec::new();
    for level in ["Ignore", "Warn", "Strict"] {
        let query = format!("fieldValidation={level}");
        let unknown = on_budget(&format!("unknown fields of a strategic patch, {level}"));
        all.push(unknown.strategic_patch("x", patch.clone()).query(&query));
        let duplicate = on_budget(&format!("what stands twice in a strategic patch, {level}"));
        all.push(
            duplicate
                .strategic_patch("x", json!({}))
                .with(|request| request.body(strategic, twice))
                .query(&query),
        );
    }
    all
}
