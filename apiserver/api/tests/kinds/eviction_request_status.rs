//! Rules for status updates of an EvictionRequest (KEP-4563). The name of each test is the rule.

use std::time::Duration;

use drydock_api::eviction_request::EvictionRequestStrategy;
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T12:00:00.5Z";
const LAST: &str = "imperative-eviction.k8s.io";

fn object(value: Value) -> Object {
    let Value::Object(map) = value else { panic!("not an object") };
    Object::from(map)
}

fn request(status: Value) -> Value {
    json!({
        "metadata": { "name": "u1", "generation": 3, "creationTimestamp": "2026-01-01T11:00:00Z" },
        "spec": { "target": { "pod": { "name": "p", "uid": "u1" } }, "requesters": [{ "name": "a.example" }] },
        "status": status,
    })
}

fn update(new: &Value, old: &Value) -> Vec<String> {
    update_of(request(new.clone()), request(old.clone()))
}

fn update_of(new: Value, old: Value) -> Vec<String> {
    let kind = EvictionRequestStrategy::new(Duration::from_secs(1200)).into_kind();
    let (new, old) = (object(new), object(old));
    kind.validate_status_update(&new, &old, NOW.parse().unwrap()).iter().map(ToString::to_string).collect()
}

fn changed(mut value: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut value);
    value
}

/// A status with the targets a.b, c.d and imperative eviction; a.b is active since 11:50.
fn started() -> Value {
    json!({
        "observedGeneration": 3,
        "targetInterceptors": [{ "name": "a.b" }, { "name": "c.d" }, { "name": LAST }],
        "interceptors": [{ "name": "a.b", "message": "" }, { "name": "c.d", "message": "" }, { "name": LAST, "message": "" }],
        "activeInterceptors": ["a.b"],
        "activationTime": "2026-01-01T11:50:00.000000Z",
    })
}

fn first() -> Value {
    changed(started(), |s| s["activationTime"] = "2026-01-01T12:00:00.400000Z".into())
}

fn entry(fields: Value) -> Value {
    changed(started(), |s| {
        for (key, value) in fields.as_object().unwrap() {
            s["interceptors"][0][key] = value.clone();
        }
    })
}

fn ended(condition: &str) -> Value {
    json!([{ "type": condition, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T12:00:00Z" }])
}

fn completed(status: Value) -> Value {
    changed(status, |s| s["interceptors"][0]["completionTime"] = "2026-01-01T11:55:00Z".into())
}

fn handed_over(from: &Value) -> Value {
    changed(from.clone(), |s| {
        s["activeInterceptors"] = json!(["c.d"]);
        s["processedInterceptors"] = json!(["a.b"]);
        s["activationTime"] = "2026-01-01T12:00:00.000000Z".into();
    })
}

#[track_caller]
fn refused(new: &Value, old: &Value, words: &str) {
    let errors = update(new, old);
    assert!(errors.iter().any(|e| e.contains(words)), "{errors:?}");
}

#[test]
fn the_first_pass_is_accepted() {
    assert_eq!(update(&first(), &json!({})), Vec::<String>::new());
}

#[test]
fn a_value_that_does_not_change_always_passes() {
    let odd = json!({ "observedGeneration": 99, "activeInterceptors": ["x"], "processedInterceptors": ["y", "y"],
        "targetInterceptors": [{ "name": "nope" }], "interceptors": [{ "name": "q", "heartbeatTime": "2030-01-01T00:00:00Z" }],
        "conditions": [{ "type": "Evicted", "status": "True" }, { "type": "Canceled", "status": "True" }] });
    assert_eq!(update(&odd, &odd), Vec::<String>::new());
}

#[test]
fn observed_generation_never_goes_back_nor_past_the_generation() {
    let at = |n: i64| json!({ "observedGeneration": n });
    assert!(update(&at(3), &at(2)).is_empty());
    refused(&at(1), &at(2), "status.observedGeneration: Invalid value: 1: must not be decremented");
    refused(&at(4), &at(2), "must not be greater than metadata.generation");
}

#[test]
fn target_interceptors_are_at_most_seventeen() {
    let targets = |n: usize| -> Value {
        let names = (1..n).map(|i| format!("i{i}.example"));
        let names: Vec<String> = names.chain(["imperative-eviction.k8s.io".to_owned()]).collect();
        json!({
            "targetInterceptors": names.iter().map(|n| json!({ "name": n })).collect::<Vec<_>>(),
            "interceptors": names.iter().map(|n| json!({ "name": n, "message": "" })).collect::<Vec<_>>(),
        })
    };
    assert!(update(&targets(17), &json!({})).is_empty());
    refused(&targets(18), &json!({}), "status.targetInterceptors: Too many: 18: must have at most 17 items");
}

#[test]
fn target_interceptors_are_immutable_once_set() {
    let less = changed(started(), |s| s["targetInterceptors"] = json!([{ "name": "a.b" }]));
    refused(&less, &started(), "field is immutable once set");
    let none = changed(started(), |s| s["targetInterceptors"] = json!([]));
    refused(&none, &started(), "status.targetInterceptors: Invalid value: []: field is immutable once set");
}

#[test]
fn names_under_k8s_io_only_from_the_list() {
    let evil = changed(first(), |s| {
        s["targetInterceptors"][1]["name"] = "evil.k8s.io".into();
        s["interceptors"][1]["name"] = "evil.k8s.io".into();
    });
    refused(
        &evil,
        &json!({}),
        "status.targetInterceptors[1].name: Invalid value: \"evil.k8s.io\": names under k8s.io",
    );
}

#[test]
fn targets_and_interceptors_come_together_or_not_at_all() {
    let only = changed(first(), |s| s["interceptors"] = json!([]));
    refused(&only, &json!({}), "status.interceptors: Required value: must be set together");
    let only = json!({ "interceptors": [{ "name": "a.b", "message": "" }] });
    refused(&only, &json!({}), "status.targetInterceptors: Required value: must be set together");
}

#[test]
fn interceptors_are_initialised_with_the_same_names_and_an_empty_message() {
    let other = changed(first(), |s| s["interceptors"][0]["name"] = "x.y".into());
    refused(&other, &json!({}), "must have one entry for each of status.targetInterceptors and no other");
    let said = changed(first(), |s| s["interceptors"][0]["message"] = "hi".into());
    refused(&said, &json!({}), "status.interceptors[0]: Invalid value");
}

#[test]
fn at_most_one_is_active_and_the_first_is_index_0() {
    let two = changed(first(), |s| s["activeInterceptors"] = json!(["a.b", "c.d"]));
    refused(&two, &json!({}), "status.activeInterceptors: Too many: 2: must have at most 1 item");
    let second = changed(first(), |s| s["activeInterceptors"] = json!(["c.d"]));
    refused(&second, &json!({}), "must be the next of status.targetInterceptors, which is \"a.b\"");
}

#[test]
fn only_the_next_index_follows_and_only_when_the_turn_is_over() {
    let old = completed(started());
    assert!(update(&handed_over(&old), &old).is_empty());
    let skipped = changed(handed_over(&old), |s| s["activeInterceptors"] = json!([LAST]));
    refused(&skipped, &old, "must be the next of status.targetInterceptors, which is \"c.d\"");
    refused(&handed_over(&started()), &started(), "neither a completionTime nor passed its deadline");
}

#[test]
fn the_deadline_may_be_up_to_ten_seconds_early_by_the_servers_clock() {
    let silent = |since: &str| changed(started(), |s| s["activationTime"] = since.into());
    let due_in_9_s = silent("2026-01-01T11:40:09.000000Z");
    assert!(update(&handed_over(&due_in_9_s), &due_in_9_s).is_empty());
    let due_in_12_s = silent("2026-01-01T11:40:12.000000Z");
    refused(&handed_over(&due_in_12_s), &due_in_12_s, "neither a completionTime nor passed its deadline");
}

#[test]
fn the_deadline_runs_from_heartbeat_else_activation_else_creation() {
    let beat = |t: &str| {
        changed(entry(json!({ "startTime": t, "heartbeatTime": t })), |s| {
            s["activationTime"] = "2026-01-01T11:01:00Z".into();
        })
    };
    let late = beat("2026-01-01T11:30:00Z");
    assert!(update(&handed_over(&late), &late).is_empty());
    let fresh = beat("2026-01-01T11:59:00Z");
    refused(&handed_over(&fresh), &fresh, "neither a completionTime nor passed its deadline");
    let created = changed(started(), |s| s["activationTime"] = Value::Null);
    assert!(update(&handed_over(&created), &created).is_empty());
}

#[test]
fn active_is_never_empty_in_between_but_clears_with_a_terminal_condition() {
    let cleared = changed(completed(started()), |s| s["activeInterceptors"] = json!([]));
    refused(&cleared, &completed(started()), "may be cleared only when the request is Evicted or Canceled");
    let ended_now = changed(cleared.clone(), |s| s["conditions"] = ended("Canceled"));
    assert!(update(&ended_now, &completed(started())).is_empty());
    let before = changed(started(), |s| s["conditions"] = ended("Evicted"));
    assert!(update(&changed(before.clone(), |s| s["activeInterceptors"] = json!([])), &before).is_empty());
    refused(
        &first(),
        &changed(json!({}), |s| s["conditions"] = ended("Evicted")),
        "is final once it is True",
    );
    let late = changed(first(), |s| s["conditions"] = ended("Evicted"));
    refused(&late, &json!({ "conditions": ended("Evicted") }), "may not change to another interceptor");
}

/// Deletion cancels a request. Regression: a client that may write its status could still change the active
/// interceptor while a finalizer kept the request.
#[test]
fn nobody_gets_a_turn_in_a_request_that_is_being_deleted() {
    let deleted = |status: &Value| {
        changed(request(status.clone()), |r| {
            r["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z".into()
        })
    };
    let over = completed(started());
    for (new, old) in [(first(), json!({})), (handed_over(&over), over.clone())] {
        assert_eq!(update(&new, &old), [""; 0]);
        let errors = update_of(deleted(&new), deleted(&old));
        assert!(errors.iter().any(|e| e.contains("when the request is being deleted")), "{errors:?}");
    }
    let end = changed(over.clone(), |s| {
        s["conditions"] = ended("Canceled");
        s["processedInterceptors"] = json!(["a.b"]);
        s["activeInterceptors"] = json!([]);
    });
    assert_eq!(update_of(deleted(&end), deleted(&over)), [""; 0]);
}

#[test]
fn activation_time_is_now_with_each_change_and_changes_at_no_other_time() {
    refused(&started(), &json!({}), "status.activationTime: Invalid value: \"2026-01-01T11:50:00.000000Z\"");
    let unset = changed(first(), |s| s["activationTime"] = Value::Null);
    refused(&unset, &json!({}), "status.activationTime: Required value");
    refused(&first(), &started(), "status.activationTime: Forbidden: may change only when");
    let cleared = changed(started(), |s| {
        s["activeInterceptors"] = json!([]);
        s["conditions"] = ended("Canceled");
        s["activationTime"] = Value::Null;
    });
    refused(&cleared, &started(), "status.activationTime: Forbidden");
}

#[test]
fn processed_interceptors_were_active_and_are_append_only() {
    let old = completed(started());
    let never = changed(handed_over(&old), |s| s["processedInterceptors"] = json!(["a.b", "c.d"]));
    refused(&never, &old, "status.processedInterceptors[1]: Invalid value: \"c.d\": must have been in");
    let twice = changed(handed_over(&old), |s| s["processedInterceptors"] = json!(["a.b", "a.b"]));
    refused(&twice, &old, "status.processedInterceptors[1]: Duplicate value: \"a.b\"");
    let gone = changed(handed_over(&old), |s| s["processedInterceptors"] = json!([]));
    refused(&gone, &handed_over(&old), "may only be appended to");
}

#[test]
fn only_the_entry_of_the_active_interceptor_may_change() {
    let other = changed(started(), |s| s["interceptors"][1]["message"] = "me too".into());
    refused(&other, &started(), "status.interceptors[1]: Forbidden: only the entry of the interceptor in");
    assert!(update(&entry(json!({ "message": "mine" })), &started()).is_empty());
    let fewer = changed(started(), |s| s["interceptors"] = json!([{ "name": "a.b", "message": "" }]));
    refused(&fewer, &started(), "must have one entry for each");
}

#[test]
fn start_time_and_the_first_heartbeat_come_in_the_same_update() {
    let (now, both) = ("2026-01-01T12:00:00Z", "must be set together with");
    assert!(update(&entry(json!({ "startTime": now, "heartbeatTime": now })), &started()).is_empty());
    refused(&entry(json!({ "startTime": now })), &started(), both);
    refused(&entry(json!({ "heartbeatTime": now })), &started(), both);
}

#[test]
fn an_entry_with_completion_time_alone_is_a_decline() {
    assert!(update(&entry(json!({ "completionTime": "2026-01-01T12:00:00Z" })), &started()).is_empty());
}

#[test]
fn start_and_completion_are_now_within_ten_seconds_and_then_fixed() {
    for (time, right) in [("11:59:51", true), ("12:00:10", true), ("11:59:49", false), ("12:00:11", false)] {
        let new = entry(json!({ "completionTime": format!("2026-01-01T{time}Z") }));
        assert_eq!(update(&new, &started()).is_empty(), right, "{time}");
    }
    let old = completed(started());
    refused(&entry(json!({ "completionTime": "2026-01-01T12:00:00Z" })), &old, "field is immutable once set");
    refused(
        &started(),
        &old,
        "status.interceptors[0].completionTime: Invalid value: null: field is immutable",
    );
    let start = "2026-01-01T11:59:00Z";
    let new = entry(json!({ "startTime": start, "heartbeatTime": start }));
    refused(&new, &started(), "status.interceptors[0].startTime: Invalid value");
}

#[test]
fn a_heartbeat_goes_forward_by_sixty_seconds_and_never_into_the_future() {
    let at = |t: &str| {
        entry(json!({ "startTime": "2026-01-01T11:55:00Z", "heartbeatTime": format!("2026-01-01T{t}Z") }))
    };
    let old = at("11:59:00");
    assert!(update(&at("12:00:00"), &old).is_empty());
    refused(&at("11:59:59"), &old, "must be at least 60 seconds after the last one");
    refused(&at("11:58:00"), &old, "must not be decremented");
    refused(&at("12:00:11"), &old, "must not be in the future");
    let removed = changed(old.clone(), |s| s["interceptors"][0]["heartbeatTime"] = Value::Null);
    refused(
        &removed,
        &old,
        "status.interceptors[0].heartbeatTime: Required value: may not be removed once set",
    );
    let early =
        entry(json!({ "startTime": "2026-01-01T12:00:00Z", "heartbeatTime": "2026-01-01T11:59:59Z" }));
    refused(&early, &started(), "must not be before startTime");
}

#[test]
fn a_changed_expected_finish_time_is_not_in_the_past_and_may_be_removed() {
    let at = |t: &str| entry(json!({ "expectedFinishTime": format!("2026-01-01T{t}Z") }));
    assert!(update(&at("11:59:50"), &started()).is_empty());
    refused(
        &at("11:59:49"),
        &started(),
        "expectedFinishTime: Invalid value: \"2026-01-01T11:59:49Z\": must not be",
    );
    assert!(update(&started(), &at("11:00:00")).is_empty());
}

#[test]
fn a_message_is_at_most_four_thousand_characters() {
    assert!(update(&entry(json!({ "message": "é".repeat(4000) })), &started()).is_empty());
    let long = entry(json!({ "message": "é".repeat(4001) }));
    refused(
        &long,
        &started(),
        "status.interceptors[0].message: Too long: may not be more than 4000 characters",
    );
}

#[test]
fn canceled_and_evicted_are_final_and_never_both() {
    let with = |list: Value| changed(started(), |s| s["conditions"] = list);
    let both = changed(ended("Evicted"), |c| {
        c.as_array_mut().unwrap().extend(ended("Canceled").as_array().unwrap().clone())
    });
    refused(&with(both), &started(), "Canceled and Evicted may not both be True");
    refused(
        &started(),
        &with(ended("Evicted")),
        "status.conditions[Evicted]: Forbidden: the condition is final",
    );
}

#[test]
fn changed_conditions_follow_the_common_rules() {
    let new = json!({ "conditions": [{ "type": "X", "status": "Maybe", "reason": "" }, { "type": "X", "status": "True" }] });
    let errors = update(&new, &json!({}));
    assert!(errors.iter().any(|e| e == "status.conditions[1].type: Duplicate value: \"X\""), "{errors:?}");
    assert!(errors.iter().any(|e| e.contains("[0].status: Unsupported value: \"Maybe\"")), "{errors:?}");
    assert!(
        errors.iter().any(|e| e == "status.conditions[0].lastTransitionTime: Required value"),
        "{errors:?}"
    );
    assert!(errors.iter().any(|e| e == "status.conditions[0].reason: Required value"), "{errors:?}");
}

/// Regression: a client with the permission for one interceptor could fill the status until the controller's
/// condition did not fit.
#[test]
fn conditions_of_others_are_bounded_together_and_those_of_the_controller_pass() {
    let foreign = |n: usize, bytes: usize| {
        json!({ "type": format!("example.com/C{n}"), "status": "True", "reason": "R",
            "lastTransitionTime": "2026-01-01T12:00:00Z", "message": "m".repeat(bytes) })
    };
    let with = |conditions: Vec<Value>| changed(started(), |status| status["conditions"] = conditions.into());
    let full: Vec<Value> = (0..7).map(|n| foreign(n, 2 << 10)).collect();
    assert_eq!(update(&with(full.clone()), &started()), Vec::<String>::new());
    let more = with((0..9).map(|n| foreign(n, 2 << 10)).collect());
    let refused = update(&more, &with(full));
    assert_eq!(refused, ["status.conditions: Too long: may not be more than 16384 bytes"]);
    let mut ended = more.clone();
    let end = json!({ "type": "Evicted", "status": "True", "reason": "PodDeleted", "message": "",
        "lastTransitionTime": "2026-01-01T12:00:00Z" });
    ended["conditions"].as_array_mut().unwrap().push(end);
    assert_eq!(
        update(&ended, &more),
        Vec::<String>::new(),
        "an object of before the bound can still be ended"
    );
}

/// A status whose own interceptors have time until then.
fn bounded(end: &str) -> Value {
    changed(
        entry(json!({"startTime": "2026-01-01T11:50:00Z", "heartbeatTime": "2026-01-01T11:59:00Z"})),
        |s| {
            s["interceptionDeadline"] = end.into();
        },
    )
}

fn passed_to(from: &Value, next: &str) -> Value {
    changed(handed_over(from), |s| s["activeInterceptors"] = json!([next]))
}

#[test]
fn from_the_interception_deadline_on_the_turn_passes_to_the_next_default_interceptor_whatever_was_reported() {
    let over = bounded("2026-01-01T12:00:00Z");
    assert_eq!(update(&passed_to(&over, LAST), &over), Vec::<String>::new());
    // The clock of the controller may be ten seconds ahead.
    let almost = bounded("2026-01-01T12:00:10Z");
    assert_eq!(update(&passed_to(&almost, LAST), &almost), Vec::<String>::new());
    let later = bounded("2026-01-01T12:00:11Z");
    refused(&passed_to(&later, LAST), &later, "must be the next of status.targetInterceptors");
    refused(&passed_to(&later, "c.d"), &later, "neither a completionTime nor passed its deadline");
    let unbounded = changed(later, |s| s["interceptionDeadline"] = Value::Null);
    refused(&passed_to(&unbounded, LAST), &unbounded, "must be the next of status.targetInterceptors");
}

/// The deadline is of the pod's own interceptors: a DaemonSet's pod waits for its tier however long that takes.
#[test]
fn the_interception_deadline_ends_no_turn_of_a_default_interceptor() {
    let own = |status: Value| -> Value {
        let text = status.to_string().replace("a.b", "daemonset.apps.k8s.io");
        serde_json::from_str(&text).unwrap()
    };
    let over = own(bounded("2026-01-01T11:00:00Z"));
    refused(&own(passed_to(&over, LAST)), &over, "must be the next of status.targetInterceptors");
}

#[test]
fn earlier_turns_are_set_until_the_first_turn_and_immutable_then() {
    let turns = json!({"interceptors": ["x.y"], "seconds": 7});
    let with = |status: Value, turns: &Value| changed(status, |s| s["earlierTurns"] = turns.clone());
    assert_eq!(update(&with(first(), &turns), &json!({})), Vec::<String>::new());
    refused(&with(started(), &turns), &started(), "may be set only before the first turn or with it");
    let set = with(started(), &turns);
    assert_eq!(update(&set, &set), Vec::<String>::new());
    let more = json!({"interceptors": ["x.y", "z.y"], "seconds": 7});
    refused(&with(started(), &more), &set, "may be set only before the first turn or with it");
    refused(&started(), &set, "field is immutable once set");
    let wrong = json!({"interceptors": ["x"], "seconds": -1});
    refused(&with(first(), &wrong), &json!({}), "status.earlierTurns.interceptors[0]");
    refused(
        &with(first(), &wrong),
        &json!({}),
        "status.earlierTurns.seconds: Invalid value: -1: must not be negative",
    );
}
