//! What a patch has in common with other writes: versions, managers, dry runs, validation, the status.

use serde_json::{Value, json};

use super::super::map;
use super::on_budget;
use crate::area::Area::StrategicMergePatch;
use crate::sequence::Sequence;
use crate::target::CONFIG_MAP;

pub(super) fn writes() -> Vec<Sequence> {
    let labels = json!({"metadata": {"labels": {"c": "3"}}});
    vec![
        on_budget("a strategic patch runs dry")
            .strategic_patch("x", labels.clone())
            .query("dryRun=All")
            .get("x"),
        on_budget("a strategic patch has its manager")
            .strategic_patch("x", labels.clone())
            .query("fieldManager=planner")
            .later()
            .strategic_patch("x", json!({"metadata": {"labels": {"c": null, "d": "4"}}}))
            .query("fieldManager=other"),
        on_budget("a strategic patch takes fields from an applier")
            .apply_by_force(
                "x",
                "one",
                json!({"metadata": {"labels": {"a": "9"}}, "spec": {"minAvailable": 3}}),
            )
            .strategic_patch("x", json!({"metadata": {"labels": {"a": "10"}}, "spec": {"minAvailable": 4}})),
        on_budget("a strategic patch that changes nothing writes nothing").later().strategic_patch(
            "x",
            json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x.io/b", "x.io/c"]}}),
        ),
        on_budget("a strategic patch resets managed fields")
            .strategic_patch("x", json!({"metadata": {"managedFields": [{}]}})),
        on_budget("a strategic patch of an old version is a conflict")
            .strategic_patch("x", labels.clone())
            .strategic_patch("x", json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)"}})),
        on_budget("a strategic patch of the present version is taken").strategic_patch(
            "x",
            json!({"metadata": {"resourceVersion": "$(0.metadata.resourceVersion)", "labels": {"z": "1"}}}),
        ),
        on_budget("a strategic patch of another uid is refused")
            .strategic_patch("x", json!({"metadata": {"uid": "other"}})),
        on_budget("force is not for strategic patches")
            .strategic_patch("x", labels.clone())
            .query("force=true"),
        on_budget("what a strategic patch makes is validated")
            .strategic_patch("x", json!({"spec": {"minAvailable": -1, "unhealthyPodEvictionPolicy": "Odd"}})),
        on_budget("watchers see a strategic patch").watch("").strategic_patch("x", labels).events(2),
        Sequence::new(StrategicMergePatch, CONFIG_MAP, "what is immutable stays so under a strategic patch")
            .post(map("x", json!({"a": "1"})))
            .strategic_patch("x", json!({"immutable": true}))
            .strategic_patch("x", json!({"data": {"a": "2"}})),
    ]
}

pub(super) fn status() -> Vec<Sequence> {
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "Told", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let of = |name: &str| {
        let conditions = json!({"status": {"conditions": [condition("A", "True"), condition("B", "False")]}});
        on_budget(name).strategic_patch("x/status", conditions)
    };
    let patched = |name: &str, conditions: Value| {
        of(name).strategic_patch("x/status", json!({"status": {"conditions": conditions}}))
    };
    vec![
        patched(
            "a condition is changed by its type",
            json!([{"type": "B", "status": "True"}, condition("C", "True")]),
        ),
        patched("a condition is deleted by its type", json!([{"type": "A", "$patch": "delete"}])),
        of("conditions are put in order").strategic_patch(
            "x/status",
            json!({"status": {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}}),
        ),
        of("a strategic patch of the status changes nothing else").strategic_patch(
            "x/status",
            json!({"spec": {"minAvailable": 7}, "status": {"currentHealthy": 3}}),
        ),
        of("a strategic patch of the object leaves the status")
            .strategic_patch("x", json!({"status": {"currentHealthy": 4}, "spec": {"minAvailable": 2}})),
        of("times in a map of a status")
            .strategic_patch("x/status", json!({"status": {"disruptedPods": {"p": "2026-01-01T00:00:00Z"}}})),
    ]
}
