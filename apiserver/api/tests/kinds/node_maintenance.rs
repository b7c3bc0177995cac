//! Rules for NodeMaintenance (KEP-4212). The name of each test is the rule.

use drydock_api::node_maintenance::FINALIZER;
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use serde_json::{Value, json};

use crate::maintenance::{NOW, create, kind, maintenance, object, stage, update};

fn status_update(new: Value, old: Value) -> Vec<String> {
    let with = |status: Value| {
        let mut object = stage("Drain");
        object.0.insert("status".to_owned(), status);
        object
    };
    let errors = kind().validate_status_update(&with(new), &with(old), NOW.parse().unwrap());
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_node_selector_is_required() {
    let mut value = stage("Idle");
    value.0.get_mut("spec").unwrap().as_object_mut().unwrap().remove("nodeSelector");
    assert_eq!(create(&value), ["spec.nodeSelector: Required value"]);
    value.0["spec"]["nodeSelector"] = json!({});
    let words =
        "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term";
    assert_eq!(create(&value), [words]);
    assert!(create(&stage("Drain")).is_empty());
}

/// Controllers hold all maintenances with their finalizers, of which half a megabyte has 70,000. One that has more already can
/// be changed, and loses them one after the other.
#[test]
fn the_finalizers_of_a_maintenance_are_bounded_and_may_not_become_more() {
    let with = |count: usize| {
        let mut object = stage("Cordon");
        let names: Vec<_> =
            (0..count).map(|at| format!("example.com/f{at}")).chain([FINALIZER.to_owned()]).collect();
        object.set_meta("finalizers", Some(json!(names)));
        object
    };
    let words = |count: usize| format!("metadata.finalizers: Too many: {count}: must have at most 100 items");
    assert!(create(&with(100)).is_empty());
    assert_eq!(create(&with(101)), [words(101)]);
    assert_eq!(update(&with(101), &with(100)), [words(101)]);
    for (new, old) in [(150, 150), (149, 150), (100, 150), (0, 150)] {
        assert_eq!(update(&with(new), &with(old)), Vec::<String>::new(), "{new} of {old}");
    }
    assert_eq!(update(&with(151), &with(150)), [words(151)]);
}

#[test]
fn unknown_stages_and_pod_types_are_unsupported_values() {
    let words =
        r#"spec.stage: Unsupported value: "Sleep": supported values: "Idle", "Cordon", "Drain", "Complete""#;
    assert_eq!(create(&stage("Sleep")), [words]);
    let errors = create(&maintenance("Idle", json!([{ "podPriority": 1, "podType": "Job" }])));
    assert!(errors[0].ends_with(
        r#".podType: Unsupported value: "Job": supported values: "Default", "DaemonSet", "Static""#
    ));
    assert_eq!(errors.len(), 1, "{errors:?}");
}

#[test]
fn stages_only_move_forward_and_complete_is_the_end() {
    assert!(update(&stage("Drain"), &stage("Idle")).is_empty());
    let words = "spec.stage: Invalid value: \"Cordon\": may not change from Drain: stages only move forward along Idle -> Cordon -> \
                 Drain -> Complete; to go back, create a new NodeMaintenance";
    assert_eq!(update(&stage("Cordon"), &stage("Drain")), [words]);
    assert_eq!(update(&stage("Drain"), &stage("Complete")).len(), 1);
}

#[test]
fn an_object_that_is_being_deleted_moves_to_complete_only() {
    let mut old = stage("Cordon");
    old.set_meta("deletionTimestamp", Some(NOW.into()));
    let words = "the stage of an object that is being deleted may only change to Complete";
    assert_eq!(update(&stage("Drain"), &old), [format!("spec.stage: Invalid value: \"Drain\": {words}")]);
    assert!(update(&stage("Complete"), &old).is_empty());
}

#[test]
fn deletion_moves_to_complete_first_unless_idle() {
    for (before, after) in
        [("Idle", "Idle"), ("Cordon", "Complete"), ("Drain", "Complete"), ("Complete", "Complete")]
    {
        let mut object = stage(before);
        kind().prepare_for_delete(&mut object);
        assert_eq!(object.0["spec"]["stage"], after);
        assert_eq!(object.finalizers().is_empty(), before == after);
    }
}

#[test]
fn the_finalizer_is_added_with_the_stage_and_never_again() {
    for (to, added) in [("Idle", false), ("Cordon", true), ("Drain", true), ("Complete", true)] {
        let mut new = stage(to);
        kind().prepare_for_create(&mut new);
        assert_eq!(new.finalizers() == [FINALIZER], added, "{to}");
        let mut new = stage(to);
        kind().prepare_for_update(&mut new, &stage("Idle"));
        assert_eq!(new.finalizers() == [FINALIZER], added, "{to}");
        let mut new = stage(to);
        kind().prepare_for_update(&mut new, &stage(to));
        assert!(new.finalizers().is_empty(), "{to}");
    }
}

/// Regression: the controller did not see that a maintenance went through Drain, and treated it as if it came
/// directly from Idle.
#[test]
fn every_stage_is_noted_in_the_write_that_sets_it() {
    let noted = |object: &Object| object.0["status"]["stageStatuses"].clone();
    let mut made = stage("Drain");
    kind().prepare_for_create(&mut made);
    assert_eq!(noted(&made), json!([{ "name": "Drain" }]));
    let mut same = stage("Drain");
    kind().prepare_for_update(&mut same, &made);
    assert_eq!(same.0["status"], made.0["status"], "nothing is noted twice");
    let mut next = stage("Complete");
    kind().prepare_for_update(&mut next, &made);
    let both = json!([{ "name": "Drain" }, { "name": "Complete" }]);
    assert_eq!(noted(&next), both);
    kind().prepare_for_delete(&mut made);
    assert_eq!(noted(&made), both);
    let mut unknown = stage("Sleep");
    kind().prepare_for_create(&mut unknown);
    assert_eq!(unknown.0["status"], json!({}));
}

#[test]
fn the_finalizer_stands_once_beside_others() {
    let mut new = stage("Drain");
    new.set_meta("finalizers", Some(json!(["a/b", FINALIZER])));
    kind().prepare_for_create(&mut new);
    assert_eq!(new.finalizers(), ["a/b", FINALIZER]);
}

#[test]
fn applying_the_original_manifest_again_changes_nothing() {
    let own =
        json!([{ "podPriority": 7 }, { "podPriority": 9, "podSelector": { "matchLabels": { "a": "b" } } }]);
    let old = maintenance("Drain", own.clone());
    assert_eq!(maintenance("Drain", own.clone()), old);
    assert!(update(&maintenance("Drain", own), &old).is_empty());
}

#[test]
fn the_drain_plan_is_immutable_however_selectors_are_written() {
    let one = |selector: Value| maintenance("Idle", json!([{ "podPriority": 9, "podSelector": selector }]));
    let labels = one(json!({ "matchLabels": { "a": "b" } }));
    let expressions = one(json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b"] }] }));
    assert!(update(&expressions, &labels).is_empty());
    assert!(update(&maintenance("Idle", json!([{ "podPriority": 9 }])), &one(json!({}))).is_empty());
    let errors = update(&stage("Idle"), &labels);
    assert!(
        errors[0].starts_with("spec.drainPlan: Invalid value: ")
            && errors[0].ends_with(": field is immutable")
    );
}

#[test]
fn an_own_entry_out_of_order_is_refused_and_never_sorted() {
    let plan = json!([{ "podPriority": 9 }, { "podPriority": 7 }]);
    let errors = create(&maintenance("Idle", plan));
    assert_eq!(errors.len(), 1, "{errors:?}");
    let head = r#"spec.drainPlan[1]: Invalid value: {"podPriority":7,"podType":"Default"}: out of order"#;
    assert!(errors[0].starts_with(head), "{errors:?}");
    let plan =
        json!([{ "podPriority": 1, "podType": "Static" }, { "podPriority": 1, "podType": "DaemonSet" }]);
    assert_eq!(create(&maintenance("Idle", plan)).len(), 1);
    let plan =
        json!([{ "podPriority": 5 }, { "podPriority": 5, "podSelector": { "matchLabels": { "a": "b" } } }]);
    assert_eq!(create(&maintenance("Idle", plan)).len(), 1);
}

#[test]
fn equal_entries_are_duplicates_after_normalising_selectors() {
    let plan = json!([
        { "podPriority": 5, "podSelector": { "matchLabels": { "a": "b" } } },
        { "podPriority": 5, "podSelector": { "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b", "b"] }] } },
        { "podPriority": 5 },
        { "podPriority": 5, "podSelector": {} },
    ]);
    let errors = create(&maintenance("Idle", plan));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("spec.drainPlan[1]: Duplicate value: "));
    assert!(errors[1].starts_with("spec.drainPlan[3]: Duplicate value: "));
}

#[test]
fn the_position_in_the_plan_is_the_index_of_an_entry() {
    let at = |position: i32| {
        let mut object = maintenance("Drain", json!([{ "podPriority": 1 }, { "podPriority": 2 }]));
        let old = object.clone();
        object.0.insert("status".to_owned(), json!({ "drainPlanPosition": position }));
        let errors = kind().validate_status_update(&object, &old, NOW.parse().unwrap());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let wrong = |position: i32| {
        let detail = "must be the index of one of the 14 entries of spec.drainPlan";
        [format!("status.drainPlanPosition: Invalid value: {position}: {detail}")]
    };
    assert!(at(0).is_empty() && at(13).is_empty());
    assert_eq!((at(-1).as_slice(), at(14).as_slice()), (&wrong(-1)[..], &wrong(14)[..]));
}

#[test]
fn a_node_stands_once_in_node_statuses() {
    let node =
        |name: &str| json!({ "nodeRef": { "name": name }, "podsPendingEvacuation": 0, "podsEvacuating": 0 });
    assert!(status_update(json!({ "nodeStatuses": [node("a"), node("b")] }), json!({})).is_empty());
    let errors = status_update(json!({ "nodeStatuses": [node("a"), node("a"), node("")] }), json!({}));
    let at = |i: usize| format!("status.nodeStatuses[{i}].nodeRef.name");
    assert_eq!(errors, [format!("{}: Duplicate value: \"a\"", at(1)), format!("{}: Required value", at(2))]);
}

#[test]
fn a_status_past_what_storage_takes_is_refused_clearly() {
    let nodes = |count: usize, message: &str| -> Value {
        let node =
            |i: usize| json!({ "nodeRef": { "name": format!("node-{i:060}") }, "drainMessage": message });
        json!({ "nodeStatuses": (0..count).map(node).collect::<Vec<_>>() })
    };
    assert!(status_update(nodes(4000, "Waiting for node k (x)."), json!({})).is_empty());
    let errors = status_update(nodes(4001, ""), json!({}));
    assert_eq!(errors, ["status.nodeStatuses: Too many: 4001: must have at most 4000 items"]);
    let errors = status_update(nodes(4000, &"x".repeat(300)), json!({}));
    assert_eq!(errors, ["status.nodeStatuses: Too long: may not be more than 1400000 bytes"]);
}

#[test]
fn status_enumerations_counts_and_generation_are_checked() {
    let node =
        json!({ "nodeRef": { "name": "a" }, "podsEvacuating": -1, "drainTargets": [{ "podType": "X" }] });
    let status =
        json!({ "nodeStatuses": [node], "stageStatuses": [{ "name": "Nap" }], "observedGeneration": 2 });
    let errors = status_update(status, json!({}));
    assert_eq!(errors.len(), 4, "{errors:?}");
    assert!(errors[0].starts_with("status.stageStatuses[0].name: Unsupported value: \"Nap\""));
    assert!(
        errors[1].starts_with("status.nodeStatuses[0].drainTargets[0].podType: Unsupported value: \"X\"")
    );
    assert!(errors[2].starts_with("status.observedGeneration: Invalid value: 2"));
    assert!(errors[3].starts_with("status.nodeStatuses[0].podsEvacuating: Invalid value: -1"));
}

#[test]
fn status_and_spec_are_kept_apart() {
    let mut new = stage("Drain");
    new.0.insert("status".to_owned(), json!({ "observedGeneration": 1 }));
    kind().prepare_for_create(&mut new);
    assert_eq!(new.0["status"], json!({ "stageStatuses": [{ "name": "Drain" }] }), "the client's is dropped");
    let mut new = stage("Complete");
    kind().prepare_for_status_update(&mut new, &stage("Drain"));
    assert_eq!(new.0["spec"]["stage"], "Drain");
}

/// One who could write another's name would have that one's share, and one who could write many would have many.
#[test]
fn the_creator_is_noted_by_the_server_and_stays() {
    let mut new = stage("Drain");
    new.0.insert("status".to_owned(), json!({ "creator": "somebody else" }));
    kind().prepare_for_create(&mut new);
    kind().note_creator(&mut new, "ann");
    assert_eq!(new.0["status"]["creator"], "ann");
    for status in [Some(json!({ "creator": "somebody else" })), Some(json!({})), Some(json!(null)), None] {
        let mut without = stage("Drain");
        without.0.remove("status");
        without.0.extend(status.map(|status| ("status".to_owned(), status)));
        let mut changed = without.clone();
        kind().prepare_for_status_update(&mut changed, &new);
        assert_eq!(changed.0["status"]["creator"], "ann");
        let mut changed = without;
        kind().prepare_for_update(&mut changed, &new);
        assert_eq!(changed.0["status"]["creator"], "ann");
    }
    let mut old = stage("Drain");
    old.0.insert("status".to_owned(), json!({}));
    let mut changed = new.clone();
    kind().prepare_for_status_update(&mut changed, &old);
    assert_eq!(changed.0["status"].get("creator"), None, "one of before it was noted");
    kind().note_creator(&mut new, &"x".repeat(5000));
    assert!(new.0["status"]["creator"].as_str().unwrap().len() <= 512);
}

#[test]
fn columns_sum_over_nodes() {
    let mut value = stage("Drain");
    value.0.insert("status".to_owned(), json!({
        "nodeStatuses": [
            { "nodeRef": { "name": "a" }, "podsPendingEvacuation": 3, "podsEvacuating": 1, "blockedPods": 1 },
            { "nodeRef": { "name": "b" }, "podsPendingEvacuation": 2, "podsEvacuating": 4 },
        ],
        "conditions": [{ "type": "Drained", "status": "False", "message": "10 pods left" }],
    }));
    let cells = kind().cells(&value, NOW.parse().unwrap());
    assert_eq!(cells.len(), kind().columns().len());
    let wanted = json!(["m", "Drain", 2, "False", 5, 5, 1, "", "<unknown>", "10 pods left"]);
    assert_eq!(Value::from(cells), wanted);
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_panic() {
    for spec in
        [json!(7), json!({ "drainPlan": 3 }), json!({ "drainPlan": [3] }), json!({ "stage": 3 }), Value::Null]
    {
        let mut value = object(json!({ "metadata": { "name": "m" }, "spec": spec }));
        kind().set_defaults(&mut value);
        kind().prepare_for_create(&mut value);
        assert!(!create(&value).is_empty());
    }
}

#[test]
fn the_number_of_drained_nodes_is_not_negative() {
    let at = |nodes: i32| {
        let mut object = maintenance("Drain", json!([]));
        let old = object.clone();
        object.0.insert("status".to_owned(), json!({ "drainedNodes": nodes }));
        let errors = kind().validate_status_update(&object, &old, NOW.parse().unwrap());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(at(0).is_empty() && at(4001).is_empty());
    assert_eq!(at(-1), ["status.drainedNodes: Invalid value: -1: must be greater than or equal to 0"]);
}

#[test]
fn no_count_of_gone_nodes_is_negative() {
    let at = |nodes: serde_json::Value| {
        let mut object = maintenance("Drain", json!([]));
        let old = object.clone();
        object.0.insert("status".to_owned(), json!({ "goneNodes": nodes }));
        let errors = kind().validate_status_update(&object, &old, NOW.parse().unwrap());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(at(json!({ "drained": 4001, "undrained": 0 })).is_empty());
    for field in ["drained", "undrained"] {
        let expected =
            format!("status.goneNodes.{field}: Invalid value: -1: must be greater than or equal to 0");
        assert_eq!(at(json!({ field: -1 })), [expected]);
    }
}

#[test]
fn no_outcome_is_negative() {
    let at = |outcomes: serde_json::Value| {
        let mut object = maintenance("Drain", json!([]));
        let old = object.clone();
        object.0.insert("status".to_owned(), json!({ "outcomes": outcomes }));
        let errors = kind().validate_status_update(&object, &old, NOW.parse().unwrap());
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(at(json!({ "evicted": 150_000, "canceled": 0, "passedOver": 1, "returned": 2 })).is_empty());
    for field in ["evicted", "canceled", "passedOver", "returned"] {
        let expected =
            format!("status.outcomes.{field}: Invalid value: -1: must be greater than or equal to 0");
        assert_eq!(at(json!({ field: -1 })), [expected]);
    }
}
