//! Rules for the status fields that tell programs about the pod and about what blocks. The name of each test is the
//! rule.

use std::time::Duration;

use drydock_api::eviction_request::EvictionRequestStrategy;
use drydock_api::eviction_request::permissions::{Permission, needed};
use drydock_machinery::Object;
use drydock_machinery::kind::Kind;
use drydock_machinery::strategy::Strategy;
use serde_json::{Value, json};

const LAST: &str = "imperative-eviction.k8s.io";

fn object(status: &Value) -> Object {
    let metadata = json!({ "name": "u1", "generation": 1, "creationTimestamp": "2026-01-01T11:00:00Z" });
    let Value::Object(map) = json!({ "metadata": metadata, "status": status }) else { unreachable!() };
    Object::from(map)
}

fn update(new: &Value, old: &Value) -> Vec<String> {
    let kind = EvictionRequestStrategy::new(Duration::from_secs(1200)).into_kind();
    let now = "2026-01-01T12:00:00Z".parse().unwrap();
    kind.validate_status_update(&object(new), &object(old), now).iter().map(ToString::to_string).collect()
}

/// A status in which the last interceptor is active and reports this as `blocked`.
fn blocked(blocked: &Value) -> Value {
    json!({
        "targetInterceptors": [{ "name": LAST }],
        "interceptors": [{ "name": LAST, "message": "", "blocked": blocked }],
        "activeInterceptors": [LAST],
        "activationTime": "2026-01-01T11:59:59.000000Z",
    })
}

#[test]
fn what_blocks_may_have_unknown_words_in_camel_case_of_bounded_length_and_a_printable_name() {
    let none = blocked(&Value::Null);
    let known = json!({ "reason": "PodDisruptionBudget", "name": "b", "state": "ShortNow", "sinceTime": "2026-01-01T12:00:09Z" });
    for fine in [known, json!({ "reason": "OfLaterVersions", "state": "New" })] {
        assert_eq!(update(&blocked(&fine), &none), Vec::<String>::new());
        assert_eq!(update(&none, &blocked(&fine)), Vec::<String>::new());
    }
    let at = "status.interceptors[0].blocked";
    for (wrong, error) in [
        (json!({ "name": "b" }), "reason: Required value".to_owned()),
        (
            json!({ "reason": "x".repeat(65) }),
            "reason: Too long: may not be more than 64 characters".to_owned(),
        ),
        (
            json!({ "reason": "R", "state": "x".repeat(65) }),
            "state: Too long: may not be more than 64 characters".to_owned(),
        ),
        (
            json!({ "reason": "R", "name": "x".repeat(513) }),
            "name: Too long: may not be more than 512 characters".to_owned(),
        ),
        (json!({ "reason": "R\u{1b}]52;c;eA==\u{7}" }), not_camel_case("reason", "R\\x1b]52;c;eA==\\a")),
        (json!({ "reason": "R", "state": "two words" }), not_camel_case("state", "two words")),
        (
            json!({ "reason": "R", "name": "b\nforged" }),
            "name: Invalid value: \"b\\nforged\": must consist of printable ASCII characters".to_owned(),
        ),
        (
            json!({ "reason": "R", "sinceTime": "2026-01-01T12:00:11Z" }),
            "sinceTime: Invalid value: \"2026-01-01T12:00:11Z\": must not be in the future".to_owned(),
        ),
    ] {
        assert_eq!(update(&blocked(&wrong), &none), [format!("{at}.{error}")]);
        let mut last = none.clone();
        last["interceptors"][0]["lastBlocked"] = wrong.clone();
        assert_eq!(update(&last, &none), [format!("status.interceptors[0].lastBlocked.{error}")]);
        assert!(
            update(&blocked(&wrong), &blocked(&wrong)).is_empty(),
            "a value that does not change always passes"
        );
    }
}

fn not_camel_case(field: &str, word: &str) -> String {
    format!(
        "{field}: Invalid value: \"{word}\": must consist of alphanumeric characters, and must start with an alphabetic \
         character (e.g. 'ShortNow', regex used for validation is '[A-Za-z][A-Za-z0-9]*')"
    )
}

fn with_pod(pod: &Value) -> Value {
    let mut status = blocked(&Value::Null);
    status["podInfo"] = pod.clone();
    status
}

#[test]
fn pod_info_is_set_once_and_by_the_assigner() {
    let none = with_pod(&Value::Null);
    let pod = json!({ "nodeName": "n", "priority": -5, "podType": "Default" });
    assert_eq!(update(&with_pod(&pod), &none), Vec::<String>::new());
    for other in [Value::Null, json!({ "nodeName": "m", "priority": -5, "podType": "Default" })] {
        let errors = update(&with_pod(&other), &with_pod(&pod));
        assert!(errors.len() == 1 && errors[0].ends_with("field is immutable once set"), "{errors:?}");
    }
    let long = json!({ "nodeName": "x".repeat(513), "priority": 0, "podType": "x".repeat(65) });
    assert_eq!(update(&with_pod(&long), &none).len(), 2);
    let (new, old) = (object(&with_pod(&pod)), object(&none));
    assert_eq!(needed(&new, &old).into_keys().collect::<Vec<_>>(), [Permission::Assignment]);
    let (new, old) = (object(&blocked(&json!({ "reason": "Other" }))), object(&none));
    assert_eq!(needed(&new, &old).into_keys().collect::<Vec<_>>(), [Permission::Interceptor(LAST)]);
}
