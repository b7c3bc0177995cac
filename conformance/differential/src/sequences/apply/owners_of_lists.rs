//! Who owns what under applies: sets, items by key, atomic values, defaults, removal, other writers, resets.

use serde_json::{Value, json};

use super::{items, of, on_account, secrets};
use crate::area::Area::Apply;
use crate::sequence::{Sequence, object};
use crate::sequences::budget;
use crate::target::{BUDGET, CONFIG_MAP, LEASE};

pub(super) fn all() -> Vec<Sequence> {
    let areas = [lists(), removals(), writers(), entries(), generated()];
    // This prefix distinguishes their names from those of the other applies.
    let named = |mut sequence: Sequence| {
        sequence.name = format!("of owners: {}", sequence.name);
        sequence
    };
    areas.into_iter().flatten().map(named).collect()
}

/// Applies to accounts are all accepted, because in the message of a refusal their version `v1` cannot be
/// distinguished from others.
fn lists() -> Vec<Sequence> {
    vec![
        on_account("two appliers own items of one list")
            .apply("x", "one", secrets(&["a", "b"]))
            .apply("x", "two", secrets(&["c", "b"]))
            .apply("x", "one", secrets(&["b"]))
            .apply("x", "two", secrets(&["c"])),
        on_account("an applier orders its own items")
            .apply("x", "one", secrets(&["a", "b", "c"]))
            .apply("x", "two", secrets(&["d"]))
            .apply("x", "one", secrets(&["c", "a", "b"])),
        on_account("an atomic list has one owner")
            .apply("x", "one", json!({"imagePullSecrets": items(&["a"])}))
            .apply("x", "two", json!({"imagePullSecrets": items(&["a", "b"])}))
            .apply_by_force("x", "two", json!({"imagePullSecrets": items(&["a", "b"])}))
            .apply("x", "two", json!({})),
        on_account("the same atomic list has two owners")
            .apply("x", "one", json!({"imagePullSecrets": items(&["a"])}))
            .apply("x", "two", json!({"imagePullSecrets": items(&["a"])}))
            .apply("x", "one", json!({})),
        of("appliers share a set")
            .apply("x", "one", json!({"metadata": {"finalizers": ["x.io/a", "x.io/b"]}}))
            .apply("x", "two", json!({"metadata": {"finalizers": ["x.io/c", "x.io/b"]}}))
            .apply("x", "one", json!({"metadata": {"finalizers": []}}))
            .apply("x", "two", json!({"metadata": {}})),
        of("a duplicate in a set is refused").apply(
            "x",
            "one",
            json!({"metadata": {"finalizers": ["x.io/a", "x.io/a"]}}),
        ),
        conditions("an item stands twice", json!([{"type": "A"}, {"type": "A", "status": "True"}])),
        conditions("null for an item", json!([null])),
        Sequence::new(Apply, BUDGET, "an atomic struct has one owner")
            .apply("x", "one", json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}))
            .apply("x", "two", json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}))
            .apply_by_force("x", "two", json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}})),
    ]
}

/// An apply of the status with these.
fn conditions(name: &str, conditions: Value) -> Sequence {
    of(name).post(budget("x")).apply("x/status", "one", json!({"status": {"conditions": conditions}}))
}

fn removals() -> Vec<Sequence> {
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    vec![
        of("what is left out is gone").apply("x", "one", labels(json!({"a": "1", "b": "2"}))).apply(
            "x",
            "one",
            labels(json!({"b": "2"})),
        ),
        of("what another owns too stays")
            .apply("x", "one", labels(json!({"a": "1", "b": "2"})))
            .apply("x", "two", labels(json!({"a": "1"})))
            .apply("x", "one", json!({})),
        of("what an update owns too stays")
            .apply("x", "one", labels(json!({"a": "1"})))
            .merge_patch("x", json!({"metadata": {"labels": {"a": "2", "b": "3"}}}))
            .query("fieldManager=patcher")
            .apply("x", "one", json!({})),
        of("an applied null is owned").apply("x", "one", labels(json!({"a": null, "b": "2"}))).apply(
            "x",
            "one",
            labels(json!(null)),
        ),
        of("an empty map is owned by itself").apply("x", "one", labels(json!({}))).apply(
            "x",
            "two",
            labels(json!({"a": "1"})),
        ),
        on_account("all is left out")
            .apply("x", "one", json!({"secrets": items(&["a"]), "metadata": {"labels": {"a": "1"}}}))
            .apply("x", "one", json!({})),
        Sequence::new(Apply, BUDGET, "a field of a struct is left out")
            .apply(
                "x",
                "one",
                json!({"spec": {"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
            )
            .apply("x", "one", json!({"spec": {"minAvailable": 1}})),
        Sequence::new(Apply, CONFIG_MAP, "entries of maps come and go")
            .apply("x", "one", json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAEC"}}))
            .apply("x", "two", json!({"data": {"d": "4"}}))
            .apply("x", "one", json!({"data": {"a": "1"}}))
            .apply_by_force("x", "two", json!({"data": {"a": "9", "d": "4"}}))
            .apply("x", "one", json!({})),
    ]
}

fn writers() -> Vec<Sequence> {
    vec![
        of("an update takes a field from an applier")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1", "b": "2"}}}))
            .later()
            .merge_patch("x", json!({"metadata": {"labels": {"a": "9", "b": "2"}}}))
            .query("fieldManager=patcher")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1", "b": "2"}}})),
        // The host reports conflicts with several managers in the random order of Go's maps, which cannot be
        // compared.
        of("an apply with the same values shares without a conflict")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}}))
            .apply("x", "two", json!({"metadata": {"labels": {"a": "1"}}}))
            .apply("x", "two", json!({"metadata": {"labels": {"a": "2"}}})),
        of("one manager updates and applies")
            .post(object("x", json!({"metadata": {"labels": {"a": "1"}}})))
            .query("fieldManager=one")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "2"}}}))
            .apply_by_force("x", "one", json!({"metadata": {"labels": {"a": "2"}}})),
        of("an apply that changes nothing keeps the time")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}}))
            .later()
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}})),
        of("a second owner is a change")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}}))
            .later()
            .apply("x", "two", json!({"metadata": {"labels": {"a": "1"}}})),
        of("an apply runs dry").apply("x", "one", json!({})).query("dryRun=All").get("x"),
        Sequence::new(Apply, BUDGET, "an apply of the status")
            .post(budget("x"))
            .apply(
                "x/status",
                "one",
                json!({"status": {"currentHealthy": 3, "conditions": [{"type": "A", "status": "True",
                "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}),
            )
            .apply("x/status", "two", json!({"status": {"currentHealthy": 4}}))
            .apply("x", "one", json!({"status": {"currentHealthy": 5}, "spec": {"minAvailable": 2}}))
            .query("force=true")
            .apply("x/status", "one", json!({"status": {}})),
        Sequence::new(Apply, BUDGET, "an apply of the status of nothing").apply(
            "x/status",
            "one",
            json!({"status": {"currentHealthy": 3}}),
        ),
        Sequence::new(Apply, LEASE, "an apply with numbers and times")
            .apply(
                "x",
                "one",
                json!({"spec": {"leaseDurationSeconds": 5.0, "renewTime": "2026-01-02T03:04:05.000006Z"}}),
            )
            .apply("x", "one", json!({"spec": {"leaseDurationSeconds": 1.5}}))
            .apply("x", "one", json!({"spec": {"holderIdentity": 5}}))
            .apply("x", "one", json!({"spec": {"holderIdentity": {"a": [1, null, "x"]}}}))
            .apply("x", "one", json!({"spec": {"odd": 1}})),
    ]
}

fn entries() -> Vec<Sequence> {
    let entry = |fields: Value| {
        json!({"manager": "m", "operation": "Update", "apiVersion": "$(apiVersion)", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let managed = |entries: Value| json!({"metadata": {"managedFields": entries}});
    let put = |name: &str, entries: Value| {
        on_account(name)
            .post(object("x", json!({"metadata": {"labels": {"a": "1"}}})))
            .put("x", object("x", json!({"metadata": {"labels": {"a": "1"}, "managedFields": entries}})))
    };
    vec![
        put("managed fields are replaced by an update", json!([entry(json!({"f:metadata": {"f:labels": {"f:a": {}}}}))])),
        put("managed fields are reset by one empty entry", json!([{}])).apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}})),
        put("managed fields of two versions", json!([entry(json!({"f:secrets": {}})), json!({"manager": "old", "operation": "Update",
            "apiVersion": "old.io/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:a": {}}}}})]))
        .apply("x", "one", json!({"metadata": {"labels": {"a": "2"}}})),
        put("managed fields with elements of every form", json!([entry(json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x.io/a\"": {}}},
            "f:secrets": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}}}, "f:imagePullSecrets": {"i:0": {}}}))])),
        of("an apply brings managed fields").apply("x", "one", managed(json!([entry(json!({}))]))),
        of("an apply brings an empty list of managed fields").apply("x", "one", managed(json!([]))),
        of("an apply brings no managed fields").apply("x", "one", managed(json!(null))),
        of("an apply of another kind").apply("x", "one", json!({"kind": "Other"})),
        of("an apply of another version").apply("x", "one", json!({"apiVersion": "v7"})),
        of("an apply of another name").apply("x", "one", json!({"metadata": {"name": "y"}})),
        of("an apply without a manager").apply("x", "", json!({})),
        of("an apply with a uid of nothing").apply("x", "one", json!({"metadata": {"uid": "u"}})),
        of("an apply of an old version is a conflict")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "1"}}}))
            .apply("x", "one", json!({"metadata": {"labels": {"a": "2"}}}))
            .apply("x", "one", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}})),
        of("eleven updaters make one of the ancient")
            .post(object("x", json!({})))
            .query("fieldManager=u0")
            .merge_patch("x", json!({"metadata": {"labels": {"l1": "1"}}}))
            .query("fieldManager=u1"),
    ]
}

/// Client-side apply becomes server-side apply, and two dozen writers.
fn generated() -> Vec<Sequence> {
    let last =
        |config: Value| json!({"kubectl.kubernetes.io/last-applied-configuration": format!("{config}\n")});
    let configuration = json!({"apiVersion": "$(apiVersion)", "kind": "$(kind)", "metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}});
    let by_client = |name: &str| {
        of(name)
            .post(object("x", json!({"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": last(configuration.clone())}})))
            .query("fieldManager=kubectl-client-side-apply")
    };
    let mut writers =
        of("more updaters than are kept apart").post(object("x", json!({}))).query("fieldManager=u0");
    for number in 1..=13 {
        let patch = json!({"metadata": {"labels": {format!("l{number}"): "1"}}});
        writers = writers.merge_patch("x", patch).query(&format!("fieldManager=u{number}"));
        if number % 4 == 0 {
            writers = writers.later();
        }
    }
    vec![
        by_client("kubectl takes over what it applied from the client").apply(
            "x",
            "kubectl",
            json!({"metadata": {"labels": {"a": "9"}}}),
        ),
        by_client("kubectl takes over nothing that has changed since")
            .merge_patch("x", json!({"metadata": {"labels": {"a": "5"}}}))
            .query("fieldManager=other")
            .apply("x", "kubectl", json!({"metadata": {"labels": {"a": "9"}}})),
        by_client("another manager takes over nothing").apply(
            "x",
            "other",
            json!({"metadata": {"labels": {"a": "9"}}}),
        ),
        by_client("kubectl keeps its annotation up to date").apply_by_force(
            "x",
            "kubectl",
            json!({"metadata": {"labels": {"a": "9"}, "annotations": {"n": null, "m": "<&>"}}}),
        ),
        writers.apply("x", "one", json!({"metadata": {"labels": {"l1": "2"}}})),
    ]
}
