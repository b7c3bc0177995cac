//! Tests the indexes in errors about a drain plan: they are those of the list as it was sent.

use drydock_machinery::kind::Kind;
use serde_json::json;

use crate::maintenance::{create, kind, maintenance, stage, update};

/// Regression: the indexes counted the twelve entries that the server inserts. The client's entry 0 was
/// `drainPlan[4]`.
#[test]
fn error_indexes_are_those_of_the_list_as_it_was_sent() {
    let selector = json!({ "matchExpressions": [{ "key": "a", "operator": "Like" }] });
    let of_daemon_sets = json!({ "podPriority": 1, "podType": "DaemonSet", "podSelector": selector });
    let plan = json!([of_daemon_sets, { "podPriority": 2, "podType": "Odd" }, { "podPriority": 0, "podType": "DaemonSet" }]);
    let all = create(&maintenance("Idle", plan.clone()));
    let heads = [
        "spec.drainPlan[1].podType: Unsupported value: \"Odd\"",
        "spec.drainPlan[0].podSelector.matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector",
        "spec.drainPlan[2]: Invalid value: ",
    ];
    assert_eq!(all.len(), heads.len(), "{all:?}");
    assert!(all.iter().zip(heads).all(|(error, head)| error.starts_with(head)), "{all:?}");
    // The same for an update of the stored object; the plan has changed too.
    let by_update = update(&maintenance("Idle", plan), &stage("Idle"));
    assert_eq!(by_update[..3], all[..]);
}

/// A plan that was read from the server has the inserted entries. They are sent again, so they count.
#[test]
fn an_entry_put_behind_one_that_every_plan_has_is_told_so() {
    let mut read = stage("Idle");
    let old = read.clone();
    let plan = read.0["spec"]["drainPlan"].as_array_mut().unwrap();
    plan.insert(6, json!({ "podPriority": 7, "podType": "DaemonSet" }));
    kind().set_defaults(&mut read);
    let errors = update(&read, &old);
    let words = r#"spec.drainPlan[6]: Invalid value: {"podPriority":7,"podType":"DaemonSet"}: out of order: must come before the entry with podType DaemonSet and podPriority 2000000000 without a podSelector, which every plan has; "#;
    assert!(errors[0].starts_with(words), "{errors:?}");
}
