//! Server-side apply, and managed fields.

mod owners;
mod owners_of_lists;
mod shapes;

use serde_json::{Value, json};

use super::{budget, budget_with};
use crate::area::Area::Apply;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, LEASE};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = made();
    all.extend(refused());
    all.extend(owners::all());
    all.extend(shapes::all());
    all.extend(owners_of_lists::all());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Apply, BUDGET, name)
}

/// A sequence on a kind with lists by key.
fn on_account(name: &str) -> Sequence {
    Sequence::new(Apply, ACCOUNT, name)
}

fn secrets(names: &[&str]) -> Value {
    json!({"secrets": items(names)})
}

/// Items of a list, by their keys.
fn items(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

fn min(value: i32) -> Value {
    json!({"spec": {"minAvailable": value}})
}

fn made() -> Vec<Sequence> {
    vec![
        of("an apply creates").apply("x", "one", min(1)).get("x"),
        of("an apply creates dryly").apply("x", "one", min(1)).query("dryRun=All").get("x"),
        of("an apply that changes nothing writes nothing").apply("x", "one", min(1)).later().apply(
            "x",
            "one",
            min(1),
        ),
        of("an apply changes").apply("x", "one", min(1)).later().apply("x", "one", min(2)),
        of("an apply to what an update made").post(budget("x")).later().apply(
            "x",
            "one",
            json!({"metadata": {"labels": {"a": "b"}}}),
        ),
        of("an apply in YAML").apply("x", "one", json!({})).with(|r| {
            r.body(
                "application/apply-patch+yaml",
                "apiVersion: $(apiVersion)\nkind: $(kind)\nmetadata: {name: x}\nspec:\n  minAvailable: 50%\n",
            )
        }),
        of("an apply with a generated name").apply("x", "one", json!({"metadata": {"generateName": "y-"}})),
        of("an apply of system fields").post(budget("x")).apply(
            "x",
            "one",
            json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9,
                "resourceVersion": "$(0.metadata.resourceVersion)", "uid": "$(0.metadata.uid)"}}),
        ),
        of("an apply of nulls").apply(
            "x",
            "one",
            json!({"spec": {"minAvailable": null, "selector": null}, "status": null}),
        ),
        of("an apply of the status").post(budget("x")).apply(
            "x/status",
            "one",
            json!({"status": {"currentHealthy": 1,
            "disruptionsAllowed": 0, "desiredHealthy": 0, "expectedPods": 0}}),
        ),
        of("an apply of the status through the object").apply(
            "x",
            "one",
            json!({"status": {"currentHealthy": 1}}),
        ),
        of("an apply of the spec through the status").post(budget("x")).apply("x/status", "one", min(7)),
        of("an apply to what is being deleted")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .delete("x")
            .apply("x", "one", json!({"metadata": {"labels": {"a": "b"}}})),
        Sequence::new(Apply, LEASE, "an apply of times and empty texts")
            .apply(
                "x",
                "one",
                json!({"spec": {"holderIdentity": "", "renewTime": "2020-01-02T03:04:05.000000Z"}}),
            )
            .apply("x", "one", json!({"spec": {"holderIdentity": "a"}})),
        Sequence::new(Apply, LEASE, "an apply of a time in another zone").apply(
            "x",
            "one",
            json!({"spec": {"renewTime": "2020-01-02T03:04:05.000000+01:00"}}),
        ),
    ]
}

fn refused() -> Vec<Sequence> {
    let apply =
        |name: &str, configuration: Value| of(name).post(budget("x")).apply("x", "one", configuration);
    let text = |name: &str, text: &str| {
        of(name)
            .post(budget("x"))
            .apply("x", "one", json!({}))
            .with(|r| r.body("application/apply-patch+yaml", text))
    };
    vec![
        of("an apply without a manager").apply("x", "", min(1)),
        of("an apply of a long manager").apply("x", &"m".repeat(129), min(1)),
        of("an apply with a bad force").apply("x", "one", min(1)).query("force=maybe"),
        of("an apply of another name").apply("x", "one", json!({"metadata": {"name": "y"}})),
        of("an apply without a name").apply("x", "one", json!({"metadata": {"name": ""}})),
        apply("an apply of another kind", json!({"kind": "Other"})),
        apply("an apply of another version", json!({"apiVersion": "v9"})),
        apply("an apply of another namespace", json!({"metadata": {"namespace": "y"}})),
        apply("an apply with managed fields", json!({"metadata": {"managedFields": []}})),
        apply("an apply with null for managed fields", json!({"metadata": {"managedFields": null}})),
        apply("an apply at another version", json!({"metadata": {"resourceVersion": "1"}})),
        apply(
            "an apply of another UID",
            json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}),
        ),
        apply("an apply of an unknown field", json!({"spec": {"odd": 1}})),
        apply("an apply of a value that is invalid", min(-1)),
        apply("an apply of a value of the wrong type", json!({"spec": []})),
        apply("an apply of labels that are numbers", json!({"metadata": {"labels": {"a": 1}}})),
        text("an apply of nothing", ""),
        text("an apply of a list", "[]"),
        text("an apply of text", "hello"),
        text("an apply of what is no YAML", "a: b: c"),
        of("an apply of a UID that is not there").apply(
            "x",
            "one",
            json!({"metadata": {"uid": "aaaaaaaa-aaaa-1aaa-8aaa-aaaaaaaaaaaa"}}),
        ),
        of("an apply of a version that is not there").apply(
            "x",
            "one",
            json!({"metadata": {"resourceVersion": "5"}}),
        ),
        of("an apply of the status of what is not there").apply("x/status", "one", json!({"status": {}})),
        of("an apply that creates is validated").apply("x", "one", min(-1)),
        of("an apply under Strict")
            .apply("x", "one", json!({"spec": {"odd": 1}}))
            .query("fieldValidation=Strict"),
        of("a conflict with an update").post(object("x", min(1))).apply("x", "two", min(2)).apply_by_force(
            "x",
            "two",
            min(2),
        ),
    ]
}
