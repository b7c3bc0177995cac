//! Creation, and the validation of objects.

mod bodies;
mod metadata;
mod specs;

use serde_json::json;

use super::{budget, budget_with, map};
use crate::area::Area::Create;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP, LEASE, TargetKind};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = created();
    all.extend(options());
    all.extend(metadata::all());
    all.extend(specs::all());
    all.extend(bodies::all());
    all
}

fn of(name: &str) -> Sequence {
    Sequence::new(Create, BUDGET, name)
}

fn of_target(target: TargetKind, name: &str) -> Sequence {
    Sequence::new(Create, target, name)
}

fn created() -> Vec<Sequence> {
    vec![
        of("a budget is created, read and created again").post(budget("x")).get("x").post(budget("x")),
        of("a status is not created").post(budget_with(
            "x",
            json!({"status": {"currentHealthy": 3, "expectedPods": 4, "observedGeneration": 9}}),
        )),
        of("an object is made anew after it was deleted").post(budget("x")).delete("x").post(budget("x")),
        of("an object that is on its way out is in the way")
            .post(budget_with("x", json!({"metadata": {"finalizers": ["a.b/c"]}})))
            .delete("x")
            .post(budget("x")),
        of_target(ACCOUNT, "an account is created").post(object(
            "x",
            json!({"secrets": [{"name": "a", "namespace": "b"}], "imagePullSecrets": [{"name": "c"}, {}],
                   "automountServiceAccountToken": false}),
        )),
        of_target(ACCOUNT, "the kind's own warnings are told").post(object(
            "x",
            json!({"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}),
        )),
        of_target(ACCOUNT, "an account with a secret twice is created")
            .post(object("x", json!({"secrets": [{"name": "a"}, {"name": "a"}]}))),
        of_target(CONFIG_MAP, "a map is created").post(object(
            "x",
            json!({"data": {"a": "", "b": "x"}, "binaryData": {"c": "AAEC", "d": ""}, "immutable": false}),
        )),
        of_target(LEASE, "a lease is created").post(object(
            "x",
            json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 5,
                            "renewTime": "2020-01-02T03:04:05.678901Z"}}),
        )),
        of_target(LEASE, "an empty lease is created").post(object("x", json!({}))).get("x"),
        of_target(CONFIG_MAP, "keys of a map are validated").post(map("x", json!({"a/b": "x"}))),
    ]
}

fn options() -> Vec<Sequence> {
    let unknown = || budget_with("x", json!({"spec": {"what": 1}, "more": {}, "metadata": {"odd": []}}));
    let mut all = vec![
        of("a dry run stores nothing").post(budget("x")).query("dryRun=All").get("x"),
        of("a dry run finds what is in the way").post(budget("x")).post(budget("x")).query("dryRun=All"),
        of("a dry run validates")
            .post(budget_with("x", json!({"spec": {"minAvailable": -1}})))
            .query("dryRun=All"),
        of("a field manager is kept").post(budget("x")).query("fieldManager=somebody"),
        of("a long field manager is refused")
            .post(budget("x"))
            .query(&format!("fieldManager={}", "a".repeat(129))),
        of("a field manager that cannot be printed is refused").post(budget("x")).query("fieldManager=a%07b"),
        of("a long user agent is cut").post(budget("x")).header("user-agent", &"a".repeat(200)),
        of("a user agent of nothing").post(budget("x")).header("user-agent", ""),
    ];
    for validation in ["Ignore", "Warn", "Strict"] {
        let twice = r#"{"apiVersion":"$(apiVersion)","kind":"$(kind)","metadata":{"name":"x","name":"y"},"spec":{"minAvailable":1,"minAvailable":2}}"#;
        all.push(
            of(&format!("unknown fields under {validation}"))
                .post(unknown())
                .query(&format!("fieldValidation={validation}")),
        );
        all.push(
            of(&format!("fields that stand twice under {validation}"))
                .post(budget("x"))
                .with(|r| r.body("application/json", twice))
                .query(&format!("fieldValidation={validation}")),
        );
    }
    for wrong in ["dryRun=Some", "dryRun=All&dryRun=All", "fieldValidation=Maybe", "dryRun="] {
        all.push(of(&format!("options with {wrong}")).post(budget("x")).query(wrong));
    }
    all
}
