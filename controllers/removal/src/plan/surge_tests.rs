//! Records as a tenant may write them. deploy/remove, a script, took them apart in a shell as the admin.

use super::*;

const RECORD_OF_U: &str =
    r#"{"delta":2,"replicas":5,"uid":"u","pods":["a","b"],"since":"2026-01-01T00:00:00Z"}"#;

/// An object with the UID `u` in the namespace `shop`.
fn object(spec: Value, key: &str, value: &str) -> DynamicObject {
    let metadata = json!({
        "namespace": "shop", "name": "ledger", "uid": "u", "resourceVersion": "7", "annotations": {key: value},
    });
    serde_json::from_value(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}),
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

fn deployment(replicas: Value, record: &str) -> DynamicObject {
    object(json!({"replicas": replicas}), RECORD, record)
}

fn record(delta: &str, replicas: &str, uid: &str) -> String {
    format!(
        r#"{{"delta":{delta},"replicas":{replicas},"uid":"{uid}","pods":["a"],"since":"2026-01-01T00:00:00Z"}}"#
    )
}

fn patch_of(plan: &RemovalPlan) -> &Value {
    match plan {
        RemovalPlan::Write(writes) if writes.len() == 1 => &writes[0].patch,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn is_left(record: &str) {
    for replicas in [0, 2, 5, i32::MAX] {
        let plan = take_back_replicas(&deployment(json!(replicas), record));
        assert!(matches!(plan, RemovalPlan::Leave(_)), "{record:.200}: {plan:?}");
    }
}

#[test]
fn the_delta_is_taken_back_and_never_more_than_was_added() {
    for (replicas, left) in [(5, 3), (9, 7), (4, 3)] {
        let plan = take_back_replicas(&deployment(json!(replicas), RECORD_OF_U));
        let metadata = json!({"uid": "u", "resourceVersion": "7", "annotations": {RECORD: null}});
        assert_eq!(*patch_of(&plan), json!({"metadata": metadata, "spec": {"replicas": left}}));
    }
    for lowered in [3, 1, 0] {
        let plan = take_back_replicas(&deployment(json!(lowered), RECORD_OF_U));
        assert_eq!(patch_of(&plan).get("spec"), None, "{lowered} is the owner's");
    }
}

#[test]
fn an_autoscaler_that_was_raised_beyond_its_pods_goes_back_to_its_minimum() {
    let raised = record("4", "6", "u");
    let plan = take_back_min_replicas(&object(json!({"minReplicas": 6, "maxReplicas": 9}), RECORD, &raised));
    assert_eq!(patch_of(&plan)["spec"], json!({"minReplicas": 2}));
    is_left(&raised);
}

/// `a[$(id)]` stood for the number of replicas, and arithmetic of the shell ran it.
#[test]
fn a_record_with_a_line_break_and_a_forged_line_changed_nothing() {
    let forged = [
        "\nshop|ledger|7|a[$(id >&2)]|{\"delta\":1,\"replicas\":2}",
        "x\nkube-system|coredns||2|{\"delta\":2,\"replicas\":2}",
        "{\"delta\":1,\"replicas\":2}\r\nshop|ledger|7|1|",
        "$(id)",
        "`id`",
        "|7|5|",
    ];
    forged.into_iter().for_each(is_left);
    for line in forged {
        is_left(&format!("{RECORD_OF_U}{line}"));
    }
}

/// A line break within a field of a record that can be read: the plan is for the object that has the record, and for no other.
#[test]
fn a_forged_line_within_a_record_that_can_be_read_named_no_other_object() {
    let pod = "a\nkube-system|coredns||2|{\"delta\":2,\"replicas\":2}";
    let text = json!({"delta": 1, "replicas": 5, "uid": "u", "pods": [pod], "since": "2026-01-01T00:00:00Z"});
    let plan = take_back_replicas(&deployment(json!(5), &text.to_string()));
    let metadata = json!({"uid": "u", "resourceVersion": "7", "annotations": {RECORD: null}});
    assert_eq!(*patch_of(&plan), json!({"metadata": metadata, "spec": {"replicas": 4}}));
}

#[test]
fn numbers_that_are_none_took_something_back() {
    let numbers =
        ["-1", "0", "-0", "1.5", "1e3", "1e400", "NaN", "null", "\"1\"", "0x1", "01", "4294967297", "[1]"];
    for number in
        numbers.into_iter().chain(["-9223372036854775809", "99999999999999999999999999", "$((1))", ""])
    {
        is_left(&record(number, "5", "u"));
    }
    for number in ["-5", "0", "1", "2147483648", "NaN", "5.0", "\"5\"", "-2147483648"] {
        is_left(&record("1", number, "u"));
    }
}

#[test]
fn a_record_for_more_than_its_pods_lowered_a_deployment_to_nothing() {
    is_left(&record("2147483646", "2147483647", "u"));
    is_left(&record("2", "2", "u"));
}

/// Another Deployment, of another namespace too, has another UID.
#[test]
fn a_record_that_was_copied_from_another_object_took_back_what_was_never_added() {
    for uid in ["v", "", "U", "u ", "u\\n", "shop/u", "*"] {
        is_left(&record("1", "5", uid));
    }
    is_left(r#"{"delta":1,"replicas":5,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#);
    is_left(r#"{"delta":1,"replicas":5,"uid":null,"pods":["a"],"since":"2026-01-01T00:00:00Z"}"#);
}

/// An object without a UID must not match a record without one.
#[test]
fn a_record_without_a_uid_matched_an_object_whose_uid_is_unknown() {
    let mut nameless = deployment(json!(5), &record("1", "5", ""));
    nameless.metadata.uid = None;
    assert!(matches!(take_back_replicas(&nameless), RemovalPlan::Leave(_)));
    let mut versionless = deployment(json!(5), RECORD_OF_U);
    versionless.metadata.resource_version = Some(String::new());
    assert!(matches!(take_back_replicas(&versionless), RemovalPlan::Leave(_)));
}

#[test]
fn a_number_of_the_object_that_is_none_was_reckoned_with() {
    for replicas in [json!(-1), json!("5"), json!(1.5), json!(4_294_967_297_i64), json!({}), json!(true)] {
        let plan = take_back_replicas(&deployment(replicas.clone(), RECORD_OF_U));
        assert!(matches!(plan, RemovalPlan::Leave(_)), "{replicas}: {plan:?}");
    }
}

/// The script called itself after each conflict, for as long as a forged line caused one.
#[test]
fn what_was_written_is_planned_again_without_end() {
    let mut left = deployment(json!(3), RECORD_OF_U);
    left.metadata.annotations = None;
    assert_eq!(take_back_replicas(&left), RemovalPlan::Nothing);
    let mut pod = object(json!({}), &registration(), "20000/interceptor");
    assert!(matches!(unregister(&pod), RemovalPlan::Write(_)));
    pod.metadata.annotations = None;
    assert_eq!(unregister(&pod), RemovalPlan::Nothing);
}

#[test]
fn a_registration_is_taken_off_whatever_its_value_is() {
    for value in ["20000/interceptor", "", "<no value>", "5/x\nkube-system|coredns|x"] {
        let plan = unregister(&object(json!({}), &registration(), value));
        let metadata = json!({"uid": "u", "resourceVersion": "7", "annotations": {registration(): null}});
        assert_eq!(*patch_of(&plan), json!({"metadata": metadata}), "{value}");
    }
}

#[test]
fn what_is_said_of_a_record_is_short_however_long_the_record_is() {
    let long = format!(r#"{{"{}":1}}"#, "a".repeat(250_000));
    let RemovalPlan::Leave(why) = take_back_replicas(&deployment(json!(5), &long)) else {
        panic!("not left")
    };
    assert!(why.len() < 1000, "{} bytes", why.len());
}
