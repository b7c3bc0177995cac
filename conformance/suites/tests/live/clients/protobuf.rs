//! Our kinds in protobuf: what client-go gets, decoded by our .proto files, equals the JSON.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use drydock_testkit::informer::{decoded, program};
use drydock_testkit::kinds::node_maintenance;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::shared::{Shared, shared};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_protobuf_says_what_json_says() -> Result<()> {
    let shared = shared().await?;
    let namespace = shared.namespace("protobuf").await?;
    let uid = namespace.held_request("p", &shared.node("protobuf").await?).await?;
    let path = format!("/apis/{}/namespaces/protobuf/evictionrequests/{uid}", drydock_api::API_VERSION);
    assert_same(shared, "EvictionRequest", &path).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_maintenance_in_protobuf_says_what_json_says() -> Result<()> {
    let shared = shared().await?;
    let mut maintenance = node_maintenance("protobuf", "Idle", &["nowhere"]);
    maintenance["metadata"]["labels"] = json!({"a": "b"});
    let selector =
        json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]});
    maintenance["spec"]["drainPlan"] = json!([{"podPriority": 1000, "podSelector": selector}]);
    shared.kubectl().apply(&maintenance).await?;
    let path = format!("/apis/{}/nodemaintenances/protobuf", drydock_api::API_VERSION);
    assert_same(shared, "NodeMaintenance", &path).await?;
    shared.kubectl().ok(&["delete", "nm", "protobuf"]).await?;
    Ok(())
}

async fn assert_same(shared: &Shared, kind: &str, path: &str) -> Result<()> {
    let host = &shared.drydock.host;
    let client = host.client().await?;
    let request = || http::Request::get(path).body(Vec::new());
    // Whatever a controller writes in between changes the version, and is asked for again.
    loop {
        let json: Value = client.request(request()?).await?;
        let decoded = decoded(&program().await?, &host.admin(), path).await?;
        let now: Value = client.request(request()?).await?;
        if json["metadata"]["resourceVersion"] != now["metadata"]["resourceVersion"] {
            continue;
        }
        assert_eq!((&decoded["apiVersion"], &decoded["kind"]), (&json["apiVersion"], &json!(kind)));
        let mut expected = json.clone();
        for envelope in ["apiVersion", "kind"] {
            expected.as_object_mut().and_then(|object| object.remove(envelope));
        }
        let mut differences = Vec::new();
        compare("", &expected, &decoded["object"], &mut differences);
        assert!(differences.is_empty(), "{differences:#?}\n{json:#}\n{decoded:#}");
        return Ok(());
    }
}

/// What JSON has, the message has too; what only the message has is zero.
fn compare(path: &str, json: &Value, message: &Value, differences: &mut Vec<String>) {
    match (json, message) {
        (Value::Object(fields), Value::Object(decoded)) if !is_raw(decoded) => {
            for (name, value) in fields {
                let at = format!("{path}.{name}");
                compare(&at, value, decoded.get(name).unwrap_or(&Value::Null), differences);
            }
            let more = decoded.iter().filter(|(name, value)| !fields.contains_key(*name) && !is_zero(value));
            differences.extend(more.map(|(name, value)| format!("{path}.{name}: {value} in protobuf alone")));
        }
        (Value::Array(items), Value::Array(decoded)) if items.len() == decoded.len() => {
            for (at, (item, decoded)) in items.iter().zip(decoded).enumerate() {
                compare(&format!("{path}[{at}]"), item, decoded, differences);
            }
        }
        (json, message) if says(json, message) => {}
        _ => differences.push(format!("{path}: {json} in JSON, {message} in protobuf")),
    }
}

/// FieldsV1 { Raw }
fn is_raw(decoded: &serde_json::Map<String, Value>) -> bool {
    decoded.len() == 1 && decoded.contains_key("Raw")
}

/// Whether a field says the same in both: protobuf's JSON has 64-bit integers as texts, times as seconds, and bytes.
fn says(json: &Value, message: &Value) -> bool {
    match (json, message) {
        (Value::Number(number), Value::String(text)) => number.to_string() == *text,
        (Value::String(time), Value::Object(_)) => is_time(time, message),
        (json, Value::Object(raw)) if is_raw(raw) => {
            let bytes = raw["Raw"].as_str().and_then(|raw| STANDARD.decode(raw).ok());
            bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()).as_ref() == Some(json)
        }
        (json, message) => json == message,
    }
}

fn is_time(time: &str, message: &Value) -> bool {
    let seconds = message["seconds"].as_str().and_then(|seconds| seconds.parse::<i64>().ok());
    let nanoseconds = message["nanos"].as_i64().unwrap_or_default();
    time.parse::<Timestamp>().is_ok_and(|time| {
        seconds == Some(time.as_second()) && nanoseconds == i64::from(time.subsec_nanosecond())
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == "0",
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}
