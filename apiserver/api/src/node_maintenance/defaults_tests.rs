//! Tests where the twelve entries of KEP-4212 are inserted among the entries of a plan.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn defaulted(spec: Value) -> Value {
    let Value::Object(mut map) = spec else { panic!("not an object") };
    default_spec(&mut map);
    Value::Object(map)
}

fn plan(spec: Value) -> Vec<(String, i64)> {
    let plan = defaulted(spec)["drainPlan"].as_array().unwrap().clone();
    let entry = |e: &Value| {
        let mark = if e.get("podSelector").is_some() { "*" } else { "" };
        (format!("{}{mark}", e["podType"].as_str().unwrap()), e["podPriority"].as_i64().unwrap_or_default())
    };
    plan.iter().map(entry).collect()
}

#[test]
fn stage_is_idle_by_default() {
    assert_eq!(defaulted(json!({}))["stage"], "Idle");
    assert_eq!(defaulted(json!({ "stage": "" }))["stage"], "Idle");
    assert_eq!(defaulted(json!({ "stage": "Drain" }))["stage"], "Drain");
}

#[test]
fn an_empty_plan_becomes_the_seeds_twelve_entries_in_order() {
    let plan = plan(json!({}));
    assert_eq!(plan.len(), 12);
    assert_eq!(plan[0], ("Default".to_owned(), 1_000_000_000));
    assert_eq!(plan[4], ("DaemonSet".to_owned(), 1_000_000_000));
    assert_eq!(plan[11], ("Static".to_owned(), 2_147_483_647));
    assert!(plan.windows(2).all(|w| w[0].0 != w[1].0 || w[0].1 < w[1].1));
}

#[test]
fn entries_are_inserted_for_the_types_up_to_the_last() {
    for (last, types) in [("Default", 1), ("DaemonSet", 2), ("Static", 3), ("", 3), ("Job", 3)] {
        let spec = defaulted(json!({ "lastPodType": last }));
        let plan = spec["drainPlan"].as_array().unwrap();
        assert_eq!(plan.len(), 4 * types, "{last}");
        assert_eq!(spec["lastPodType"], if last.is_empty() { "Static" } else { last });
    }
    assert_eq!(defaulted(json!({ "lastPodType": null }))["lastPodType"], "Static");
    assert_eq!(defaulted(json!({}))["lastPodType"], "Static");
}

#[test]
fn an_empty_pod_type_becomes_default() {
    let spec = defaulted(json!({ "drainPlan": [{ "podPriority": 5 }, { "podPriority": 6, "podType": "" }] }));
    assert_eq!(spec["drainPlan"][0], json!({ "podPriority": 5, "podType": "Default" }));
    assert_eq!(spec["drainPlan"][1]["podType"], "Default");
}

#[test]
fn own_entries_keep_their_place_and_present_ones_are_not_repeated() {
    let own = json!({ "drainPlan": [
        { "podPriority": 1000 },
        { "podPriority": 1_000_000_000, "podSelector": { "matchLabels": { "app": "a" } } },
        { "podPriority": 2_000_000_000, "podSelector": {} },
        { "podPriority": 7, "podType": "DaemonSet" },
    ] });
    let plan = plan(own);
    assert_eq!(plan.len(), 15);
    let head: Vec<(&str, i64)> = plan.iter().take(6).map(|(t, p)| (t.as_str(), *p)).collect();
    let user = 1_000_000_000;
    let wanted = [("Default", 1000), ("Default*", user), ("Default", user), ("Default*", 2 * user)];
    assert_eq!(head[..4], wanted);
    assert_eq!(head[5], ("Default", 2_147_483_647));
    assert_eq!(plan[6], ("DaemonSet".to_owned(), 7));
}

/// The entries that were sent are at the other indexes, in their original order, even if it is wrong.
#[test]
fn the_indexes_of_what_was_inserted_are_told() {
    let sent = json!([
        { "podPriority": 9 },
        { "podPriority": 2_000_000_000, "podType": "DaemonSet" },
        { "podPriority": 7, "podType": "Default", "podSelector": { "matchLabels": { "a": "b" } } },
        "malformed",
    ]);
    let mut spec = json!({ "drainPlan": sent }).as_object().unwrap().clone();
    let inserted = default_spec(&mut spec);
    let all = spec["drainPlan"].as_array().unwrap();
    let own: Vec<_> = (0..all.len()).filter(|i| !inserted.contains(i)).map(|i| &all[i]).collect();
    assert_eq!((inserted.len(), all.len(), own.len()), (11, 15, 4));
    assert_eq!((own[0]["podPriority"].as_i64(), own[2]["podPriority"].as_i64()), (Some(9), Some(7)));
    assert_eq!((&own[1]["podType"], own[3]), (&json!("DaemonSet"), &json!("malformed")));
    assert_eq!(default_spec(&mut spec), Vec::<usize>::new());
}

#[test]
fn completing_twice_changes_nothing() {
    let once = defaulted(json!({ "drainPlan": [{ "podPriority": 3 }, { "podPriority": 1 }] }));
    assert_eq!(defaulted(once.clone()), once);
}

#[test]
fn malformed_entries_are_left_to_validation() {
    let spec = json!({ "drainPlan": [7, { "podPriority": "x", "podType": 3 }, { "podType": "Nope" }] });
    assert_eq!(defaulted(spec)["drainPlan"].as_array().unwrap().len(), 15);
    assert_eq!(defaulted(json!({ "drainPlan": "x" }))["drainPlan"], "x");
}
