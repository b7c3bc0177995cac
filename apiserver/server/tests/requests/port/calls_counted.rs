//! gRPC calls in the audit log, in the metrics and in flow control.

use std::path::Path;
use std::time::Duration;

use drydock_server::audit::{Audit, Mode};
use drydock_serving::clock::testing::pass;
use serde_json::{Value, json};

use super::audit::opened;
use super::calls_fixture::{Client, GET, PANIC, WATCH, frame, mounted};
use super::fixture::{Port, Settings};

const GOOD: (&str, &str) = ("authorization", "Bearer good");
const CHECK: &str = "/grpc.health.v1.Health/Check";

fn only_ns(spec: &Value) -> bool {
    let of = &spec["resourceAttributes"];
    of["namespace"] == "ns" || spec["nonResourceAttributes"]["path"] == "/metrics"
}

/// The value of the series of `metrics` that begins with `name` and has all of `labels`.
fn value(metrics: &str, name: &str, labels: &[&str]) -> Option<u64> {
    let is_it = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
    metrics.lines().find(is_it)?.rsplit(' ').next()?.trim().parse().ok()
}

#[tokio::test]
async fn a_stream_is_counted_and_logged_as_the_watch_that_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let policy =
        json!({"rules": [{"level": "Metadata", "resources": [{"group": "test.io"}]}, {"level": "None"}]});
    let audit = opened(&dir, policy, path.clone(), Mode::Blocking, 10_000);
    let port = Port::open(Settings { rule: only_ns, audit: Some(audit.clone()), ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let mut stream = client.call(WATCH, "ns").await;
    assert!(stream.message().await.is_some());
    assert_eq!(client.ends(WATCH, frame(b"other"), &[GOOD]).await.0, 7);
    assert_eq!(client.call(GET, "ns").await.end().await.0, 0);

    let metrics = port.send(None, "GET /metrics", &[GOOD]).await;
    let watch = [r#"verb="WATCH""#, r#"resource="gadgets""#, r#"scope="namespace""#];
    assert_eq!(value(&metrics, "apiserver_longrunning_requests", &watch), Some(1), "{metrics}");
    let denied = [watch[0], watch[1], r#"code="403""#];
    assert_eq!(value(&metrics, "apiserver_request_total", &denied), Some(1), "{metrics}");
    let got = [r#"verb="GET""#, watch[1], r#"code="200""#];
    assert_eq!(value(&metrics, "apiserver_request_total", &got), Some(1), "{metrics}");

    port.stop.cancel();
    assert_eq!(stream.end().await.0, 14);
    drop((stream, client));
    port.serving.await.unwrap();
    audit.flush().await;
    let log = std::fs::read_to_string(&path).unwrap();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |event: &Value| {
        json!([
            event["stage"],
            event["verb"],
            event["objectRef"]["namespace"],
            event["responseStatus"]["code"]
        ])
    };
    let of = |verb: &str, namespace: &str| {
        let is_of = |event: &&Value| event["verb"] == verb && event["objectRef"]["namespace"] == namespace;
        events.iter().filter(is_of).map(told).collect::<Vec<Value>>()
    };
    let stages = |verb: &str, namespace: &str, code: u16| {
        let received = json!(["RequestReceived", verb, namespace, null]);
        let [started, complete] =
            ["ResponseStarted", "ResponseComplete"].map(|stage| json!([stage, verb, namespace, code]));
        [received, started, complete]
    };
    assert_eq!(of("watch", "ns"), stages("watch", "ns", 200), "{log}");
    assert_eq!(of("watch", "other"), stages("watch", "other", 403), "{log}");
    let [received, _, complete] = stages("get", "ns", 200);
    assert_eq!(of("get", "ns"), [received, complete], "{log}");
    assert!(!log.contains("Bearer"), "{log}");
}

#[tokio::test]
async fn a_call_that_panics_is_logged_so_in_place_of_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let policy = json!({"rules": [{"level": "Metadata"}]});
    let audit = opened(&dir, policy, path.clone(), Mode::Blocking, 10_000);
    let port = Port::open(Settings { audit: Some(audit.clone()), ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    assert_eq!(client.call(PANIC, "ns").await.end().await.0, 13);
    drop(client);
    let events = events(port, &audit, &path).await;
    let stages: Vec<&Value> = events.iter().map(|event| &event["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "Panic"], "{events:#?}");
}

/// What a policy of one rule logs of watches of all namespaces and of one.
async fn watches_logged(rule: Value) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let audit = opened(&dir, json!({"rules": [rule]}), path.clone(), Mode::Blocking, 10_000);
    let port = Port::open(Settings { audit: Some(audit.clone()), ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    for namespace in ["", "ns"] {
        assert!(client.call(WATCH, namespace).await.message().await.is_some());
    }
    drop(client);
    events(port, &audit, &path).await
}

/// Everything that was logged, once the server has stopped.
async fn events(port: Port, audit: &Audit, path: &Path) -> Vec<Value> {
    port.stop.cancel();
    port.serving.await.unwrap();
    audit.flush().await;
    let log = std::fs::read_to_string(path).unwrap();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_call_that_reads_two_resources_is_logged_with_both() {
    let events = watches_logged(json!({"level": "Metadata", "omitStages": ["RequestReceived"]})).await;
    let of = |namespace: &Value| {
        let event = events.iter().find(|event| event["objectRef"]["namespace"] == *namespace).unwrap();
        assert_eq!((&event["verb"], &event["requestURI"]), (&json!("watch"), &json!(WATCH)));
        event["annotations"]["grpc.drydock/reads"].clone()
    };
    assert_eq!(of(&Value::Null), "watch gadgets.test.io, watch clustergadgets.test.io");
    assert_eq!(of(&json!("ns")), Value::Null, "objectRef names the only one");
}

#[tokio::test]
async fn a_policy_about_the_second_resource_of_a_call_logs_it() {
    let second = json!([{"group": "test.io", "resources": ["clustergadgets"]}]);
    let rule = json!({"level": "Metadata", "omitStages": ["RequestReceived"], "resources": second});
    let events = watches_logged(rule).await;
    assert!(!events.is_empty(), "a policy looks at all that is read");
    let namespaces: Vec<&Value> = events.iter().map(|event| &event["objectRef"]["namespace"]).collect();
    assert!(namespaces.iter().all(|namespace| namespace.is_null()), "{events:#?}");
}

/// They are sent with POST, and took seats as writes do.
#[tokio::test]
async fn health_watches_and_reflection_count_as_reading() {
    let port = Port::open(mounted()).await;
    let client = Client::connect(&port, None).await;
    let (watch, reflection) =
        ("/grpc.health.v1.Health/Watch", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    assert!(client.call(watch, "").await.message().await.is_some());
    client.call(reflection, "").await.end().await;
    let metrics = port.send(None, "GET /metrics", &[GOOD]).await;
    let counted = |verb: &str| value(&metrics, "apiserver_request_total", &[&format!(r#"verb="{verb}""#)]);
    assert_eq!((counted("GET"), counted("POST")), (Some(2), None), "{metrics}");
}

/// Streams hold no seats; a call that finds none free is refused with the time to try again.
#[tokio::test]
async fn a_call_without_a_free_seat_is_told_when_to_come_again() {
    let port = Port::open(Settings { in_flight: 1, ..mounted() }).await;
    let client = Client::connect(&port, None).await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        streams.push(client.call(WATCH, "ns").await);
    }
    port.host_answers.send(false).unwrap();
    let refused = tokio::sync::Notify::new();
    let requests: Vec<_> = (0..40)
        .map(|number| {
            let namespace = format!("n{number}");
            let (client, refused, body) = (&client, &refused, frame(namespace.as_bytes()));
            async move {
                let mut answer = client.send(WATCH, body, &[GOOD]).await;
                let end = (answer.end().await.0, answer.headers.contains_key("grpc-status-details-bin"));
                refused.notify_one();
                end
            }
        })
        .collect();
    // Those that wait for a seat are refused before the time of those that have one is over.
    let time = async {
        assert_eq!(
            client.ends(CHECK, frame(b""), &[]).await.0,
            0,
            "it is answered after the others have come"
        );
        pass(Duration::from_secs(20)).await;
        refused.notified().await;
        pass(Duration::from_secs(60)).await;
    };
    let (ends, ()) = futures::future::join(futures::future::join_all(requests), time).await;
    assert!(ends.contains(&(8, true)), "{ends:?}");
    assert!(ends.iter().all(|(code, _)| matches!(code, 4 | 8)), "{ends:?}");
    port.host_answers.send(true).unwrap();
    assert!(client.call(GET, "ns").await.message().await.is_some());
}

/// One user's streams are bounded, another one's go on, and those that are closed make room.
#[tokio::test]
async fn ten_thousand_streams_of_one_user_keep_nobody_out() {
    let port = Port::open(mounted()).await;
    let ann = port.clients.issue("ann", "users");
    let (mut held, mut clients, mut refused) = (Vec::new(), Vec::new(), 0);
    for _ in 0..10 {
        let client = Client::connect(&port, None).await;
        for _ in 0..1000 {
            let mut stream = client.send(WATCH, frame(b"ns"), &[GOOD]).await;
            if stream.headers.contains_key("grpc-status") {
                assert_eq!(stream.end().await.0, 8);
                refused += 1;
            } else {
                // A client with h2 closes a connection with some hundred small messages that it has not read.
                assert!(stream.message().await.is_some());
                held.push(stream);
            }
        }
        clients.push(client);
    }
    assert_eq!((held.len(), refused), (4096, 5904));
    let other = Client::connect(&port, Some(&ann)).await;
    assert_eq!(other.send(WATCH, frame(b"ns"), &[]).await.message().await.unwrap(), frame(b"ann"));
    drop((held, clients));
    let again = async {
        let client = Client::connect(&port, None).await;
        while client.call(WATCH, "ns").await.headers.contains_key("grpc-status") {}
    };
    tokio::time::timeout(Duration::from_secs(60), again).await.expect("closed streams make room");
}
