//! Creation, and the validation of objects.

use serde_json::json;

use super::{budget, budget_with, map};
use crate::area::Area::Create;
use crate::sequence::{Sequence, object};
use crate::target::{ACCOUNT, BUDGET, CONFIG_MAP};

pub(super) fn all() -> Vec<Sequence> {
    let of = |name: &str| Sequence::new(Create, BUDGET, name);
    vec![
        of("a budget is created, read and created again").post(budget("x")).get("x").post(budget("x")),
        of("an object without a name is refused").post(object("", json!({}))),
        of("a name is made").post(json!({"metadata": {"generateName": "x-"}, "spec": {}})),
        of("names and labels are validated together").post(budget_with(
            "X_y",
            json!({"metadata": {"labels": {"ok": "-"}, "annotations": {"-": "x"}}}),
        )),
        of("a spec is validated").post(budget_with("x", json!({"spec": {"minAvailable": "12"}}))),
        of("a negative number is refused").post(budget_with("x", json!({"spec": {"minAvailable": -1}}))),
        of("a value of the wrong type is refused")
            .post(budget_with("x", json!({"spec": {"minAvailable": true}})))
            .post(budget_with("x", json!({"spec": {"selector": []}}))),
        of("unknown fields are warned of").post(budget_with("x", json!({"spec": {"what": 1}, "more": {}}))),
        of("unknown fields are refused under Strict")
            .post(budget_with("x", json!({"spec": {"what": 1}, "more": {}})))
            .query("fieldValidation=Strict"),
        of("unknown fields are ignored under Ignore")
            .post(budget_with("x", json!({"spec": {"what": 1}, "more": {}})))
            .query("fieldValidation=Ignore"),
        of("a dry run stores nothing").post(budget("x")).query("dryRun=All").get("x"),
        Sequence::new(Create, ACCOUNT, "an account is created").post(object(
            "x",
            json!({"secrets": [{"name": "a", "namespace": "b"}], "imagePullSecrets": [{"name": "c"}, {}],
                   "automountServiceAccountToken": false}),
        )),
        Sequence::new(Create, CONFIG_MAP, "a map is created").post(object(
            "x",
            json!({"data": {"a": "", "b": "x"}, "binaryData": {"c": "AAEC", "d": ""}, "immutable": false}),
        )),
        Sequence::new(Create, CONFIG_MAP, "keys of a map are validated").post(map("x", json!({"a/b": "x"}))),
    ]
}
