//! Watches.

use serde_json::{Value, json};

use super::{budget, budget_with};
use crate::area::Area::Watch;
use crate::request::SequenceRequest;
use crate::sequence::{Sequence, SequenceStep};
use crate::target::BUDGET;

pub(super) fn all() -> Vec<Sequence> {
    let mut all = changes();
    all.extend(selections());
    all.extend(options());
    all.extend(beginnings());
    all.extend(formats());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Watch, BUDGET, name)
}

/// A list, and a watch from its state.
fn from_list(name: &str, query: &str) -> Sequence {
    of(name).list("").watch(&format!("resourceVersion=$(0.metadata.resourceVersion)&{query}"))
}

fn labels(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

fn changes() -> Vec<Sequence> {
    vec![
        from_list("a watch tells of each change", "")
            .post(budget("x"))
            .merge_patch("x", labels(json!({"a": "b"})))
            .delete("x")
            .events(3),
        from_list("a watch tells of a status", "")
            .post(budget("x"))
            .merge_patch("x/status", json!({"status": {"currentHealthy": 1}}))
            .events(2),
        from_list("what changes nothing is not told", "")
            .post(budget("x"))
            .merge_patch("x", json!({}))
            .merge_patch("x", labels(json!({"a": "b"})))
            .events(2),
        from_list("what waits for a finalizer is changed, then deleted", "")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .delete("x")
            .merge_patch("x", json!({"metadata": {"finalizers": null}}))
            .events(3),
        from_list("a collection is told one by one", "")
            .post(budget("x"))
            .post(budget("y"))
            .delete_collection("labelSelector=a")
            .delete("y")
            .delete("x")
            .events(4),
        from_list("a dry run is not told", "")
            .post(budget("x"))
            .query("dryRun=All")
            .post(budget("y"))
            .events(1),
        from_list("an apply is told", "")
            .apply("x", "one", json!({"spec": {"minAvailable": 1}}))
            .apply("x", "one", json!({"spec": {"minAvailable": 2}}))
            .events(2),
        of("a watch from an old version tells all since")
            .post(budget("x"))
            .post(budget("y"))
            .delete("x")
            .watch("resourceVersion=$(0.metadata.resourceVersion)")
            .events(2),
    ]
}

fn selections() -> Vec<Sequence> {
    let moved = |name: &str, query: &str| {
        from_list(name, query)
            .post(budget("x"))
            .merge_patch("x", labels(json!({"app": "a"})))
            .merge_patch("x", labels(json!({"app": "a", "more": "b"})))
            .merge_patch("x", labels(json!({"app": "c"})))
            .post(budget_with("y", labels(json!({"app": "a"}))))
    };
    vec![
        moved("an object comes into a selection and leaves it", "labelSelector=app%3Da").events(4),
        moved("an object leaves the rest of a selection", "labelSelector=app%21%3Da").events(3),
        moved("an object without the label", "labelSelector=%21app").events(2),
        moved("a watch of one name", "fieldSelector=metadata.name%3Dy").events(1),
        moved("a watch of all but one name", "fieldSelector=metadata.name%21%3Dx").events(1),
        from_list("a deletion outside of the selection is not told", "labelSelector=app%3Da")
            .post(budget("x"))
            .delete("x")
            .post(budget_with("y", labels(json!({"app": "a"}))))
            .delete("y")
            .events(2),
        of("a watch of an object by its path")
            .post(budget("x"))
            .ask(SequenceRequest::get("$(collection)/x").query("watch=true&timeoutSeconds=1")),
    ]
}

/// Ends a watch that is read to its end, late enough that a busy server has sent what there is.
pub(super) const ENDS: &str = "timeoutSeconds=15";

fn options() -> Vec<Sequence> {
    let refused = |query: &str| of(&format!("a watch with {query:?}")).watch(query);
    let mut all: Vec<Sequence> = [
        "resourceVersion=abc", "resourceVersion=-1", "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact",
        "sendInitialEvents=true", "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1&resourceVersion=99999999999",
        "resourceVersion=5&resourceVersionMatch=NotOlderThan", "labelSelector=a%20b", "fieldSelector=spec.x%3D1",
        "timeoutSeconds=x", "continue=abc", "limit=x", "resourceVersionMatch=Sometimes&sendInitialEvents=true",
    ]
    .map(refused)
    .into();
    all.extend([
        of("a watch with limit and continue")
            .post(budget("x"))
            .watch(&format!("limit=1&{ENDS}&continue="))
            .until_end(),
        of("a watch ends in time").post(budget("x")).watch(ENDS).until_end(),
        of("a watch by its old path")
            .post(budget("x"))
            .with(|r| r)
            .watch("")
            .with(|mut r| {
                r.path = "$(root)/watch/namespaces/$(namespace)/$(plural)".into();
                r.query = ENDS.into();
                r
            })
            .until_end(),
        of("a watch of a namespace that is not there")
            .watch(ENDS)
            .with(|mut r| {
                r.path = "$(root)/namespaces/nowhere-at-all/$(plural)".into();
                r
            })
            .until_end(),
    ]);
    all
}

/// Every way to begin, with two objects there.
fn beginnings() -> Vec<Sequence> {
    let mut all = Vec::new();
    for version in ["", "0", "$(0.metadata.resourceVersion)"] {
        for initial in ["", "true", "false"] {
            for bookmarks in ["", "true"] {
                let mut query = ENDS.to_owned();
                for (name, value) in [
                    ("resourceVersion", version),
                    ("sendInitialEvents", initial),
                    ("allowWatchBookmarks", bookmarks),
                ] {
                    if !value.is_empty() {
                        query.push_str(&format!("&{name}={value}"));
                    }
                }
                if !initial.is_empty() {
                    query.push_str("&resourceVersionMatch=NotOlderThan");
                }
                let begun =
                    of(&format!("a watch that begins with {query:?}")).post(budget("x")).post(budget("y"));
                // A cache may begin at any state that is new enough: after a consistent list, at this one.
                all.push(begun.list("").watch(&query).until_end());
            }
        }
    }
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    all.push(
        of("what there is, then what comes")
            .post(budget("x"))
            .list("")
            .watch(initial)
            .until_bookmark()
            .post(budget("y"))
            .delete("x")
            .events(2),
    );
    all.push(
        of("what there is not, then what comes").watch(initial).until_bookmark().post(budget("y")).events(1),
    );
    all.push(
        of("what there is of a selection")
            .post(budget("x"))
            .post(budget_with("y", labels(json!({"a": "b"}))))
            .list("")
            .watch(&format!("{initial}&labelSelector=a"))
            .until_bookmark(),
    );
    all
}

fn formats() -> Vec<Sequence> {
    let accepted = |name: &str, accept: &str| {
        let mut sequence = of(name)
            .post(budget("x"))
            .watch("allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        if let Some(SequenceStep::Open(request)) = sequence.steps.last_mut() {
            *request = std::mem::take(request).accept(accept);
        }
        sequence
    };
    vec![
        accepted("a watch in protobuf", "application/vnd.kubernetes.protobuf").events(2),
        accepted(
            "a watch in protobuf that says that it streams",
            "application/vnd.kubernetes.protobuf;stream=watch",
        )
        .events(2),
        accepted("a watch in tables", "application/json;as=Table;g=meta.k8s.io;v=v1").events(2),
        accepted("a watch of metadata", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
            .events(2),
        accepted(
            "a watch of metadata in protobuf",
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        )
        .events(2),
        accepted("a watch in JSON that says that it streams", "application/json;stream=watch").events(2),
        accepted("a watch in YAML", "application/yaml"),
        accepted("a watch in what there is not", "text/csv"),
        accepted("a watch that is compressed", "application/json")
            .header("accept-encoding", "gzip")
            .events(2),
    ]
}
