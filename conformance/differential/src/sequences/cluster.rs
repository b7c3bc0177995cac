//! A kind without namespaces, which an update may create, and which counts no generation.

use serde_json::{Value, json};

use crate::area::Area;
use crate::area::Area::{Apply, Create, Delete, Formats, JsonPatch, List, MergePatch, Update, Watch};
use crate::request::SequenceRequest;
use crate::sequence::{Sequence, merge, object};
use crate::target::RUNTIME_CLASS;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = created();
    all.extend(changed());
    all.extend(applied());
    all.extend(read());
    all.extend(watched());
    all.extend(deleted());
    all
}

/// All sequences share the names of cluster-scoped objects, so each name contains the sequence's
/// namespace.
const X: &str = "$(namespace)-x";
const Y: &str = "$(namespace)-y";
/// Selects the objects of one sequence by their label.
const OURS: &str = "labelSelector=of%3D$(namespace)";

fn of(area: Area, name: &str) -> Sequence {
    Sequence::new(area, RUNTIME_CLASS, format!("class: {name}"))
}

fn class(name: &str, rest: Value) -> Value {
    let mut class = object(name, json!({"handler": "runc", "metadata": {"labels": {"of": "$(namespace)"}}}));
    merge(&mut class, rest);
    class
}

fn made(area: Area, name: &str) -> Sequence {
    of(area, name).post(class(X, json!({})))
}

fn tolerations(keys: &[&str]) -> Value {
    let one = |key: &&str| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"});
    json!({"scheduling": {"tolerations": keys.iter().map(one).collect::<Vec<_>>()}})
}

fn created() -> Vec<Sequence> {
    let post = |name: &str, rest: Value| of(Create, name).post(class(X, rest));
    vec![
        post("is created", json!({})),
        post("is created with tolerations", tolerations(&["a", "b"])),
        post("is created dryly", json!({})).query("dryRun=All").get(X),
        made(Create, "is there already").post(class(X, json!({}))),
        of(Create, "has a generated name")
            .post(json!({"metadata": {"generateName": "$(namespace)-"}, "handler": "runc"})),
        post("has a namespace", json!({"metadata": {"namespace": "default"}})),
        post("has an empty namespace", json!({"metadata": {"namespace": ""}})),
        of(Create, "is created in a namespace").post(class(X, json!({}))).with(|mut r| {
            r.path = "$(root)/namespaces/default/$(plural)".into();
            r
        }),
        of(Create, "has no handler").post(object(X, json!({}))),
        post("has an empty handler", json!({"handler": ""})),
        post("has a bad handler", json!({"handler": "Run C"})),
        post("has a number for its handler", json!({"handler": 1})),
        post(
            "has a toleration without a key",
            json!({"scheduling": {"tolerations": [{"operator": "Equal"}]}}),
        ),
        post("has unknown fields under Strict", json!({"odd": 1, "scheduling": {"odd": 2}}))
            .query("fieldValidation=Strict"),
        of(Create, "has a bad name").post(class("$(namespace)_X", json!({}))),
        of(Create, "has no name").post(json!({"handler": "runc"})),
        of(Create, "waits for no namespace").post(class(X, json!({}))).later().get(X),
    ]
}

fn changed() -> Vec<Sequence> {
    let at = |rest: Value| {
        let mut at = class(X, json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}}));
        merge(&mut at, rest);
        at
    };
    vec![
        of(Update, "is created by an update").put(X, class(X, json!({}))),
        of(Update, "is created by an update at a version")
            .put(X, class(X, json!({"metadata": {"resourceVersion": "5"}}))),
        of(Update, "is created by a dry update").put(X, class(X, json!({}))).query("dryRun=All").get(X),
        made(Update, "gets tolerations").later().put(X, at(tolerations(&["a"]))),
        made(Update, "changes nothing").later().put(X, at(json!({}))),
        made(Update, "changes its handler").put(X, at(json!({"handler": "kata"}))),
        made(Update, "is updated without a version").put(X, class(X, json!({}))),
        made(Update, "is updated with a namespace").put(X, at(json!({"metadata": {"namespace": "default"}}))),
        made(Update, "has no status").put(&format!("{X}/status"), at(json!({}))),
        made(MergePatch, "gets and loses labels")
            .merge_patch(X, json!({"metadata": {"labels": {"a": "b"}}}))
            .later()
            .merge_patch(X, json!({"metadata": {"labels": null}})),
        made(MergePatch, "gets other tolerations")
            .merge_patch(X, tolerations(&["a"]))
            .merge_patch(X, tolerations(&["b"])),
        made(MergePatch, "changes its handler").merge_patch(X, json!({"handler": "kata"})),
        made(MergePatch, "loses its handler").merge_patch(X, json!({"handler": null})),
        made(JsonPatch, "gets a toleration")
            .json_patch(X, json!([{"op": "add", "path": "/scheduling", "value": {"tolerations": []}}]))
            .json_patch(
                X,
                json!([{"op": "add", "path": "/scheduling/tolerations", "value": [{"operator": "Exists"}]}]),
            ),
        made(JsonPatch, "is tested")
            .json_patch(X, json!([{"op": "test", "path": "/handler", "value": "kata"}])),
        of(JsonPatch, "is not there").json_patch(X, json!([])),
    ]
}

fn applied() -> Vec<Sequence> {
    let handled = |handler: &str| json!({"handler": handler, "metadata": {"labels": {"of": "$(namespace)"}}});
    let with_tolerations = |keys: &[&str]| {
        let mut whole = handled("runc");
        merge(&mut whole, tolerations(keys));
        whole
    };
    vec![
        of(Apply, "is created by an apply").apply(X, "one", handled("runc")).get(X),
        of(Apply, "is created by an apply without its handler").apply(X, "one", json!({})),
        of(Apply, "is applied again").apply(X, "one", handled("runc")).later().apply(
            X,
            "one",
            handled("runc"),
        ),
        of(Apply, "has tolerations of one")
            .apply(X, "one", with_tolerations(&["a"]))
            .apply(X, "two", with_tolerations(&["b"]))
            .apply_by_force(X, "two", with_tolerations(&["b"]))
            .apply(X, "two", handled("runc")),
        of(Apply, "changes its handler").apply(X, "one", handled("runc")).apply(X, "one", handled("kata")),
        of(Apply, "loses its labels").apply(X, "one", handled("runc")).apply(
            X,
            "one",
            json!({"handler": "runc"}),
        ),
        made(Apply, "is applied to what was created").later().apply(X, "one", tolerations(&["a"])),
        of(Apply, "is applied in a namespace").apply(
            X,
            "one",
            json!({"metadata": {"namespace": "default"}, "handler": "runc"}),
        ),
        of(Apply, "is applied with an unknown field").apply(X, "one", json!({"odd": 1})),
    ]
}

/// Two of them.
fn two(area: Area, name: &str) -> Sequence {
    made(area, name).post(class(Y, json!({"metadata": {"labels": {"a": "b"}}})))
}

fn read() -> Vec<Sequence> {
    let listed = |name: &str, query: &str| two(List, name).list(&format!("{OURS}{query}"));
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    vec![
        listed("a list", ""),
        listed("a list of those with another label", ",a"),
        listed("a list by name", "&fieldSelector=metadata.name%3D$(namespace)-y"),
        listed("a list of a namespace by field", "&fieldSelector=metadata.namespace%3Ddefault"),
        listed("a list of none by field", "&fieldSelector=metadata.namespace%3D"),
        listed(
            "a list of an old state",
            "&resourceVersion=$(0.metadata.resourceVersion)&resourceVersionMatch=Exact",
        ),
        of(List, "an empty list").list("labelSelector=of%3Dnobody"),
        of(List, "one that is not there").get(X),
        made(List, "a list in a namespace").ask(SequenceRequest::get("$(root)/namespaces/default/$(plural)")),
        made(List, "one in a namespace")
            .ask(SequenceRequest::get("$(root)/namespaces/default/$(plural)/$(namespace)-x")),
        made(Formats, "a table").get(X).with(|r| r.accept(table)),
        two(Formats, "a table of a list").list(OURS).with(|r| r.accept(table)),
        two(Formats, "metadata of a list").list(OURS).with(|r| r.accept(metadata)),
        two(Formats, "protobuf").list(OURS).with(|r| r.accept("application/vnd.kubernetes.protobuf")),
        made(Formats, "YAML").get(X).with(|r| r.accept("application/yaml")),
    ]
}

fn watched() -> Vec<Sequence> {
    let from_first = |name: &str| {
        made(Watch, name).watch(&format!("resourceVersion=$(0.metadata.resourceVersion)&{OURS}"))
    };
    vec![
        from_first("tells of each change")
            .merge_patch(X, tolerations(&["a"]))
            .post(class(Y, json!({})))
            .delete(X)
            .events(3),
        from_first("tells who comes and who goes")
            .merge_patch(X, json!({"metadata": {"labels": {"of": "elsewhere"}}}))
            .merge_patch(X, json!({"metadata": {"labels": {"of": "$(namespace)"}}}))
            .events(2),
        two(Watch, "begins with what there is")
            .list(OURS)
            .watch(&format!(
                "{OURS}&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
            ))
            .until_bookmark(),
        two(Watch, "tells of one by name")
            .watch(
                "fieldSelector=metadata.name%3D$(namespace)-y&resourceVersion=$(0.metadata.resourceVersion)",
            )
            .delete(X)
            .delete(Y)
            .events(2),
    ]
}

fn deleted() -> Vec<Sequence> {
    vec![
        made(Delete, "is deleted").delete(X).get(X),
        of(Delete, "is not there").delete(X),
        made(Delete, "is deleted dryly").delete(X).query("dryRun=All").get(X),
        two(Delete, "are deleted by a selector").delete_collection(OURS).get(X),
        two(Delete, "are deleted by two selectors")
            .delete_collection(&format!("{OURS}&fieldSelector=metadata.name%3D$(namespace)-x"))
            .get(Y),
        made(Delete, "waits for what it owns")
            .delete_with(X, json!({"propagationPolicy": "Foreground"}))
            .merge_patch(X, json!({"metadata": {"finalizers": null}}))
            .get(X),
        made(Delete, "is deleted by its UID")
            .delete_with(X, json!({"preconditions": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}))
            .delete_with(X, json!({"preconditions": {"uid": "$(0.metadata.uid)"}})),
    ]
}
