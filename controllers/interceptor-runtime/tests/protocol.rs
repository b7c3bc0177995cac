//! The page for interceptors in any language says what the API server accepts and refuses.
#![allow(clippy::unwrap_used, clippy::panic)]

use drydock_api::eviction_request::transitions::DEFAULT_HEARTBEAT_DEADLINE;
use drydock_api::eviction_request::{EvictionRequest, EvictionRequestStrategy};
use drydock_machinery::strategy::Strategy;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../README.md");
const NAME: &str = "checkpoint.example.com";

/// The time so many seconds after the present one of these tests.
fn at(second: i64) -> String {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    now.checked_add(SignedDuration::from_secs(second)).unwrap().to_string()
}

fn request(active: &str, entry: &Value) -> EvictionRequest {
    let last = "imperative-eviction.k8s.io";
    let object = json!({
        "metadata": {"name": "u", "namespace": "ns", "uid": "REQUEST UID"},
        "spec": {"target": {"pod": {"name": "p", "uid": "u"}}, "requesters": [{"name": "r.example.com"}]},
        "status": {
            "activeInterceptors": [active], "targetInterceptors": [{"name": NAME}, {"name": last}],
            "interceptors": [entry, {"name": last, "message": ""}],
        },
    });
    serde_json::from_value(object).unwrap()
}

/// What the API server says of a change, if it refuses it.
fn refusal(active: &str, new: &Value, old: &Value) -> Option<String> {
    let strategy = EvictionRequestStrategy::new(DEFAULT_HEARTBEAT_DEADLINE);
    let (new, old) = (request(active, new), request(active, old));
    strategy.validate_status_update(&new, &old, at(0).parse().unwrap()).first().map(ToString::to_string)
}

/// An entry with these fields.
fn entry(fields: &Value) -> Value {
    let mut entry = json!({"name": NAME, "message": ""});
    merge(&mut entry, fields);
    entry
}

fn merge(entry: &mut Value, fields: &Value) {
    for (field, value) in fields.as_object().unwrap() {
        entry[field] = value.clone();
    }
}

fn begun(second: i64) -> Value {
    json!({"startTime": at(second), "heartbeatTime": at(second)})
}

/// Returns the one line of JSON that follows a text of the page, as the entry that it changes.
fn patch_after(text: &str) -> Value {
    let (_, rest) = PAGE.split_once(text).unwrap_or_else(|| panic!("{text} is not there"));
    let line = rest.lines().find(|line| line.starts_with('{')).unwrap();
    let line = line.replace("NOW", &at(0)).replace("LATER", &at(600));
    let patch: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(patch["metadata"]["uid"], "REQUEST UID");
    patch["status"]["interceptors"][0].clone()
}

#[test]
fn each_patch_of_the_page_is_accepted() {
    let blank = entry(&json!({}));
    let since = |second| entry(&begun(second));
    for (text, old) in [
        ("Begin, within", blank.clone()),
        ("Report progress", since(-10)),
        ("Send a heartbeat", since(-180)),
        ("End the turn", since(-10)),
        ("Decline, in place", blank),
    ] {
        let mut new = old.clone();
        merge(&mut new, &patch_after(text));
        assert_ne!(new, old);
        assert_eq!(refusal(NAME, &new, &old), None, "{text}");
    }
}

#[test]
fn each_refusal_of_the_page_is_in_the_words_of_the_api_server() {
    let nothing = json!({});
    let (beat, start) =
        (|second| json!({"heartbeatTime": at(second)}), |second| json!({"startTime": at(second)}));
    let mut early = start(0);
    early["heartbeatTime"] = at(-9).into();
    let cases = [
        ("must be the present time, give or take 10 seconds", begun(-60), &nothing),
        ("must be the present time, give or take 10 seconds", json!({"completionTime": at(60)}), &nothing),
        ("field is immutable once set", start(0), &begun(-60)),
        ("must be set together with startTime", start(0), &nothing),
        ("must be set together with the first heartbeatTime", beat(0), &nothing),
        ("must be at least 60 seconds after the last one", beat(0), &begun(-59)),
        ("must not be in the future", beat(60), &begun(-60)),
        ("must not be decremented", beat(-61), &begun(-60)),
        ("must not be before startTime", early, &nothing),
        ("may not be removed once set", json!({"heartbeatTime": null}), &begun(-60)),
        ("must not be in the past", json!({"expectedFinishTime": at(-60)}), &begun(-60)),
        ("may not be more than 4000 characters", json!({"message": "m".repeat(4001)}), &begun(-60)),
    ];
    let table = PAGE.split_once("## What is refused").unwrap().1;
    for (text, change, old) in &cases {
        let old = entry(old);
        let mut new = old.clone();
        merge(&mut new, change);
        let said = refusal(NAME, &new, &old).unwrap_or_else(|| panic!("accepted: {change}"));
        assert!(said.contains(text), "{said}");
        assert!(table.contains(&format!("`{text}`")), "{text}");
    }
    let told = entry(&json!({"message": "not my turn"}));
    let said = refusal("imperative-eviction.k8s.io", &told, &entry(&nothing)).unwrap();
    let text = "only the entry of the interceptor in status.activeInterceptors may change";
    assert!(said.contains(text) && table.contains(text), "{said}");
    let rows = table.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.contains("| `"));
    let texts: std::collections::BTreeSet<_> = cases.iter().map(|(text, ..)| text).collect();
    assert_eq!(rows.filter(|row| row.starts_with("| `.") || row.contains(text)).count(), texts.len() + 1);
}
