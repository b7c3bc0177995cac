//! Maintenances: without a namespace, with defaults, enumerations, atomic values and lists.

use serde_json::{Value, json};

use super::{M, N, labels, maintained, maintenance, of_maintenance};
use crate::area::Area;
use crate::area::Area::{Apply, Create, Delete, Formats, JsonPatch, List, MergePatch, Update, Watch};
use crate::sequence::{Sequence, merge};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = created();
    all.extend(refused());
    all.extend(changed());
    all.extend(status());
    all.extend(applied());
    all.extend(read());
    all.extend(deleted());
    all
}

fn post(name: &str, rest: Value) -> Sequence {
    of_maintenance(Create, name).post(maintenance(M, rest))
}

fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

/// A sequence that begins with a maintenance that has a status (see the requests' `settled`).
fn settled(area: Area, name: &str) -> Sequence {
    let status = json!({"status": {"observedGeneration": 1}});
    maintained(area, name).apply(&format!("{M}/status"), "controller", status)
}

fn created() -> Vec<Sequence> {
    vec![
        post("is created with its defaults", json!({})),
        post("is created with a reason", spec(json!({"reason": "firmware", "stage": "Idle"}))),
        post("is created dryly", json!({})).query("dryRun=All").get(M),
        maintained(Create, "is there already").post(maintenance(M, json!({}))),
        of_maintenance(Create, "with a generated name").post(
            json!({"metadata": {"generateName": "$(namespace)-"}, "spec": maintenance(M, json!({}))["spec"]}),
        ),
    ]
}

fn refused() -> Vec<Sequence> {
    vec![
        post("with a stage that is none", spec(json!({"stage": "Odd"}))),
        post(
            "with a pod type that is none",
            spec(json!({"drainPlan": [{"podPriority": 1, "podType": "Odd"}]})),
        ),
        of_maintenance(Create, "without nodes")
            .post(json!({"metadata": {"name": M}, "spec": {"reason": "x"}})),
        post("with a number for its stage", spec(json!({"stage": 1}))),
        post(
            "with an unknown field under Strict",
            spec(json!({"drainPlan": [{"podPriority": 1, "odd": 1}]})),
        )
        .query("fieldValidation=Strict"),
        post("with a namespace", json!({"metadata": {"namespace": "default"}})),
        of_maintenance(Create, "with a bad name").post(maintenance("$(namespace)_M", json!({}))),
        of_maintenance(List, "one that is not there").get(M),
        of_maintenance(Update, "of what is not there")
            .put(M, maintenance(M, json!({"metadata": {"resourceVersion": "5"}}))),
    ]
}

fn changed() -> Vec<Sequence> {
    let version = |answer: usize| {
        json!({"metadata": {"resourceVersion": format!("$({answer}.metadata.resourceVersion)"),
            "labels": {"of": "$(namespace)"}}})
    };
    let at_first = |rest: Value| {
        let plan = json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}});
        let mut at = maintenance(M, plan);
        merge(&mut at, rest);
        at
    };
    vec![
        maintained(Update, "gets a reason").later().put(M, at_first(spec(json!({"reason": "new"})))),
        settled(Update, "changes nothing").put(M, at_first(version(1))),
        maintained(MergePatch, "gets a reason, and loses it")
            .merge_patch(M, spec(json!({"reason": "new"})))
            .merge_patch(M, spec(json!({"reason": null}))),
        maintained(MergePatch, "gets other nodes")
            .merge_patch(M, spec(json!({"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]}]}}))),
        maintained(MergePatch, "gets a stage that is none").merge_patch(M, spec(json!({"stage": "Odd"}))),
        settled(MergePatch, "loses its stage, and has the default").merge_patch(M, spec(json!({"stage": null}))),
        maintained(MergePatch, "loses its nodes").merge_patch(M, spec(json!({"nodeSelector": null}))),
        maintained(JsonPatch, "gets a reason by operation")
            .json_patch(M, json!([{"op": "add", "path": "/spec/reason", "value": "new"}, {"op": "test", "path": "/spec/stage", "value": "Idle"}])),
        maintained(JsonPatch, "is tested for another stage").json_patch(M, json!([{"op": "test", "path": "/spec/stage", "value": "Drain"}])),
    ]
}

fn status() -> Vec<Sequence> {
    let at = format!("{M}/status");
    let node =
        |name: &str| json!({"nodeRef": {"name": name}, "podsPendingEvacuation": 1, "podsEvacuating": 2});
    let nodes = |nodes: Vec<Value>| json!({"status": {"nodeStatuses": nodes}});
    let stage = |time: &str| json!({"status": {"stageStatuses": [{"name": "Idle", "startTimestamp": time}]}});
    vec![
        maintained(MergePatch, "has the status of nodes").merge_patch(&at, nodes(vec![node("a"), node("b")])),
        maintained(MergePatch, "has the status of a node without a name").merge_patch(
            &at,
            nodes(vec![json!({"nodeRef": {}, "podsPendingEvacuation": 1, "podsEvacuating": 2})]),
        ),
        maintained(MergePatch, "has a drain target that is none").merge_patch(
            &at,
            nodes(vec![{
                let mut odd = node("a");
                odd["drainTargets"] = json!([{"podPriority": 1, "podType": "Odd"}]);
                odd
            }]),
        ),
        maintained(Apply, "has its node statuses from one")
            .apply(&at, "one", nodes(vec![node("a")]))
            .apply(&at, "two", nodes(vec![node("b")]))
            .apply_by_force(&at, "two", nodes(vec![node("b")])),
        maintained(Apply, "has the time of a stage").apply(&at, "one", stage("2020-01-01T00:00:00Z")).apply(
            &at,
            "two",
            stage("2020-01-01T00:00:01Z"),
        ),
        maintained(Apply, "has a stage twice").apply(
            &at,
            "one",
            json!({"status": {"stageStatuses": [{"name": "Idle"}, {"name": "Idle"}]}}),
        ),
    ]
}

fn applied() -> Vec<Sequence> {
    let selector = |value: &str| {
        let term = json!({"matchExpressions": [{"key": "node-restriction.kubernetes.io/k", "operator": "In", "values": [value]}]});
        spec(json!({"nodeSelector": {"nodeSelectorTerms": [term]}}))
    };
    vec![
        maintained(Apply, "is made").get(M),
        settled(Apply, "is made again").later().apply(
            M,
            "maker",
            maintenance(M, labels(json!({"of": "$(namespace)"}))),
        ),
        maintained(Apply, "gets a reason of another").apply(M, "two", spec(json!({"reason": "x"}))).apply(
            M,
            "two",
            spec(json!({})),
        ),
        maintained(Apply, "has nodes of one").apply(M, "two", selector("x")).apply_by_force(
            M,
            "two",
            selector("x"),
        ),
        maintained(Apply, "has a stage of another").apply(M, "two", spec(json!({"stage": "Idle"}))).apply(
            M,
            "two",
            json!({}),
        ),
        maintained(Apply, "has a stage that is none").apply(M, "two", spec(json!({"stage": "Odd"}))),
        maintained(Apply, "has a plan of text").apply(M, "two", spec(json!({"drainPlan": "x"}))),
        maintained(Apply, "has an unknown field").apply(M, "two", spec(json!({"odd": 1}))),
    ]
}

fn read() -> Vec<Sequence> {
    let selected = "labelSelector=of%3D$(namespace)";
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    vec![
        maintained(List, "a list of one").list(selected),
        maintained(List, "a list of metadata").list(selected).with(|r| r.accept(metadata)),
        maintained(List, "a list of none").list("labelSelector=of%3Dnobody"),
        maintained(Formats, "a table")
            .get(M)
            .with(|r| r.accept("application/json;as=Table;g=meta.k8s.io;v=v1")),
        maintained(Formats, "YAML").get(M).with(|r| r.accept("application/yaml")),
        maintained(Watch, "tells of each change")
            .watch(&format!("resourceVersion=$(0.metadata.resourceVersion)&{selected}"))
            .merge_patch(M, spec(json!({"reason": "x"})))
            .merge_patch(&format!("{M}/status"), json!({"status": {"observedGeneration": 1}}))
            .apply(N, "maker", maintenance(N, labels(json!({"of": "$(namespace)"}))))
            .delete(M)
            .events(4),
        maintained(Watch, "begins with what there is")
            .watch(&format!(
                "{selected}&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            ))
            .until_bookmark(),
    ]
}

fn deleted() -> Vec<Sequence> {
    vec![
        maintained(Delete, "is deleted").delete(M).get(M),
        maintained(Delete, "are deleted by a selector")
            .delete_collection("labelSelector=of%3D$(namespace)")
            .get(M),
        maintained(Delete, "waits for what it owns")
            .delete_with(M, json!({"propagationPolicy": "Foreground"})),
        maintained(Delete, "is deleted by another's UID")
            .delete_with(M, json!({"preconditions": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}})),
    ]
}
