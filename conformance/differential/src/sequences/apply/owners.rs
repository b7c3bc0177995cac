//! Who owns what: conflicts, force, sharing, giving up.

use serde_json::{Value, json};

use super::{min, of};
use crate::sequence::Sequence;
use crate::sequences::{budget, budget_with};

pub(super) fn all() -> Vec<Sequence> {
    let mut all = conflicts();
    all.extend(given_up());
    all.extend(histories());
    all
}

fn labels(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

fn conflicts() -> Vec<Sequence> {
    let both = || json!({"metadata": {"labels": {"a": "1", "b": "1"}}, "spec": {"minAvailable": 1}});
    let others = || json!({"metadata": {"labels": {"a": "2", "b": "2"}}, "spec": {"minAvailable": 2}});
    vec![
        of("a conflict names the fields").apply("x", "one", both()).apply("x", "two", others()),
        of("force takes over")
            .apply("x", "one", both())
            .later()
            .apply_by_force("x", "two", others())
            .get("x"),
        of("what is the same is shared").apply("x", "one", both()).later().apply("x", "two", both()),
        of("what is shared conflicts with both").apply("x", "one", min(1)).apply("x", "two", min(1)).apply(
            "x",
            "one",
            min(2),
        ),
        of("an update takes over without asking")
            .apply("x", "one", min(1))
            .later()
            .merge_patch("x", min(2))
            .apply("x", "one", min(1)),
        of("an update of what is the same takes nothing").apply("x", "one", min(1)).merge_patch("x", min(1)),
        of("an update of one manager by name")
            .apply("x", "one", min(1))
            .merge_patch("x", min(2))
            .query("fieldManager=one")
            .apply("x", "one", min(3)),
        of("a conflict on the status")
            .post(budget("x"))
            .merge_patch("x/status", json!({"status": {"currentHealthy": 1}}))
            .apply("x/status", "one", json!({"status": {"currentHealthy": 2}})),
        of("a dry run by force")
            .apply("x", "one", min(1))
            .apply_by_force("x", "two", min(2))
            .query("dryRun=All")
            .get("x"),
        of("a conflict in a dry run").apply("x", "one", min(1)).apply("x", "two", min(2)).query("dryRun=All"),
    ]
}

fn given_up() -> Vec<Sequence> {
    vec![
        of("what is left out is removed")
            .apply(
                "x",
                "one",
                json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"minAvailable": 1}}),
            )
            .later()
            .apply("x", "one", labels(json!({"a": "1"}))),
        of("what is left out and shared stays")
            .apply("x", "one", labels(json!({"a": "1", "b": "2"})))
            .apply("x", "two", labels(json!({"b": "2"})))
            .apply("x", "one", labels(json!({"a": "1"}))),
        of("what is left out and updated stays")
            .apply("x", "one", labels(json!({"a": "1", "b": "2"})))
            .merge_patch("x", labels(json!({"b": "3"})))
            .apply("x", "one", labels(json!({"a": "1"}))),
        of("an apply of nothing gives up all")
            .apply("x", "one", min(1))
            .apply("x", "one", json!({}))
            .get("x"),
        of("an empty spec gives up its fields").apply("x", "one", min(1)).apply(
            "x",
            "one",
            json!({"spec": {}}),
        ),
        of("all labels are given up").apply("x", "one", labels(json!({"a": "1"}))).apply(
            "x",
            "one",
            labels(json!({})),
        ),
        of("a selector is one value")
            .apply("x", "one", json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}}))
            .apply("x", "two", json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}}))
            .apply_by_force("x", "two", json!({"spec": {"selector": {"matchLabels": {"b": "1"}}}})),
        of("an atomic value is removed")
            .apply("x", "one", json!({"spec": {"selector": {"matchLabels": {"a": "1"}}, "minAvailable": 1}}))
            .apply("x", "one", min(1)),
        of("an empty selector is applied").apply("x", "one", json!({"spec": {"selector": {}}})).apply(
            "x",
            "one",
            json!({}),
        ),
        of("an owner of an update gives up by applying")
            .post(budget_with("x", labels(json!({"a": "1"}))))
            .query("fieldManager=one")
            .apply("x", "one", labels(json!({"a": "1"})))
            .apply("x", "one", json!({})),
    ]
}

fn histories() -> Vec<Sequence> {
    let reset = || json!({"metadata": {"managedFields": [{}]}});
    let mut many = of("applies of many managers").post(budget("x"));
    for manager in 0..4 {
        many = many.apply("x", &format!("m{manager}"), labels(json!({format!("l{manager}"): "x"})));
    }
    vec![
        many,
        of("before the first apply")
            .post(budget("x"))
            .merge_patch("x", reset())
            .later()
            .apply("x", "one", labels(json!({"a": "1"}))),
        of("before the first apply, with a conflict")
            .post(budget("x"))
            .merge_patch("x", reset())
            .apply("x", "one", min(2))
            .apply_by_force("x", "one", min(2)),
        of("an update after a reset tracks nothing").post(budget("x")).merge_patch("x", reset()).merge_patch("x", min(2)),
        of("a reset of applied fields").apply("x", "one", min(1)).merge_patch("x", reset()).apply("x", "two", min(2)),
        of("a client takes over by managed fields")
            .apply("x", "one", min(1))
            .json_patch("x", json!([{"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "two"}]))
            .apply("x", "two", min(2)),
        of("kubectl's annotation of the last applied")
            .post(budget_with("x", json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}})))
            .header("user-agent", "kubectl-client-side-apply")
            .apply("x", "kubectl", json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"minAvailable": 2}})),
        of("times of an entry change with it")
            .apply("x", "one", min(1))
            .later()
            .apply("x", "two", labels(json!({"a": "b"})))
            .later()
            .apply("x", "one", min(1))
            .apply("x", "one", min(2)),
        of("applies to the object and its status are apart")
            .apply("x", "one", min(1))
            .apply("x/status", "one", json!({"status": {"currentHealthy": 1}}))
            .apply("x", "one", json!({}))
            .apply("x/status", "one", json!({"status": {}})),
    ]
}
